// A sound call of every operator, for tests that spoil one argument at a time.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/torch.h>

#include <string>
#include <vector>

#include "qact/ops/context.h"
#include "qact/ops/quantile_layer_impl.h"
#include "qact/ops/quantile_layer_world_impl.h"

namespace qact::tests {

struct OperatorCall {
  std::string name;
  std::string says;  // what its messages call it
  std::string lead;  // the tensor that the others go with
  std::vector<c10::IValue> arguments;

  c10::OperatorHandle op() const {
    return c10::Dispatcher::singleton().findSchemaOrThrow(("qact::" + name).c_str(), "");
  }
  const std::string& argument(size_t i) const { return op().schema().arguments().at(i).name(); }
  size_t index(const std::string& argument_name) const {
    return static_cast<size_t>(*op().schema().argumentIndexWithName(argument_name));
  }
  std::vector<size_t> tensors() const {
    std::vector<size_t> out;
    for (size_t i = 0; i < arguments.size(); ++i) {
      if (arguments[i].isTensor()) out.push_back(i);
    }
    return out;
  }
  torch::Tensor tensor(size_t i) const { return arguments.at(i).toTensor(); }
  torch::Tensor lead_tensor() const { return tensor(index(lead)); }
  bool writes(size_t i) const {
    const auto* alias = op().schema().arguments().at(i).alias_info();
    return alias != nullptr && alias->isWrite();
  }
  OperatorCall with(size_t i, const torch::Tensor& other) const {
    OperatorCall out = *this;
    out.arguments.at(i) = other;
    return out;
  }
};

// All tensors on that device.
inline std::vector<OperatorCall> operator_calls(torch::Device device,
                                                const std::vector<int64_t>& shape = {4, 3, 20,
                                                                                     25}) {
  torch::manual_seed(1);
  const torch::Tensor x = torch::randn(shape);
  const int64_t channels = shape.at(1);
  std::vector<torch::Tensor> v;
  for (int i = 0; i < 4; ++i) v.push_back(torch::rand({channels}) + 0.5);
  const torch::Tensor quantiles = std::get<0>(torch::randn({channels, 10}, torch::kDouble).sort(1));
  const torch::Tensor context = ops::context_build(x);
  // The first channel is ranked in its image, where that has more than one value.
  const int64_t image = shape.size() > 2 ? 1 : 0;
  const auto [y, code, table, stats, counts] =
      ops::quantile_layer_forward(x, {}, {.scope = {image, 0}}, /*keep=*/true);
  const auto [tracked_y, all_stats, batch] = ops::quantile_layer(x, {}, {.track = true});
  const torch::Tensor batches = torch::zeros({}, torch::kLong);
  const int64_t first = channels > 1 ? image : 0;  // over all processes some are ranked, too
  const auto world = ops::world_layer_forward(x, {}, {.scope = {first, 0}}, /*keep=*/true, "").kept;
  const torch::Tensor others = x.narrow(1, first, channels - first).contiguous();
  const c10::IValue in_images =
      first > 0 ? c10::IValue(x.narrow(1, 0, first).contiguous()) : c10::IValue();
  std::vector<OperatorCall> calls = {
      {"quantile_activation", "", "x", {x, 100, 100.0, 0.5, 0.5, "auto", true, 0, 0}},
      {"_quantile_activation_forward",
       "quantile_activation",
       "x",
       {x, 100, 100.0, 0.5, 0.5, "auto", true, 0, 0, true}},
      {"_quantile_activation_backward", "quantile_activation_backward", "grad", {x, x.abs()}},
      {"quantiles", "", "x", {x, 10, 100.0, 0.5}},
      {"quantile_layer",
       "",
       "x",
       {x, v[0], v[1], v[2], v[3], 1e-5, 100, 100.0, 0.5, 0.5, "auto", true, image, 0}},
      {"_quantile_layer_forward",
       "quantile_layer",
       "x",
       {x, v[0], v[1], v[2], v[3], 1e-5, 100, 100.0, 0.5, 0.5, "auto", true, image, 0, true}},
      {"_quantile_layer_backward",
       "quantile_layer_backward",
       "grad_y",
       {x, x, code, table, stats, v[0], v[1], v[2], 1e-5, 100, 100.0, 0.5, 0.5, "auto", image, 0}},
      {"quantile_layer_world",
       "",
       "x",
       {x, v[0], v[1], v[2], v[3], 1e-5, 100, 100.0, 0.5, 0.5, "auto", true, first, ""}},
      {"_quantile_layer_world_forward",
       "quantile_layer_world",
       "x",
       {others, in_images, v[0], v[1], v[2], v[3], 1e-5, 100, 100.0, 0.5, 0.5, "auto", true, true,
        ""}},
      {"_quantile_layer_world_backward",
       "quantile_layer_world_backward",
       "grad_y",
       {others, in_images, in_images, world.code, world.table, world.values, world.image_code,
        world.image_table, v[0], v[1], v[2], 1e-5, 100, 100.0, 0.5, 0.5, "auto", ""}},
      {"quantile_apply", "", "x", {x, quantiles, v[0], v[1], v[2], v[3], 0.5, true}},
      {"_quantile_apply_backward",
       "quantile_apply_backward",
       "x",
       {x, x, quantiles, v[0], v[1], v[2], 0.5}},
      {"context_build", "", "x", {x, v[0], v[1]}},
      {"context_blend", "", "a", {context, 100.0, batch, 20.0}},
      {"context_quantiles", "", "context", {context, 10, 100.0, 0.5}},
      {"_layer_track",
       "layer_track",
       "context",
       {v[0], v[1], v[2], v[3], context, batches, all_stats, batch, 0.1, 120.0, 1024.0}},
  };
  for (OperatorCall& call : calls) {
    if (call.says.empty()) call.says = call.name;
    for (const size_t i : call.tensors()) call.arguments[i] = call.tensor(i).clone().to(device);
  }
  return calls;
}

}  // namespace qact::tests
