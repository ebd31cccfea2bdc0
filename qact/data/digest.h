// Checksums of files, written "md5:..." and "sha256:...".
#pragma once

#include <string>

#include "qact/data/file.h"

namespace qact::data {

// `kind`: "md5" or "sha256"; in hexadecimal.
std::string digest_of(const fs::path& path, const std::string& kind);

// Does nothing where `digest` is empty.
void check_digest(const fs::path& path, const std::string& digest);

}  // namespace qact::data
