// The official textures of the corruption frost: frost1.png to frost5.jpg of the benchmarks'
// authors.
#pragma once

#include <string>

#include "qact/data/fetch.h"

namespace qact::data {

// For fetch(): its name is "frost".
Wanted frost_textures();

// Their folder in `data_folder`, with every file as it was published; else an error that says how
// to get them.
fs::path official_frost(const fs::path& data_folder);

// Which textures a folder holds: "official", or a digest of the five files.
std::string frost_identity(const fs::path& folder);

}  // namespace qact::data
