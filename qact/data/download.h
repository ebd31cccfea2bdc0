// Downloads over HTTP, which resume where an earlier attempt stopped.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "qact/data/file.h"
#include "qact/data/source.h"

namespace qact::data {

// Called with the bytes so far and in all (0: not known). Returning false stops the download.
using DownloadProgress = std::function<bool(int64_t done, int64_t total)>;

// Leaves the complete file at `target`, its digest checked. Until then its bytes are in
// `target`.part, which stays for the next attempt unless it proves to be wrong.
void download(const Download& what, const fs::path& target, const DownloadProgress& progress = {});

}  // namespace qact::data
