// Which files of a corrupted set are finished, and what they were made with.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

namespace qact::corrupt {

class Record {
 public:
  // Reads what an earlier run has left in `folder`, if any.
  explicit Record(const std::filesystem::path& folder);

  bool has(const std::string& name, const nlohmann::json& made_with) const;
  void add(const std::string& name, const nlohmann::json& made_with);

  // Throws where a finished file was made from other images, whose labels would differ.
  void check_images(const nlohmann::json& made_with) const;

 private:
  std::filesystem::path folder_;
  nlohmann::json entries_ = nlohmann::json::object();
};

}  // namespace qact::corrupt
