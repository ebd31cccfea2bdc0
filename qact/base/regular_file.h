// What a path must be before it is opened to be read: opening a FIFO would wait for a writer.
#pragma once

#include <filesystem>

namespace qact::base {

// Throws where there is something else, such as a folder, a FIFO or a device; links are followed.
// What is missing or out of reach is left to the opening, which says why.
void expect_regular_file(const std::filesystem::path& path);

}  // namespace qact::base
