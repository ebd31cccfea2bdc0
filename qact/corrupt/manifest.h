// The manifest of a corrupted dataset, corrupted.json: which files are finished, the options they
// were made with, and how large they were.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

namespace qact::corrupt {

class Manifest {
 public:
  // Reads the manifest in `folder`, if there is one.
  explicit Manifest(const std::filesystem::path& folder);

  // Reads again what other processes may have added.
  void read();

  // Whether the file, or the folder of files, was made with this and is as large as it was then.
  bool has(const std::string& name, const nlohmann::json& made_with) const;
  // Several processes may add to the manifest of one folder.
  void add(const std::string& name, const nlohmann::json& made_with);

  // Throws where a finished file was made from other images: the labels would not match.
  void check_images(const nlohmann::json& made_with) const;

 private:
  std::filesystem::path folder_;
  nlohmann::json entries_ = nlohmann::json::object();
};

}  // namespace qact::corrupt
