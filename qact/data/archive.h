// Unpacking what came from elsewhere.
#pragma once

#include <cstdint>
#include <string>

#include "qact/data/file.h"

namespace qact::data {

// Unpacks zip, tar (gzip, xz, ...) and ar. Only what lies in the folder `inside` of the
// archive is written, without that prefix. Refused: a path that leaves `target`, links and
// devices among the wanted entries, and more than `most_bytes` in all.
void unpack(const fs::path& archive, const fs::path& target, const std::string& inside,
            int64_t most_bytes);

// By its first bytes; a lone gzip file is none.
bool is_archive(const fs::path& path);

}  // namespace qact::data
