#include "cli/world.h"

#include <chrono>
#include <csignal>
#include <memory>
#include <stdexcept>
#include <thread>

#include "cli/interrupt.h"
#include "cli/validators.h"
#include "qact/dist/connect.h"

namespace qact::cli {
namespace {

// Set by what ended this rank's work.
bool explained_ = false, silent_ = false;

void expect_plain_device(const std::string& device) {
  if (!device.starts_with("cuda:")) return;
  throw std::invalid_argument(
      "[dist] expected --device cuda under torchrun, where each rank has the GPU of its local "
      "rank, "
      "got " +
      device);
}

}  // namespace

void run_in_world(const std::string& device, const std::function<void(const dist::World&)>& work) {
  const dist::Environment environment = expect_rank();
  if (environment.size == 1) return work(dist::World(nullptr, environment.restarts > 0));
  check_use([&] { expect_plain_device(device); });
  // A write to a rank that has ended must fail, and be explained, instead of ending this one, too.
  std::signal(SIGPIPE, SIG_IGN);
  auto connection = std::make_unique<dist::Connection>(environment);
  set_last_words([open = connection.get()] {
    const dist::Explanation explanation = open->explain_waiting();
    return explanation.silent ? "" : rank_prefix() + explanation.text;
  });
  try {
    work(connection->open(device == "cuda"));
  } catch (const std::exception& error) {
    take_time();
    // Never deleted: its threads may wait for ranks that no longer answer.
    const dist::Explanation explanation = connection.release()->explain(error);
    explained_ = true;
    silent_ = explanation.silent;
    if (explanation.text.empty()) throw;
    throw std::runtime_error(explanation.text);
  }
  set_last_words({});
}

dist::Environment expect_rank() { return dist::read_environment().value_or(dist::Environment()); }

dist::Environment this_rank() {
  try {
    return expect_rank();
  } catch (const std::exception&) {
    return {};
  }
}

std::string rank_prefix() {
  const dist::Environment rank = this_rank();
  if (rank.size == 1) return "";
  return "[rank " + std::to_string(rank.rank) + " of " + std::to_string(rank.size) + "] ";
}

bool may_speak() {
  // torchrun ends this rank once the first one has ended.
  if (!explained_ && this_rank().rank > 0) std::this_thread::sleep_for(std::chrono::seconds(2));
  return !silent_;
}

}  // namespace qact::cli
