#include "qact/dist/meeting.h"

#include <string>
#include <thread>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <vector>

#include "qact/base/fail.h"

namespace qact::dist {
namespace {

using std::chrono::milliseconds;

// A rank's process is known by the rank and by how many of that rank have come to this store, so
// that an answer to one of an earlier attempt is not taken for its own.
std::string arrivals(int rank) { return "arrivals/" + std::to_string(rank); }

std::string answer(int rank, int64_t arrival) {
  return "attempt/" + std::to_string(rank) + "/" + std::to_string(arrival);
}

std::string here(int rank) { return "here/" + std::to_string(rank); }

void set(const Store& store, const std::string& key, const std::string& text) {
  store->set(key, std::vector<uint8_t>(text.begin(), text.end()));
}

std::string get(const Store& store, const std::string& key, milliseconds patience) {
  store->wait({key}, patience);
  const std::vector<uint8_t> bytes = store->get(key);
  return {bytes.begin(), bytes.end()};
}

Attempt attempt_of(const Store& shared, int64_t number) {
  return {number, c10::make_intrusive<c10d::PrefixStore>(std::to_string(number), shared)};
}

// Rank 0 tells every rank the number as it comes, until all have it. One that it finds may be of an
// earlier attempt, so it looks again until the rank itself is in this one's store. Returns the
// first rank that is missing, or `size`.
int tell_all(const Store& shared, const Attempt& attempt, int size, milliseconds patience) {
  const auto end = std::chrono::steady_clock::now() + patience;
  const std::string number = std::to_string(attempt.number);
  std::vector<int64_t> told(size, 0);
  std::vector<int> missing;
  for (int rank = 1; rank < size; ++rank) missing.push_back(rank);
  while (!missing.empty()) {
    std::erase_if(missing, [&](int rank) {
      const int64_t arrival = shared->add(arrivals(rank), 0);
      if (arrival > told[rank]) set(shared, answer(rank, arrival), number);
      told[rank] = arrival;
      return attempt.store->check({here(rank)});
    });
    if (missing.empty() || std::chrono::steady_clock::now() > end) break;
    std::this_thread::sleep_for(milliseconds(5));
  }
  return missing.empty() ? size : missing.front();
}

}  // namespace

Attempt join_attempt(const Store& shared, int rank, milliseconds patience) {
  if (rank == 0) return attempt_of(shared, shared->add("attempts", 1));
  const int64_t arrival = shared->add(arrivals(rank), 1);
  try {
    return attempt_of(shared, std::stoll(get(shared, answer(rank, arrival), patience)));
  } catch (const c10::DistStoreError&) {  // its time is up
    base::fail("dist", "expected rank ", rank, " to meet rank 0 within ", patience.count() / 1000,
               " seconds, got no rank 0");
  }
}

bool wait_for_all(const Store& shared, const Attempt& attempt, int rank, int size, bool restarted,
                  milliseconds patience) {
  const Store& store = attempt.store;
  store->add("restarted", restarted ? 1 : 0);
  int found = 0;
  if (rank == 0) {
    found = tell_all(shared, attempt, size, patience);
    const bool any = attempt.number > 1 || store->add("restarted", 0) > 0;
    set(store, "any_restarted", any ? "1" : "0");
    set(store, "found", std::to_string(found));
  } else {
    set(store, here(rank), "1");
    // Rank 0 may have begun to wait later.
    found = std::stoi(get(store, "found", 2 * patience));
  }
  if (found < size) {
    base::fail("dist", "expected ", size, " ranks to meet within ", patience.count() / 1000,
               " seconds, got no rank ", found);
  }
  return get(store, "any_restarted", patience) == "1";
}

}  // namespace qact::dist
