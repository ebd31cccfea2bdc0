// Files over HTTP, resumed where an earlier attempt stopped.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "qact/data/file.h"
#include "qact/data/source.h"

namespace qact::data {

// Bytes so far and in all (0: not known). Return false to stop.
using Progress = std::function<bool(int64_t done, int64_t total)>;

// Leaves the whole, checked file at `target`. Until then its bytes are in `target`.part,
// which stays for the next attempt unless it proves to be wrong.
void download(const Download& what, const fs::path& target, const Progress& progress = {});

}  // namespace qact::data
