#include "qact/dist/connect.h"

#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/torch.h>

#include <chrono>
#include <cstdlib>
#include <thread>
#include <torch/csrc/distributed/c10d/GroupRegistry.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <utility>

#include "qact/base/fail.h"
#include "qact/dist/dist.h"
#include "qact/dist/gloo.h"
#include "qact/dist/meeting.h"
#include "qact/dist/nccl.h"
#include "qact/dist/process.h"

namespace qact::dist {
namespace {

// A rank may work for hours while the others wait. That a rank has ended shows in its connections,
// not in a timeout; and torchrun ends those that wait for a machine that is gone.
constexpr std::chrono::hours kPatience(24);
constexpr std::chrono::minutes kMeeting(5);

bool serves_store(const Environment& e) { return e.rank == 0 && !e.agent_store; }

// c10d prints what it throws, each time with the stack, unless torch's variable asks for a level.
void silence_c10d() {
  if (std::getenv("TORCH_CPP_LOG_LEVEL") == nullptr) FLAGS_caffe2_log_level = 2;  // errors
}

Store open_store(const Environment& e) {
  c10d::TCPStoreOptions options;
  options.port = e.master_port;
  options.isServer = serves_store(e);
  options.waitWorkers = false;
  options.timeout = kMeeting;
  try {
    const auto store = c10::make_intrusive<c10d::TCPStore>(e.master_address, options);
    return c10::make_intrusive<c10d::PrefixStore>("qact", store);
  } catch (const std::exception& error) {
    base::fail("dist", "expected rank ", e.rank, " of ", e.size, " to meet the others at ",
               e.master_address, ":", e.master_port,
               ", could not: ", c10::str(error.what()).substr(0, 200));
  }
}

// Gloo for CUDA tensors, too, where NCCL is missing or would refuse: it wants a GPU per process.
// All ranks take the same, so machines with GPUs enough follow those without.
c10::intrusive_ptr<c10d::ProcessGroup> make_group(const Store& store, const Environment& e,
                                                  bool cuda) {
  using Group = c10d::ProcessGroup;
  const auto group = c10::make_intrusive<Group>(store, e.rank, e.size);
  const auto gloo = make_gloo(store, e.rank, e.size, kPatience);
  group->setDefaultBackend(Group::BackendType::GLOO);
  group->setBackend(c10::DeviceType::CPU, Group::BackendType::GLOO, gloo);
  const bool own_gpu = cuda && e.local_size <= static_cast<int>(torch::cuda::device_count());
  const bool refused = World(group).any(!own_gpu || !has_nccl());
  if (cuda) {
    group->setBackend(c10::DeviceType::CUDA,
                      refused ? Group::BackendType::GLOO : Group::BackendType::NCCL,
                      refused ? gloo : make_nccl(store, e.rank, e.size));
  }
  group->setGroupName(kWorld);
  return group;
}

void use_local_gpu(const Environment& e) {
  const auto count = static_cast<int>(torch::cuda::device_count());
  if (count == 0) return;  // the device's own check says so
  const c10::Device device(c10::DeviceType::CUDA,
                           static_cast<c10::DeviceIndex>(e.local_rank % count));
  c10::impl::getDeviceGuardImpl(c10::DeviceType::CUDA)->setDevice(device);
}

// What c10d, Gloo and NCCL say when the other side of a connection is gone.
bool is_lost_connection(const std::exception& error) {
  if (dynamic_cast<const c10::DistError*>(&error) != nullptr) return true;
  const std::string text = error.what();
  for (const char* sign : {"gloo", "Connection closed by peer", "Connection reset", "NCCL"}) {
    if (text.find(sign) != std::string::npos) return true;
  }
  return false;
}

}  // namespace

Connection::Connection(const Environment& environment) : environment_(environment) {
  silence_c10d();
  shared_store_ = open_store(environment);
}

Connection::~Connection() {
  if (!world_.alone()) c10d::unregister_process_group(kWorld);
}

const World& Connection::open(bool cuda) {
  const Environment& e = environment_;
  const Attempt attempt = join_attempt(shared_store_, e.rank, kMeeting);
  store_ = attempt.store;
  const bool restarted =
      wait_for_all(shared_store_, attempt, e.rank, e.size, e.restarts > 0, kMeeting);
  if (cuda) use_local_gpu(e);
  const auto group = make_group(store_, e, cuda);
  c10d::register_process_group(kWorld, group);
  world_ = World(group, restarted);
  processes_ = world_.gather_texts(this_process());
  return world_;
}

// Whether this is the first rank that fails. Others are told that another one says why.
bool Connection::speaks_for_all() const {
  if (!store_) return environment_.rank <= 1;  // rank 0 has not come
  try {
    store_->setTimeout(std::chrono::seconds(5));
    return store_->add("failed", 1) == 1;
  } catch (const std::exception&) {
    // The store went with rank 0: one rank of those that are left speaks for all.
    return environment_.rank <= 1;
  }
}

// Ends this rank's part in the group, so that others that wait for it learn of its failure: on a
// thread of its own, since a group ends after all that is under way.
void Connection::leave() {
  if (world_.alone()) return;
  c10d::unregister_process_group(kWorld);
  std::thread([world = std::exchange(world_, World())]() mutable { world = World(); }).detach();
}

// Before the store ends with this rank, others ask whether another one says why all end.
void Connection::wait_until_all_asked() const {
  if (!serves_store(environment_) || !store_) return;
  for (int tries = 0; tries < 50 && store_->add("failed", 0) < environment_.size; ++tries) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

// Who has ended is found out before others are told to end without a word.
Explanation Connection::explain(const std::exception& error) {
  const bool lost = is_lost_connection(error);
  const std::string who = lost ? lost_rank() : "";
  const bool first = speaks_for_all();
  leave();
  wait_until_all_asked();
  if (!first) return {.silent = true};
  if (!lost) return {};
  const std::string said = error.what();
  return {.text = end_of(who.empty() ? "one (" + said.substr(0, said.find('\n')) + ")"
                                     : who + ", killed or out of memory")};
}

Explanation Connection::explain_waiting() const {
  const std::string who = lost_rank();
  const bool first = speaks_for_all();
  wait_until_all_asked();
  if (!first) return {.silent = true};
  if (!who.empty()) return {.text = end_of(who + ", killed or out of memory")};
  return {.text = "[dist] expected all " + std::to_string(environment_.size) +
                  " ranks to reach the same point, got no answer from one: what was saved "
                  "before stays"};
}

std::string Connection::end_of(const std::string& rank) const {
  return "[dist] expected all " + std::to_string(environment_.size) +
         " ranks to go on, got the end of " + rank + ": all ranks end";
}

// A connection closes a moment before its process has ended.
std::string Connection::lost_rank() const {
  for (int tries = 0; tries < 20; ++tries) {
    for (size_t rank = 0; rank < processes_.size(); ++rank) {
      if (!has_ended(processes_[rank])) continue;
      return "rank " + std::to_string(rank) + " (" + process_name(processes_[rank]) + ")";
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return "";
}

}  // namespace qact::dist
