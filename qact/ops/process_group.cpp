#include "qact/ops/process_group.h"

#include <ATen/ATen.h>

#include <string>
#include <torch/csrc/distributed/c10d/GroupRegistry.hpp>
#include <vector>

namespace qact::ops {
namespace {

void reduce(const ProcessGroup& group, const at::Tensor& tensor, c10d::ReduceOp::RedOpType by) {
  if (!group || group->getSize() == 1) return;
  std::vector<at::Tensor> tensors = {tensor};
  c10d::AllreduceOptions options;
  options.reduceOp = by;
  group->allreduce(tensors, options)->wait();
}

at::ScalarType type_of(core::Round::Kind kind) {
  switch (kind) {
    case core::Round::Kind::sum_i64:
      return at::kLong;
    case core::Round::Kind::sum_i32:
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
  const auto options = at::dtype(type_of(round.kind)).device(device);
  reduce(
      group,
      at::for_blob(round.data, {round.count}).options(options).target_device(device).make_tensor(),
      round.kind == core::Round::Kind::max_f64 ? c10d::ReduceOp::MAX : c10d::ReduceOp::SUM);
}

void all_reduce_sum(const ProcessGroup& group, const at::Tensor& tensor) {
  reduce(group, tensor, c10d::ReduceOp::SUM);
}

}  // namespace qact::ops
