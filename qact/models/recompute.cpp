#include "qact/models/recompute.h"

#include <torch/custom_class.h>
#include <torch/torch.h>

#include "qact/models/autocast.h"

namespace qact::models {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct Segment : torch::CustomClassHolder {
  std::function<torch::Tensor(const torch::Tensor&)> compute;
  std::vector<torch::Tensor> buffers;
  bool mixed_precision = false;
};

// Puts values back at the end.
class Restored {
 public:
  explicit Restored(const std::vector<torch::Tensor>& tensors) : tensors_(tensors) {
    for (const torch::Tensor& tensor : tensors) copies_.push_back(tensor.detach().clone());
  }
  ~Restored() {
    const torch::NoGradGuard no_grad;
    for (size_t i = 0; i < tensors_.size(); ++i) tensors_[i].copy_(copies_[i]);
  }
  Restored(const Restored&) = delete;
  Restored& operator=(const Restored&) = delete;

 private:
  const std::vector<torch::Tensor>& tensors_;
  std::vector<torch::Tensor> copies_;
};

class Recomputed : public torch::autograd::Function<Recomputed> {
 public:
  // `anchor` requires a gradient, so that the backward pass comes by where x needs none.
  static torch::Tensor forward(AutogradContext* ctx, const torch::Tensor& x,
                               const torch::Tensor& /*anchor*/, c10::intrusive_ptr<Segment> part) {
    ctx->save_for_backward({x});
    ctx->saved_data["x_requires_grad"] = x.requires_grad();
    const torch::Tensor y = part->compute(x);
    ctx->saved_data["part"] = c10::IValue::make_capsule(std::move(part));
    return y;
  }

  static variable_list backward(AutogradContext* ctx, variable_list gradients) {
    const auto part =
        c10::static_intrusive_pointer_cast<Segment>(ctx->saved_data["part"].toCapsule());
    const torch::Tensor x = ctx->get_saved_variables()[0].detach();
    x.requires_grad_(ctx->saved_data["x_requires_grad"].toBool());
    {
      const torch::AutoGradMode with_graph(true);
      const Restored restored(part->buffers);
      const auto compute = [&] {
        const Autocast autocast(x.device().type(), part->mixed_precision);
        return part->compute(x);
      };
      torch::autograd::backward({compute()}, {gradients[0]});
    }
    return {x.grad(), torch::Tensor(), torch::Tensor()};
  }
};

}  // namespace

torch::Tensor recomputed(const std::function<torch::Tensor(const torch::Tensor&)>& part,
                         const std::vector<torch::Tensor>& buffers, const torch::Tensor& x) {
  if (!torch::GradMode::is_enabled()) return part(x);
  auto kept = c10::make_intrusive<Segment>();
  kept->compute = part;
  kept->buffers = buffers;
  kept->mixed_precision = Autocast::is_on(x.device().type());
  const torch::Tensor anchor = torch::empty({0}, torch::requires_grad());
  return Recomputed::apply(x, anchor, std::move(kept));
}

}  // namespace qact::models
