// Commands under torchrun: one program on several ranks speaks with one voice.
#pragma once

#include <functional>
#include <string>

#include "qact/dist/environment.h"

namespace qact::dist {
class World;
}

namespace qact::cli {

// Runs `work` in the world that torchrun's environment describes: this process alone where there is
// none. `device` as in --device. Throws what `work` throws.
void run_in_world(const std::string& device, const std::function<void(const dist::World&)>& work);

// Rank 0 of 1 without torchrun. Never throws: a wrong environment is for the command to refuse.
dist::Environment this_rank();
// The same, but throws where the environment is wrong.
dist::Environment expect_rank();

// "[rank 1 of 4] " for messages of a rank, empty for a process alone.
std::string rank_prefix();
// After a failure: false where another rank says why all end. Ranks that failed before they met
// leave the word to the first one.
bool may_speak();

}  // namespace qact::cli
