// How OpenMP's threads wait for each other: asleep, unless the user says otherwise.
//
// By default they spin, for milliseconds, before they sleep. Where something else wants the cores
// too, a thread spins while the one that it waits for has no core to run on, and training with two
// threads is several times slower than with one; docs/performance.md has figures. To sleep at once
// costs next to nothing on a quiet machine.
//
// The runtime reads its settings when it is loaded, before main() and before any constructor of the
// program, so the program starts itself again with the setting in its environment. It does so from
// the one place that comes before the constructors of its libraries, so that this takes 10 ms of
// the 250 that a start takes. The process keeps its number.
#include <sys/auxv.h>
#include <unistd.h>

#include <cstring>
#include <initializer_list>
#include <string_view>

namespace {

constexpr int kMostVariables = 4096;

bool is_set(char** environment, std::string_view name) {
  for (char** entry = environment; *entry != nullptr; ++entry) {
    if (std::strncmp(*entry, name.data(), name.size()) == 0 && (*entry)[name.size()] == '=') {
      return true;
    }
  }
  return false;
}

// Libraries are linked but not yet initialised: what is called here must need nothing else.
void wait_asleep(int, char** arguments, char** environment) {
  for (const char* setting : {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME"}) {
    if (is_set(environment, setting)) return;
  }
  static char passive[] = "OMP_WAIT_POLICY=passive";
  static char* longer[kMostVariables + 2];
  int count = 0;
  for (; environment[count] != nullptr; ++count) {
    if (count == kMostVariables) return;
    longer[count] = environment[count];
  }
  longer[count] = passive;
  const auto* const path = reinterpret_cast<const char*>(getauxval(AT_EXECFN));
  if (path != nullptr) execve(path, arguments, longer);  // where it fails, threads spin
}

[[gnu::used, gnu::section(".preinit_array")]] void (*const before_libraries)(int, char**,
                                                                             char**) = wait_asleep;

}  // namespace
