// Many processes: what the program and the layers agree on.
#pragma once

namespace qact::dist {

// The c10d name of the group of all processes: c10d::resolve_process_group(kWorld) finds it once
// connect() (connect.h) has registered it.
inline constexpr const char* kWorld = "world";

}  // namespace qact::dist
