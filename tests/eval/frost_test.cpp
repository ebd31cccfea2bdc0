#include "qact/eval/frost.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/base/scratch_folder.h"

namespace qact::eval {
namespace {

std::string refusal(const std::string& choice, const std::filesystem::path& folder) {
  try {
    open_frost(choice, folder);
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

TEST(Frost, IsChosenByOneRule) {
  const ScratchFolder scratch;
  EXPECT_EQ(open_frost("procedural", scratch.path)->name(), "procedural");
  EXPECT_EQ(refusal("official", scratch.path),
            "[frost] expected the official textures in " + (scratch.path / "frost").string() +
                ", got nothing there: `qact data fetch frost` gets them");
  EXPECT_EQ(
      refusal("published", scratch.path),
      "[frost] expected procedural, official or the path of a folder with a /, got published");
  EXPECT_NE(refusal(scratch.path.string(), scratch.path).find("frost1.png"), std::string::npos);
}

}  // namespace
}  // namespace qact::eval
