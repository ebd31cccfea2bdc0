// Modules over several ranks against one that has all images: outputs, gradients, running state.
#include "qact/nn/process_group.h"

#include <gtest/gtest.h>

#include "qact/nn/batch_norm.h"
#include "qact/nn/instance_batch_norm.h"
#include "qact/nn/quantile_activation.h"
#include "tests/nn/thread_group.h"

namespace qact::tests {
namespace {

using torch::Tensor;
using Split = std::vector<int64_t>;

// What a step leaves: y and the gradient of x by image, the parameters' gradients, the buffers.
struct Step {
  Tensor y, grad_x;
  std::vector<Tensor> gradients, buffers;
};

template <class Module>
Step step(Module& module, const Tensor& images, const Tensor& grad_y) {
  const Tensor x = images.detach().requires_grad_();
  const Tensor y = module->forward(x);
  y.backward(grad_y);
  Step out{y.detach(), x.grad(), {}, {}};
  for (const Tensor& parameter : module->parameters()) out.gradients.push_back(parameter.grad());
  for (const Tensor& buffer : module->buffers()) out.buffers.push_back(buffer.clone());
  return out;
}

// make() gives equal modules.
template <class Make>
std::vector<Step> steps(const Make& make, const Tensor& x, const Tensor& grad_y,
                        const Split& split) {
  std::vector<Step> out(split.size());
  on_ranks(static_cast<int>(split.size()), [&](int rank, const std::string& group) {
    int64_t first = 0;
    for (int r = 0; r < rank; ++r) first += split[r];
    auto module = make();
    nn::set_process_group(*module, group);
    out[rank] = step(module, x.narrow(0, first, split[rank]), grad_y.narrow(0, first, split[rank]));
  });
  return out;
}

bool near(const Tensor& a, const Tensor& b, double bound) {
  return torch::allclose(a.to(torch::kDouble), b.to(torch::kDouble), bound, bound);
}

// In norm.
bool close(const Tensor& a, const Tensor& b, double bound) {
  return ((a - b).norm() <= bound * (1 + b.norm())).item<bool>();
}

template <class Make>
void expect_one_process(const Make& make, const Tensor& x, double bound, double of_gradients = 0) {
  if (of_gradients == 0) of_gradients = bound;
  const Tensor grad_y = torch::randn_like(x) + 0.2;
  auto alone = make();
  const Step expected = step(alone, x, grad_y);
  for (const Split& split : {Split{6}, Split{1, 5}, Split{2, 0, 3, 1}}) {
    SCOPED_TRACE(::testing::PrintToString(split));
    const std::vector<Step> found = steps(make, x, grad_y, split);
    std::vector<Tensor> y, grad_x;
    for (const Step& of_rank : found) {
      y.push_back(of_rank.y);
      grad_x.push_back(of_rank.grad_x);
      for (size_t i = 0; i < expected.buffers.size(); ++i) {
        EXPECT_TRUE(near(of_rank.buffers[i], expected.buffers[i], bound)) << i;
        EXPECT_TRUE(torch::equal(of_rank.buffers[i], found[0].buffers[i])) << i;
      }
    }
    EXPECT_TRUE(near(torch::cat(y), expected.y, bound));
    EXPECT_TRUE(close(torch::cat(grad_x), expected.grad_x, of_gradients));
    for (size_t i = 0; i < expected.gradients.size(); ++i) {
      Tensor sum = torch::zeros_like(expected.gradients[i]);
      for (const Step& of_rank : found) sum += of_rank.gradients[i];
      EXPECT_TRUE(close(sum, expected.gradients[i], of_gradients)) << i;
    }
    if (::testing::Test::HasFailure()) return;
  }
}

template <class Module>
auto in_double(Module module) {
  torch::NoGradGuard no_grad;
  module->to(torch::kDouble);
  int i = 0;
  for (Tensor& parameter : module->parameters()) {
    parameter.copy_(torch::linspace(0.5, 1.5, parameter.size(0), torch::kDouble) * ++i / 2);
  }
  return module;
}

Tensor images(int64_t spatial) { return torch::randn({6, 4, spatial, 5}, torch::kDouble); }

// Contexts that are shorter than their table, of 90 values here, have gradients by code over
// several processes, and by value in one.
TEST(ProcessGroup, QuantileActivationIsOneProcesss) {
  for (const int64_t spatial : {3, 90}) {
    for (const double share : {0.0, 0.5, 1.0}) {
      SCOPED_TRACE(share);
      expect_one_process(
          [&] {
            return in_double(
                nn::QuantileActivation(nn::QuantileActivationOptions(4).image_share(share)));
          },
          images(spatial), 1e-9, spatial == 3 ? 0.02 : 1e-9);
      if (HasFailure()) return;
    }
  }
}

TEST(ProcessGroup, BatchNormIsOneProcesss) {
  for (const bool relu : {false, true}) {
    for (const std::optional<double> momentum : {std::optional<double>(0.1), {}}) {
      expect_one_process(
          [&] {
            return in_double(nn::BatchNorm(nn::BatchNormOptions(4).relu(relu).momentum(momentum)));
          },
          images(7), 1e-9);
    }
  }
  expect_one_process([] { return nn::BatchNorm(4); }, images(7).to(torch::kFloat), 1e-4);
}

TEST(ProcessGroup, InstanceBatchNormIsOneProcesss) {
  expect_one_process([] { return in_double(nn::InstanceBatchNorm(4)); }, images(7), 1e-9);
}

// Without any group: no image needs another.
TEST(ProcessGroup, ImagesMayBeNone) {
  nn::QuantileActivation activation(nn::QuantileActivationOptions(4).scope(nn::Scope::image));
  const Tensor x = torch::randn({0, 4, 3, 5});
  const Step found = step(activation, x, x);
  EXPECT_EQ(found.y.sizes(), x.sizes());
  for (const Tensor& gradient : found.gradients)
    EXPECT_TRUE(torch::all(gradient == 0).item<bool>());
}

// The scope world of one process alone is that of any number, to the last bit.
TEST(ProcessGroup, RanksChangeNoBit) {
  for (const auto type : {torch::kFloat, torch::kDouble, torch::kBFloat16}) {
    const Tensor x = images(90).to(type);
    const auto make = [] {
      return nn::QuantileActivation(nn::QuantileActivationOptions(4).image_share(0.25));
    };
    auto alone = make();
    alone->options.scope(nn::Scope::world);
    const Step expected = step(alone, x, torch::ones_like(x));
    for (const Split& split : {Split{6}, Split{1, 5}, Split{2, 0, 3, 1}}) {
      std::vector<Tensor> y;
      for (const Step& of_rank : steps(make, x, torch::ones_like(x), split)) {
        y.push_back(of_rank.y);
        for (size_t i = 0; i < expected.buffers.size(); ++i) {
          EXPECT_TRUE(torch::equal(of_rank.buffers[i], expected.buffers[i])) << i;
        }
      }
      EXPECT_TRUE(torch::equal(torch::cat(y), expected.y));
    }
  }
}

// Sums over ranks are in double, in an order of their own.
TEST(ProcessGroup, PriorAndStreamAreOneProcesss) {
  for (const nn::ContextMode mode : {nn::ContextMode::prior, nn::ContextMode::stream}) {
    for (const double share : {0.0, 0.5}) {
      SCOPED_TRACE(std::to_string(static_cast<int>(mode)) + " " + std::to_string(share));
      expect_one_process(
          [&] {
            nn::QuantileActivationOptions options(4);
            auto out = in_double(
                nn::QuantileActivation(options.image_share(share).context_mode(mode).prior(3)));
            out->eval();
            return out;
          },
          images(90), 1e-9);
      if (HasFailure()) return;
    }
  }
}

// Which has no gradients there.
TEST(ProcessGroup, BatchNormsPriorAndStreamAreOneProcesss) {
  const Split split = {2, 0, 3, 1};
  const Tensor x = images(7);
  for (const nn::ContextMode mode : {nn::ContextMode::prior, nn::ContextMode::stream}) {
    const auto run = [&](const Tensor& own, const std::string& group) {
      torch::NoGradGuard no_grad;
      auto norm = in_double(nn::BatchNorm(nn::BatchNormOptions(4).context_mode(mode).prior(3)));
      norm->eval();
      nn::set_process_group(*norm, group);
      const Tensor y = norm->forward(own);
      return std::pair(y, norm->running_var);
    };
    const auto [y, var] = run(x, "");
    std::vector<std::pair<Tensor, Tensor>> found(4);
    on_ranks(4, [&](int rank, const std::string& group) {
      found[rank] = run(x.split_with_sizes(split)[rank], group);
    });
    std::vector<Tensor> parts;
    for (const auto& [own, own_var] : found) {
      parts.push_back(own);
      EXPECT_TRUE(near(own_var, var, 1e-9));
    }
    EXPECT_TRUE(near(torch::cat(parts), y, 1e-9));
  }
}

TEST(ProcessGroup, TrackedCommunicatesNothing) {
  const Tensor x = images(7).to(torch::kFloat);
  EXPECT_EQ(on_ranks(2,
                     [&](int rank, const std::string& group) {
                       nn::QuantileActivation activation(4);
                       nn::BatchNorm norm(4);
                       nn::set_process_group(*activation, group);
                       nn::set_process_group(*norm, group);
                       activation->eval();
                       norm->eval();
                       if (rank == 0) norm->forward(activation->forward(x));
                     }),
            0);
}

std::string message_of_call(const std::function<void()>& call) {
  try {
    call();
  } catch (const c10::Error& error) {
    return error.what_without_backtrace();
  }
  return "";
}

TEST(ProcessGroup, RefusesWhatWouldBeLocal) {
  nn::QuantileActivation bare(nn::QuantileActivationOptions(4).norm_out(false));
  EXPECT_EQ(message_of_call([&] { nn::set_process_group(*bare, "world"); }),
            "[set_process_group] expected norm_in and norm_out of every quantile activation, got "
            "norm_in on, norm_out off");
  EXPECT_EQ(message_of_call([] {
              nn::QuantileActivation(nn::QuantileActivationOptions(4).process_group("world"));
            }),
            "[QuantileActivation] expected a process_group with the scope world alone, got "
            "'world'");
}

}  // namespace
}  // namespace qact::tests
