#include "qact/dist/environment.h"

#include <charconv>
#include <cstdlib>
#include <string_view>

#include "qact/base/fail.h"

namespace qact::dist {
namespace {

int whole_number(const char* name, const char* text, int least, int most) {
  const std::string_view view(text);
  int value = 0;
  const auto [end, error] = std::from_chars(view.begin(), view.end(), value);
  if (error != std::errc() || end != view.end() || value < least || value > most) {
    base::fail("dist", "expected ", name, " in the environment to be a whole number of ", least,
               " to ", most, ", got '", text, "'");
  }
  return value;
}

}  // namespace

std::optional<Environment> read_environment(const Getenv& get) {
  const char* const needed[] = {"RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT"};
  std::string missing;
  for (const char* name : needed) {
    if (get(name) == nullptr) missing += (missing.empty() ? "" : ", ") + std::string(name);
  }
  if (!get("RANK") && !get("WORLD_SIZE") && !get("LOCAL_RANK")) return std::nullopt;
  if (!missing.empty()) {
    base::fail("dist",
               "expected RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and MASTER_PORT in the "
               "environment, as torchrun sets them, or none of them, got none of ",
               missing);
  }
  constexpr int kMost = 1 << 20;
  Environment e;
  e.size = whole_number("WORLD_SIZE", get("WORLD_SIZE"), 1, kMost);
  e.rank = whole_number("RANK", get("RANK"), 0, kMost);
  if (e.rank >= e.size) {
    base::fail("dist", "expected RANK below WORLD_SIZE, ", e.size, ", got ", e.rank);
  }
  e.local_rank = whole_number("LOCAL_RANK", get("LOCAL_RANK"), 0, e.rank);
  const char* const local_size = get("LOCAL_WORLD_SIZE");
  e.local_size = local_size ? whole_number("LOCAL_WORLD_SIZE", local_size, 1, e.size) : e.size;
  e.master_address = get("MASTER_ADDR");
  e.master_port = static_cast<uint16_t>(whole_number("MASTER_PORT", get("MASTER_PORT"), 1, 65535));
  const char* const agent = get("TORCHELASTIC_USE_AGENT_STORE");
  e.agent_store = agent != nullptr && std::string_view(agent) == "True";
  const char* const restarts = get("TORCHELASTIC_RESTART_COUNT");
  e.restarts = restarts ? whole_number("TORCHELASTIC_RESTART_COUNT", restarts, 0, kMost) : 0;
  return e;
}

std::optional<Environment> read_environment() {
  return read_environment([](const char* name) -> const char* { return std::getenv(name); });
}

}  // namespace qact::dist
