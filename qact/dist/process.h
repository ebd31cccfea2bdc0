// A process as other processes of the same machine can find it.
#pragma once

#include <string>

namespace qact::dist {

// "NUMBER MACHINE" of this process.
std::string this_process();
// "process NUMBER on HOST"
std::string process_name(const std::string& process);
// Whether it has ended; false for a process of another machine, of which nothing is known.
bool has_ended(const std::string& process);
// Tells builds of the program apart: the versions, and the build IDs of its own libraries.
std::string program_identity();

}  // namespace qact::dist
