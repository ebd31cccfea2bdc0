#include "qact/models/activation_checkpointing.h"

#include <torch/custom_class.h>
#include <torch/torch.h>

#include "qact/models/autocast.h"

namespace qact::models {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct Segment : torch::CustomClassHolder {
  std::function<torch::Tensor(const torch::Tensor&)> forward;
  std::vector<torch::Tensor> buffers;
  bool mixed_precision = false;
};

// Restores the values of tensors at the end of a scope.
class ValuesGuard {
 public:
  explicit ValuesGuard(const std::vector<torch::Tensor>& tensors) : tensors_(tensors) {
    for (const torch::Tensor& tensor : tensors) copies_.push_back(tensor.detach().clone());
  }
  ~ValuesGuard() {
    const torch::NoGradGuard no_grad;
    for (size_t i = 0; i < tensors_.size(); ++i) tensors_[i].copy_(copies_[i]);
  }
  ValuesGuard(const ValuesGuard&) = delete;
  ValuesGuard& operator=(const ValuesGuard&) = delete;

 private:
  const std::vector<torch::Tensor>& tensors_;
  std::vector<torch::Tensor> copies_;
};

class Checkpoint : public torch::autograd::Function<Checkpoint> {
 public:
  // `dummy` requires a gradient, so that backward() is called even where x needs none.
  static torch::Tensor forward(AutogradContext* ctx, const torch::Tensor& x,
                               const torch::Tensor& /*dummy*/,
                               c10::intrusive_ptr<Segment> segment) {
    ctx->save_for_backward({x});
    ctx->saved_data["x_requires_grad"] = x.requires_grad();
    const torch::Tensor y = segment->forward(x);
    ctx->saved_data["segment"] = c10::IValue::make_capsule(std::move(segment));
    return y;
  }

  static variable_list backward(AutogradContext* ctx, variable_list gradients) {
    const auto segment =
        c10::static_intrusive_pointer_cast<Segment>(ctx->saved_data["segment"].toCapsule());
    const torch::Tensor x = ctx->get_saved_variables()[0].detach();
    x.requires_grad_(ctx->saved_data["x_requires_grad"].toBool());
    {
      const torch::AutoGradMode with_graph(true);
      const ValuesGuard buffers(segment->buffers);
      const auto forward = [&] {
        const Autocast autocast(x.device().type(), segment->mixed_precision);
        return segment->forward(x);
      };
      torch::autograd::backward({forward()}, {gradients[0]});
    }
    return {x.grad(), torch::Tensor(), torch::Tensor()};
  }
};

}  // namespace

torch::Tensor checkpoint(const std::function<torch::Tensor(const torch::Tensor&)>& segment,
                         const std::vector<torch::Tensor>& buffers, const torch::Tensor& x) {
  if (!torch::GradMode::is_enabled()) return segment(x);
  auto saved = c10::make_intrusive<Segment>();
  saved->forward = segment;
  saved->buffers = buffers;
  saved->mixed_precision = Autocast::is_on(x.device().type());
  const torch::Tensor dummy = torch::empty({0}, torch::requires_grad());
  return Checkpoint::apply(x, dummy, std::move(saved));
}

}  // namespace qact::models
