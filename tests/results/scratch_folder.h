// A folder that lives as long as the test.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

namespace qact {

struct ScratchFolder {
  ScratchFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "qact_test_XXXXXX").string();
    path = mkdtemp(name.data());
  }
  ~ScratchFolder() { std::filesystem::remove_all(path); }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  std::filesystem::path path;
};

}  // namespace qact
