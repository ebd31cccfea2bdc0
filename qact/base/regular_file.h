// Checks a path before it is opened for reading: opening a FIFO would wait for a writer.
#pragma once

#include <filesystem>

namespace qact::base {

// Throws where the path leads to anything else, such as a folder, a FIFO or a device. Links are
// followed. A missing or unreadable file passes: opening it gives the better error.
void expect_regular_file(const std::filesystem::path& path);

// "a folder", "a FIFO", ...: for messages about files that are not regular.
const char* file_type_name(std::filesystem::file_type type);

}  // namespace qact::base
