// What torchrun tells a process in its environment.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace qact::dist {

struct Environment {
  int rank = 0, size = 1;              // of this process; of the world
  int local_rank = 0, local_size = 1;  // on this machine
  std::string master_address;
  uint16_t master_port = 0;
  bool agent_store = false;  // torchrun itself serves the store at that address, not rank 0
  int restarts = 0;          // of all processes so far, by torchrun --max-restarts
};

using Getenv = std::function<const char*(const char* name)>;

// None where none of RANK, WORLD_SIZE and LOCAL_RANK is set: one process. Throws where a variable
// is missing or wrong.
std::optional<Environment> read_environment(const Getenv& getenv);
std::optional<Environment> read_environment();

}  // namespace qact::dist
