// Unpacks downloaded archives, and refuses harmful ones.
#pragma once

#include <cstdint>
#include <string>

#include "qact/data/file.h"

namespace qact::data {

// Unpacks zip, tar (gzip, xz, ...) and ar. Only entries in the archive's folder `inside` are
// written, without that prefix. Refused among them: paths that leave `target`, links, devices, and
// more than `max_bytes` in all.
void unpack(const fs::path& archive, const fs::path& target, const std::string& inside,
            int64_t max_bytes);

// Zip or tar, by its first bytes. A single gzipped file is no archive.
bool is_archive(const fs::path& path);

}  // namespace qact::data
