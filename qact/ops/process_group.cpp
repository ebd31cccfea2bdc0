#include "qact/ops/process_group.h"

#include <ATen/ATen.h>

#include <string>
#include <torch/csrc/distributed/c10d/GroupRegistry.hpp>
#include <vector>

namespace qact::ops {
namespace {

// Starts it.
c10::intrusive_ptr<c10d::Work> reduce(const ProcessGroup& group, const at::Tensor& tensor,
                                      c10d::ReduceOp::RedOpType by) {
  std::vector<at::Tensor> tensors = {tensor};
  c10d::AllreduceOptions options;
  options.reduceOp = by;
  return group->allreduce(tensors, options);
}

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

void all_reduce(const ProcessGroup& group, const core::Round& round, at::Device device) {
  if (is_alone(group)) return;
  std::vector<at::Tensor> tensors;
  std::vector<c10::intrusive_ptr<c10d::Work>> started;
  for (const core::Reduction& of : round) {
    const auto options = at::dtype(type_of(of.kind)).device(device);
    tensors.push_back(
        at::for_blob(of.data, {of.count}).options(options).target_device(device).make_tensor());
    const bool maximum = of.kind == core::Reduction::Kind::max_f64;
    started.push_back(
        reduce(group, tensors.back(), maximum ? c10d::ReduceOp::MAX : c10d::ReduceOp::SUM));
  }
  for (const auto& work : started) work->wait();
}

void all_reduce_sum(const ProcessGroup& group, const at::Tensor& tensor) {
  if (!is_alone(group)) reduce(group, tensor, c10d::ReduceOp::SUM)->wait();
}

}  // namespace qact::ops
