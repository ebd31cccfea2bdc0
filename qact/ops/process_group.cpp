#include "qact/ops/process_group.h"

#include <ATen/ATen.h>

#include <string>
#include <torch/csrc/distributed/c10d/GroupRegistry.hpp>
#include <utility>
#include <vector>

namespace qact::ops {
namespace {

bool is_alone(const ProcessGroup& group) { return !group || group->getSize() == 1; }

at::ScalarType type_of(core::Reduction::Kind kind) {
  switch (kind) {
    case core::Reduction::Kind::sum_i64:
      return at::kLong;
    case core::Reduction::Kind::sum_i32:
      return at::kInt;
    default:
      return at::kDouble;
  }
}

}  // namespace

ProcessGroup process_group(const char* op, std::string_view name) {
  if (name.empty()) return {};
  try {
    return c10d::resolve_process_group(std::string(name));
  } catch (const c10::Error&) {
    TORCH_CHECK(false, "[", op, "] expected the name of a registered process group, got '", name,
                "'");
  }
}

core::Rank rank_in(const ProcessGroup& group) {
  if (!group) return {};
  return {group->getRank(), group->getSize()};
}

void PendingReduction::start(const ProcessGroup& group, const at::Tensor& tensor,
                             c10d::ReduceOp::RedOpType by) {
  std::vector<at::Tensor> tensors = {tensor};
  c10d::AllreduceOptions options;
  options.reduceOp = by;
  started_.push_back({tensor, {}});
  started_.back().work = group->allreduce(tensors, options);
}

void PendingReduction::wait() {
  while (!started_.empty()) {
    const Started next = std::move(started_.back());
    started_.pop_back();  // first: one that fails is over, and the others are not
    if (next.work) next.work->wait();
  }
}

PendingReduction::~PendingReduction() {
  while (!started_.empty()) {
    try {
      wait();
    } catch (...) {  // the error that led here is the one to tell
    }
  }
}

PendingReduction start_all_reduce(const ProcessGroup& group, const core::Round& round,
                                  at::Device device) {
  PendingReduction out;
  if (is_alone(group)) return out;
  for (const core::Reduction& of : round) {
    const auto options = at::dtype(type_of(of.kind)).device(device);
    const bool maximum = of.kind == core::Reduction::Kind::max_f64;
    out.start(
        group,
        at::for_blob(of.data, {of.count}).options(options).target_device(device).make_tensor(),
        maximum ? c10d::ReduceOp::MAX : c10d::ReduceOp::SUM);
  }
  return out;
}

PendingReduction start_all_reduce_sum(const ProcessGroup& group, const at::Tensor& tensor) {
  PendingReduction out;
  if (!is_alone(group)) out.start(group, tensor, c10d::ReduceOp::SUM);
  return out;
}

void all_reduce_sum(const ProcessGroup& group, const at::Tensor& tensor) {
  start_all_reduce_sum(group, tensor).wait();
}

}  // namespace qact::ops
