// The quantile activation as a module: norm, activation, norm, and its running context.
#pragma once

#include <torch/nn/cloneable.h>
#include <torch/nn/pimpl.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "qact/core/quantile.h"
#include "qact/nn/context_mode.h"
#include "qact/ops/options.h"
#include "qact/ops/tracked_halves.h"

namespace qact::nn {

// Whose values a channel's context is made of, where it is taken from the input itself.
enum class Scope {
  batch,  // those of the whole batch
  image,  // those of one image: no image sees another
  group,  // those of `group_images` consecutive images; the last group has the remainder
  world,  // those of all processes of `process_group`, as if one had all of their batches
};

struct QuantileActivationOptions {
  /* implicit */ QuantileActivationOptions(int64_t num_features) : num_features_(num_features) {}

  TORCH_ARG(int64_t, num_features);
  TORCH_ARG(int64_t, levels) = 100;
  TORCH_ARG(double, bound) = 100.0;
  TORCH_ARG(double, positive_share) = 0.5;
  TORCH_ARG(double, bandwidth) = 0.5;
  TORCH_ARG(std::string, algorithm) = "auto";
  // The two norms, with affine parameters, as BatchNorm; the layer is fused if both are on.
  TORCH_ARG(bool, norm_in) = true;
  TORCH_ARG(bool, norm_out) = true;
  // Whether the inner norm learns a scale and a shift. Ranks do not depend on its scale, yet
  // the density gives it a gradient: with no layer in front, off is the safer choice.
  TORCH_ARG(bool, affine_in) = true;
  TORCH_ARG(double, eps) = 1e-5;
  // Of the running statistics and the running context; none: a cumulative average (0.1 in
  // ContextMode::stream).
  TORCH_ARG(std::optional<double>, momentum) = 0.1;
  // Scopes other than batch need both norms, which have the same scope.
  TORCH_ARG(Scope, scope) = Scope::batch;
  TORCH_ARG(int64_t, group_images) = 0;
  // Of the scope world: the name that c10d knows the process group by; empty: this process alone,
  // with the same result, to the last bit, as any number of processes.
  TORCH_ARG(std::string, process_group) = "";
  // The share of the channels, the first ones, rounded down, whose scope is the image in any case.
  // They have no running context: in eval(), too, each image is its own.
  TORCH_ARG(double, image_share) = 0.0;
  // The context in eval(); train() always uses the batch's own.
  TORCH_ARG(ContextMode, context_mode) = ContextMode::tracked;
  TORCH_ARG(double, prior) = 16.0;
};

class RunningQuantiles;

// A layer's forward pass, as torch's profiler and other observers of operators are told of it.
inline constexpr const char* kOperatorName = "qact::QuantileActivation";

// Input (B, C, ...), output of the same shape. All state lives in buffers: running means
// and variances of both norms, the running context, and the number of batches seen.
class QuantileActivationImpl : public torch::nn::Cloneable<QuantileActivationImpl> {
 public:
  explicit QuantileActivationImpl(QuantileActivationOptions options);

  void reset() override;
  void reset_running_stats();
  void pretty_print(std::ostream& stream) const override;

  // The parameters and statistics take the type; the context and the count stay int64.
  using torch::nn::Module::to;
  void to(torch::Device device, torch::Dtype dtype, bool non_blocking = false) override;
  void to(torch::Dtype dtype, bool non_blocking = false) override;

  torch::Tensor forward(const torch::Tensor& x);

  // The cumulative weight of x instead of its level: what is left of the rank once levels
  // tie. In the same context as forward; `track` updates the running state as forward does. Needs
  // norm_out to be off.
  torch::Tensor rank(const torch::Tensor& x, bool track = false);

  // Whose scope is the image: the first ones.
  int64_t image_channels() const { return scope().image_channels; }

  QuantileActivationOptions options;
  torch::Tensor weight_in, bias_in, weight_out, bias_out;
  torch::Tensor running_mean_in, running_var_in, running_mean_out, running_var_out;
  torch::Tensor context, num_batches_tracked;

 private:
  struct Call {
    bool quantised = true;
    bool track = true;  // update the running statistics and the running context
  };

  // Parameters and running state of the channels with a running context: all but the image's.
  struct Rows {
    torch::Tensor weight_in, bias_in, weight_out, bias_out;
    torch::Tensor mean_in, var_in, mean_out, var_out, context;
  };

  // Running vectors and contexts, each with what it becomes.
  using Moves = std::vector<std::pair<torch::Tensor, torch::Tensor>>;

  ops::QuantileOptions quantile() const;
  core::Scope scope() const;
  Rows rows() const;
  bool fused() const { return options.norm_in() && options.norm_out(); }
  torch::Tensor run(const torch::Tensor& x, const Call& call);
  torch::Tensor in_batch(const torch::Tensor& x, const Call& call);
  torch::Tensor in_batch_fused(const torch::Tensor& x, const Call& call);
  torch::Tensor in_world(const torch::Tensor& x, const Call& call);
  void track(const torch::Tensor& stats, const torch::Tensor& batch, double share, double values);
  torch::Tensor in_running(const torch::Tensor& x, const Call& call);
  torch::Tensor in_images(const torch::Tensor& x);
  torch::Tensor in_tracked(const torch::Tensor& x, const Rows& rows, const Call& call);
  ops::GivenQuantiles given_quantiles(const Rows& rows);
  bool wants_gradient(const torch::Tensor& x) const;
  torch::Tensor in_blend(const torch::Tensor& x, const Rows& rows, const Call& call);
  double momentum_of_next() const;
  // At the end of a call: one that raises leaves the state as it was.
  void move(const Moves& moves);

  std::shared_ptr<RunningQuantiles> running_quantiles_;
};
TORCH_MODULE(QuantileActivation);

}  // namespace qact::nn
