#include "qact/eval/frost.h"

#include "qact/base/fail.h"
#include "qact/data/frost.h"

namespace qact::eval {

std::string frost_refusal(const std::string& choice) {
  const bool folder = choice.find('/') != choice.npos;
  if (choice == "procedural" || choice == "official" || folder) return "";
  return "expected procedural, official or the path of a folder with a /, got " +
         (choice.empty() ? "''" : choice);
}

std::shared_ptr<const corrupt::FrostTextures> open_frost(const std::string& choice,
                                                         const std::filesystem::path& data_folder) {
  using corrupt::FrostTextures;
  if (choice == "procedural") {
    return std::make_shared<const FrostTextures>(FrostTextures::procedural());
  }
  if (choice == "official") {
    return std::make_shared<const FrostTextures>(
        FrostTextures::from_folder(data::official_frost_folder(data_folder), choice));
  }
  if (const std::string refusal = frost_refusal(choice); !refusal.empty()) {
    base::fail("frost", refusal);
  }
  data::expect_folder(choice);
  return std::make_shared<const FrostTextures>(
      FrostTextures::from_folder(choice, data::frost_identity(choice)));
}

}  // namespace qact::eval
