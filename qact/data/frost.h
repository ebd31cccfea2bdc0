// The official textures of the frost corruption: frost1.png to frost5.jpg, by the benchmark's
// authors.
#pragma once

#include <string>

#include "qact/data/fetch.h"

namespace qact::data {

// For fetch(). Its name is "frost".
FetchRequest frost_request();

// Their folder in `data_folder`. Throws unless every file is as published, and says how to fetch
// them.
fs::path official_frost_folder(const fs::path& data_folder);

// Which textures a folder holds: "official", or a digest of the five files.
std::string frost_identity(const fs::path& folder);

}  // namespace qact::data
