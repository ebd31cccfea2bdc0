// The module: its modes, what it tracks, and that fused and composed layers agree.
#include "qact/nn/quantile_activation.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <functional>
#include <limits>
#include <sstream>

#include "qact/core/context.h"
#include "qact/ops/context.h"
#include "qact/ops/quantile_activation.h"
#include "tests/ops/cases.h"

namespace qact::tests {
namespace {

using nn::ContextMode;
using nn::QuantileActivation;
using nn::QuantileActivationOptions;

double difference(const torch::Tensor& a, const torch::Tensor& b) {
  return (a - b).abs().max().item<double>();
}

// Two modules with the same state.
void expect_same_state(const torch::nn::Module& a, const torch::nn::Module& b) {
  const auto left = a.named_buffers(), right = b.named_buffers();
  ASSERT_EQ(left.size(), right.size());
  for (const auto& entry : left) {
    EXPECT_TRUE(torch::equal(entry.value(), right[entry.key()])) << entry.key();
  }
  for (const auto& entry : a.named_parameters()) {
    EXPECT_TRUE(torch::equal(entry.value(), b.named_parameters()[entry.key()])) << entry.key();
  }
}

// Norm, activation, norm, from torch's BatchNorm and the plain operator.
struct Composed {
  torch::nn::BatchNorm2d in, out;

  explicit Composed(int64_t channels) : in(channels), out(channels) {
    // The module starts from the moments of a uniform activation.
    out->running_mean.fill_(0.5);
    out->running_var.fill_(1.0 / 12);
  }
  torch::Tensor forward(const torch::Tensor& x) { return out(ops::quantile_activation(in(x))); }
};

// Strokes on a constant background: in every mode it has the level that it had in training.
TEST(QuantileActivation, RanksAConstantBackgroundAlikeInEveryMode) {
  torch::manual_seed(4);
  const auto images = [] {
    const torch::Tensor noise = torch::randn({64, 3, 12, 12});
    return torch::where(torch::rand({64, 1, 12, 12}) < 0.25, 1 + noise, torch::full({}, -0.3));
  };
  for (const bool norms : {true, false}) {
    QuantileActivation layer(QuantileActivationOptions(3).norm_in(norms).norm_out(norms));
    for (int i = 0; i < 60; ++i) layer->forward(images());
    const torch::Tensor x = images(), trained = layer->forward(x);
    layer->eval();
    for (const ContextMode mode : {ContextMode::tracked, ContextMode::prior, ContextMode::stream}) {
      layer->options.context_mode(mode);
      const torch::Tensor off = (layer->forward(x) - trained).abs();
      EXPECT_LT(off.mean().item<double>(), 0.05) << norms << static_cast<int>(mode);
    }
  }
}

TEST(QuantileActivation, FusedIsBatchNormAroundThePlainOperator) {
  torch::manual_seed(1);
  QuantileActivation fused(4);
  Composed composed(4);
  const auto set = [](torch::Tensor t, double low) {
    torch::NoGradGuard no_grad;
    t.copy_(torch::linspace(low, low + 1, 4));
  };
  set(fused->weight_in, 0.5), set(composed.in->weight, 0.5);
  set(fused->bias_in, -0.5), set(composed.in->bias, -0.5);
  set(fused->weight_out, 1.0), set(composed.out->weight, 1.0);
  set(fused->bias_out, -0.2), set(composed.out->bias, -0.2);
  for (int batch = 0; batch < 2; ++batch) {
    const torch::Tensor values = torch::randn({32, 4, 8, 8}) * 2 + 1,
                        grad = torch::randn_like(values);
    const torch::Tensor a = values.clone().requires_grad_(), b = values.clone().requires_grad_();
    fused->zero_grad(), composed.in->zero_grad(), composed.out->zero_grad();
    const torch::Tensor y = fused(a), expected = composed.forward(b);
    y.backward(grad), expected.backward(grad);
    EXPECT_LE(difference(y, expected), 2 * 0.015 / std::sqrt(1.0 / 12) * 2);
    // Two roundings of z may part a few values from their level; gradients by code are off by less
    // than 1%, in sums of 2,048 terms.
    EXPECT_LE((y - expected).norm().item<double>(), 0.002 * expected.norm().item<double>());
    EXPECT_LE((a.grad() - b.grad()).norm().item<double>(), 0.01 * b.grad().norm().item<double>());
    const double allowed = 0.8;
    EXPECT_LE(difference(fused->weight_in.grad(), composed.in->weight.grad()), allowed);
    EXPECT_LE(difference(fused->bias_in.grad(), composed.in->bias.grad()), allowed);
    EXPECT_LE(difference(fused->weight_out.grad(), composed.out->weight.grad()), allowed);
    EXPECT_LE(difference(fused->bias_out.grad(), composed.out->bias.grad()), 1e-3);
  }
  EXPECT_LE(difference(fused->running_mean_in, composed.in->running_mean), 1e-5);
  EXPECT_LE(difference(fused->running_var_in, composed.in->running_var), 1e-4);
  EXPECT_LE(difference(fused->running_mean_out, composed.out->running_mean), 1e-3);
  EXPECT_LE(difference(fused->running_var_out, composed.out->running_var), 1e-3);
}

TEST(QuantileActivation, NormsAreOptional) {
  torch::manual_seed(2);
  const torch::Tensor x = torch::randn({50, 3, 4});
  QuantileActivation plain(QuantileActivationOptions(3).norm_in(false).norm_out(false));
  EXPECT_TRUE(plain->parameters().empty());
  EXPECT_TRUE(torch::equal(plain(x), ops::quantile_activation(x)));

  torch::nn::BatchNorm1d norm(3);
  QuantileActivation inner(QuantileActivationOptions(3).norm_out(false));
  EXPECT_EQ(inner->parameters().size(), 2u);
  EXPECT_TRUE(torch::equal(inner(x), ops::quantile_activation(norm(x))));
  EXPECT_TRUE(torch::equal(inner->running_mean_in, norm->running_mean));

  torch::nn::BatchNorm1d last(3);
  QuantileActivation outer(QuantileActivationOptions(3).norm_in(false));
  EXPECT_LE(difference(outer(x), last(ops::quantile_activation(x))), 1e-6);
}

// The first channels as one layer in the scope of images, the others as one in the batch's.
struct Halves {
  QuantileActivation image, batch;

  Halves(int64_t image_channels, int64_t others)
      : image(QuantileActivationOptions(image_channels).scope(nn::Scope::image)), batch(others) {}

  torch::Tensor forward(const torch::Tensor& x) {
    const int64_t first = image->options.num_features();
    return torch::cat({image(x.narrow(1, 0, first)), batch(x.narrow(1, first, x.size(1) - first))},
                      1);
  }
};

TEST(QuantileActivation, SplitsItsChannelsBetweenImageAndBatchInEveryMode) {
  torch::manual_seed(31);
  QuantileActivation split(QuantileActivationOptions(5).image_share(0.5));
  Halves halves(2, 3);
  for (int step = 0; step < 3; ++step) {
    const torch::Tensor values = torch::randn({6, 5, 7, 5}) * 2 + step;
    const torch::Tensor a = values.clone().requires_grad_(), b = values.clone().requires_grad_();
    const torch::Tensor y = split(a), expected = halves.forward(b);
    EXPECT_TRUE(torch::equal(y, expected));
    y.square().sum().backward(), expected.square().sum().backward();
    EXPECT_TRUE(torch::equal(a.grad(), b.grad()));
  }
  EXPECT_TRUE(torch::equal(split->context.narrow(0, 2, 3), halves.batch->context));
  EXPECT_TRUE(torch::equal(split->running_mean_in.narrow(0, 2, 3), halves.batch->running_mean_in));
  EXPECT_EQ(split->num_batches_tracked.item<int64_t>(), 3);
  // An image's context is of no use to others: those rows stay as they began.
  EXPECT_TRUE(torch::equal(split->context.narrow(0, 0, 2), ops::context_standard_normal(2)));
  EXPECT_EQ(split->running_mean_in.narrow(0, 0, 2).abs().max().item<double>(), 0);

  split->eval(), halves.image->eval(), halves.batch->eval();
  for (const auto format : {torch::MemoryFormat::Contiguous, torch::MemoryFormat::ChannelsLast}) {
    const torch::Tensor x = torch::randn({4, 5, 6, 6}).contiguous(format);
    for (const ContextMode mode :
         {ContextMode::batch, ContextMode::tracked, ContextMode::prior, ContextMode::stream}) {
      for (torch::nn::Module* module : {static_cast<torch::nn::Module*>(split.get()),
                                        static_cast<torch::nn::Module*>(halves.image.get()),
                                        static_cast<torch::nn::Module*>(halves.batch.get())}) {
        nn::set_context_mode(*module, mode);
      }
      const torch::Tensor y = split(x);
      EXPECT_TRUE(torch::equal(y, halves.forward(x)));
      EXPECT_TRUE(y.is_contiguous(format));
      if (mode != ContextMode::tracked) continue;
      const torch::NoGradGuard no_grad;  // both halves are written to one output
      EXPECT_TRUE(torch::equal(split(x), y));
      EXPECT_TRUE(split(x).is_contiguous(format));
    }
  }
}

TEST(QuantileActivation, AnImageOfItsOwnDoesNotSeeTheOthers) {
  torch::manual_seed(32);
  QuantileActivation layer(QuantileActivationOptions(3).scope(nn::Scope::image));
  const torch::Tensor x = torch::randn({5, 3, 9, 9});
  const torch::Tensor all = layer(x), one = layer(x.narrow(0, 2, 1));
  EXPECT_TRUE(torch::equal(all.narrow(0, 2, 1), one));
  layer->eval();
  EXPECT_TRUE(torch::equal(layer(x), all));
}

TEST(QuantileActivation, TakesNoStatisticsFromNoImages) {
  QuantileActivation layer(QuantileActivationOptions(3).scope(nn::Scope::world));
  layer->eval();
  for (const ContextMode mode : {ContextMode::prior, ContextMode::stream}) {
    nn::set_context_mode(*layer, mode);
    const std::string message = message_of([&] { layer(torch::empty({0, 3, 4, 4})); });
    EXPECT_NE(message.find("expected images to take statistics from, got none"), std::string::npos)
        << message;
    EXPECT_TRUE(layer->running_mean_in.isfinite().all().item<bool>());
  }
}

TEST(QuantileActivation, RanksGroupsOfImages) {
  torch::manual_seed(33);
  QuantileActivation layer(QuantileActivationOptions(3).scope(nn::Scope::group).group_images(4));
  QuantileActivation batch(3);
  const torch::Tensor x = torch::randn({10, 3, 4, 4});
  const torch::Tensor y = layer(x);
  for (int64_t first = 0; first < 10; first += 4) {
    const int64_t images = std::min<int64_t>(4, 10 - first);
    EXPECT_TRUE(torch::equal(y.narrow(0, first, images), batch(x.narrow(0, first, images))));
  }
}

TEST(QuantileActivation, RefusesScopesThatItCannotHave) {
  const auto message = [](const QuantileActivationOptions& options) -> std::string {
    try {
      QuantileActivation layer(options);
    } catch (const c10::Error& error) {
      return error.what_without_backtrace();
    }
    return "";
  };
  const QuantileActivationOptions three(3);
  EXPECT_EQ(message(QuantileActivationOptions(three).image_share(1.5)),
            "[QuantileActivation] expected image_share in [0, 1], got 1.5");
  EXPECT_EQ(message(QuantileActivationOptions(three).scope(nn::Scope::group)),
            "[QuantileActivation] expected group_images > 0 with the scope group, and 0 with "
            "others, got 0");
  EXPECT_EQ(message(QuantileActivationOptions(three).image_share(0.5).norm_out(false)),
            "[QuantileActivation] expected norm_in and norm_out with a scope other than batch, got "
            "norm_in 1, norm_out 0");
  QuantileActivation half(QuantileActivationOptions(4).image_share(0.5));
  EXPECT_THROW(half(torch::randn({8, 4})), c10::Error);
}

TEST(QuantileActivation, AffineInCanBeHeldFixed) {
  torch::manual_seed(3);
  QuantileActivation fixed(QuantileActivationOptions(3).affine_in(false)), free(3);
  EXPECT_EQ(fixed->parameters().size(), 2u);
  EXPECT_FALSE(fixed->weight_in.defined());
  const torch::Tensor x = torch::randn({16, 3, 5, 5}) * 2;
  EXPECT_TRUE(torch::equal(fixed(x), free(x)));
  for (const ContextMode mode :
       {ContextMode::batch, ContextMode::tracked, ContextMode::prior, ContextMode::stream}) {
    fixed->eval(), free->eval();
    nn::set_context_mode(*fixed, mode), nn::set_context_mode(*free, mode);
    EXPECT_LE(difference(fixed(x), free(x)), 1e-5);
  }
  QuantileActivation inner(QuantileActivationOptions(3).affine_in(false).norm_out(false));
  EXPECT_TRUE(inner->parameters().empty());
  EXPECT_EQ(inner(x).sizes(), x.sizes());
}

TEST(QuantileActivation, TrainUsesTheBatchAndEvalTheTrackedContext) {
  torch::manual_seed(4);
  QuantileActivation layer(2);
  for (int batch = 0; batch < 60; ++batch) layer(torch::randn({64, 2, 4, 4}) * 3 + 2);
  EXPECT_EQ(layer->num_batches_tracked.item<int64_t>(), 60);
  layer->eval();
  const torch::Tensor x = torch::randn({64, 2, 4, 4}) * 3 + 2;
  const torch::Tensor tracked = layer(x);
  // Samples do not see each other, and nothing is tracked.
  EXPECT_TRUE(torch::equal(layer(x.narrow(0, 5, 1)), tracked.narrow(0, 5, 1)));
  EXPECT_EQ(layer->num_batches_tracked.item<int64_t>(), 60);
  // The tracked context is much like a batch's own.
  nn::set_context_mode(*layer, ContextMode::batch);
  const torch::Tensor batch = layer(x);
  EXPECT_LE((batch - tracked).abs().mean().item<double>(), 0.1);
  layer->train();
  EXPECT_TRUE(torch::equal(layer(x), batch));
}

TEST(QuantileActivation, TrackedFollowsWhatWasSeenAndBatchWhatIsShown) {
  torch::manual_seed(5);
  QuantileActivation layer(1);
  for (int batch = 0; batch < 80; ++batch) layer(torch::randn({256, 1}));
  layer->eval();
  const torch::Tensor shifted = torch::randn({256, 1}) + 5;
  const auto mean_in = [&](ContextMode mode, double prior = 16) {
    nn::set_context_mode(*layer, mode, prior);
    return layer(shifted).mean().item<double>();
  };
  const double tracked = mean_in(ContextMode::tracked), batch = mean_in(ContextMode::batch);
  EXPECT_GT(tracked, 1.5);  // all near the top of what was seen
  EXPECT_NEAR(batch, 0, 1e-5);
  // The prior moves from one to the other with the number of images that it counts as.
  const double weak = mean_in(ContextMode::prior, 16), strong = mean_in(ContextMode::prior, 4096);
  EXPECT_LT(weak, 0.5);
  EXPECT_LT(weak, strong);
  EXPECT_LT(strong, tracked + 1e-3);
  EXPECT_NEAR(mean_in(ContextMode::prior, 0), batch, 0.02);
  EXPECT_NEAR(mean_in(ContextMode::prior, 1e9), tracked, 0.02);
}

TEST(QuantileActivation, StreamDriftsAndKeepsIt) {
  torch::manual_seed(6);
  QuantileActivation layer(1);
  for (int batch = 0; batch < 80; ++batch) layer(torch::randn({256, 1}));
  layer->eval();
  nn::set_context_mode(*layer, ContextMode::stream);
  const torch::Tensor shifted = torch::randn({256, 1}) + 5;
  const double first = layer(shifted).mean().item<double>();
  for (int batch = 1; batch < 39; ++batch) layer(shifted);
  const double last = layer(shifted).mean().item<double>();
  EXPECT_GT(first, 1.0);
  EXPECT_NEAR(last, 0, 0.25);
  EXPECT_EQ(layer->num_batches_tracked.item<int64_t>(), 120);
  EXPECT_NEAR(layer->running_mean_in.item<double>(), 5, 0.3);
}

TEST(QuantileActivation, MomentumWeighsTheLastBatch) {
  torch::manual_seed(7);
  const torch::Tensor first = torch::randn({100, 1, 20}), second = torch::randn({100, 1, 20}) + 4;
  const auto tracked_by = [&](std::optional<double> momentum) {
    QuantileActivation layer(QuantileActivationOptions(1).momentum(momentum));
    layer(first), layer(second);
    return layer;
  };
  EXPECT_NEAR(tracked_by(1.0)->running_mean_in.item<double>(), 4, 0.1);
  EXPECT_NEAR(tracked_by(0.0)->running_mean_in.item<double>(), 0, 1e-6);
  EXPECT_NEAR(tracked_by(std::nullopt)->running_mean_in.item<double>(), 2, 0.1);

  const torch::Tensor start = ops::context_standard_normal(1);
  EXPECT_TRUE(torch::equal(tracked_by(0.0)->context, ops::context_blend(start, 2000, start, 0)));
  QuantileActivation only_second(QuantileActivationOptions(1).momentum(1.0));
  only_second(second);
  EXPECT_TRUE(torch::equal(tracked_by(1.0)->context, only_second->context));
}

TEST(QuantileActivation, AKeptContextIsWorthAtLeast1024Values) {
  torch::manual_seed(8);
  QuantileActivation fused(2), plain(QuantileActivationOptions(2).norm_in(false).norm_out(false));
  const int64_t least = 1024 * core::kContextUnit;
  for (QuantileActivation layer : {fused, plain}) {
    layer->forward(torch::randn({400, 2, 10}));
    EXPECT_TRUE((layer->context.sum(1) == 4000 * core::kContextUnit).all().item<bool>());
    // A last batch of two values must not leave the context to the appended -c and c.
    layer->forward(torch::randn({2, 2}));
    EXPECT_TRUE((layer->context.sum(1) == least).all().item<bool>());
  }
  const torch::Tensor q = ops::context_quantiles(plain->context);
  EXPECT_LT(q.abs().max().item<double>(), 5);
  plain->eval();
  nn::set_context_mode(*plain, ContextMode::stream);
  plain->forward(torch::randn({1, 2}));
  EXPECT_TRUE((plain->context.sum(1) == least).all().item<bool>());
}

TEST(QuantileActivation, StateSurvivesSavingCloningAndResetting) {
  torch::manual_seed(9);
  QuantileActivation layer(3);
  for (int batch = 0; batch < 3; ++batch) layer(torch::randn({20, 3, 4}) + 1);
  std::stringstream file;
  torch::save(layer, file);
  QuantileActivation loaded(3);
  torch::load(loaded, file);
  expect_same_state(*layer, *loaded);

  nn::set_context_mode(*layer, ContextMode::stream);
  const auto clone = std::dynamic_pointer_cast<nn::QuantileActivationImpl>(layer->clone());
  expect_same_state(*layer, *clone);
  EXPECT_EQ(clone->options.context_mode(), ContextMode::stream);
  layer->forward(torch::randn({20, 3, 4}));
  EXPECT_EQ(clone->num_batches_tracked.item<int64_t>(), 3);  // a copy, not a view

  layer->reset_running_stats();
  expect_same_state(*QuantileActivation(3), *layer);
}

TEST(QuantileActivation, TypesChangeButCountsStayIntegers) {
  torch::nn::Sequential network(QuantileActivation(2), torch::nn::ReLU());
  for (const auto type : {torch::kDouble, torch::kHalf, torch::kBFloat16, torch::kFloat}) {
    network->to(type);
    const auto buffers = network->named_buffers();
    EXPECT_EQ(buffers["0.context"].scalar_type(), torch::kLong);
    EXPECT_EQ(buffers["0.num_batches_tracked"].scalar_type(), torch::kLong);
    EXPECT_EQ(buffers["0.running_var_in"].scalar_type(), type);
    for (const bool training : {true, false}) {
      network->train(training);
      EXPECT_EQ(network->forward(torch::randn({8, 2, 3}).to(type)).scalar_type(), type);
    }
  }
}

TEST(QuantileActivation, NarrowInputsAndWideParameters) {
  torch::manual_seed(10);
  for (const auto type : {torch::kBFloat16, torch::kHalf, torch::kDouble}) {
    QuantileActivation layer(2);
    for (const ContextMode mode :
         {ContextMode::batch, ContextMode::tracked, ContextMode::prior, ContextMode::stream}) {
      nn::set_context_mode(*layer, mode);
      for (const bool training : {true, false}) {
        layer->train(training);
        const torch::Tensor x = torch::randn({8, 2, 3, 3}).to(type).requires_grad_();
        const torch::Tensor y = layer(x);
        y.sum().backward();
        EXPECT_EQ(y.scalar_type(), type);
        EXPECT_TRUE(torch::isfinite(x.grad()).all().item<bool>());
      }
    }
  }
}

TEST(QuantileActivation, EveryModeTrainsTheParameters) {
  torch::manual_seed(11);
  for (const ContextMode mode :
       {ContextMode::batch, ContextMode::tracked, ContextMode::prior, ContextMode::stream}) {
    QuantileActivation layer(2);
    layer->eval();
    nn::set_context_mode(*layer, mode);
    const torch::Tensor x = torch::randn({32, 2, 4}).requires_grad_();
    (layer(x) * torch::randn({32, 2, 4})).sum().backward();
    EXPECT_GT(x.grad().norm().item<double>(), 0);
    for (const auto& parameter : layer->parameters()) {
      EXPECT_GT(parameter.grad().norm().item<double>(), 0);
    }
  }
}

TEST(QuantileActivation, RankTellsApartWhatTies) {
  torch::manual_seed(12);
  QuantileActivation layer(QuantileActivationOptions(1).norm_out(false).levels(10));
  const torch::Tensor x = torch::randn({200, 1});
  for (const bool training : {true, false}) {
    layer->train(training);
    const torch::Tensor before = layer->context.clone(), rank = layer->rank(x);
    EXPECT_EQ(std::get<0>(torch::_unique2(rank)).numel(), 200);
    EXPECT_TRUE(torch::equal(x.argsort(int64_t{0}), rank.argsort(int64_t{0})));
    EXPECT_TRUE(torch::equal(before, layer->context));
  }
  EXPECT_EQ(message_of([] { QuantileActivation(1)->rank(torch::randn({3, 1})); }),
            "[QuantileActivation] expected norm_out to be off for rank()");
}

// Quantiles of the running context are computed once: every way of changing it must be noticed.
TEST(QuantileActivation, TrackedSeesEveryChangeOfTheContext) {
  torch::manual_seed(8);
  QuantileActivation layer(2);
  const torch::Tensor x = torch::randn({40, 2, 3, 3});
  const auto tracked = [&] {
    layer->eval();
    return layer->forward(x);
  };
  const auto fresh = [&] {  // the same state in a layer that has computed nothing yet
    QuantileActivation other(2);
    other->options = layer->options;
    torch::NoGradGuard no_grad;
    for (const auto& item : layer->named_parameters()) {
      other->named_parameters()[item.key()].copy_(item.value());
    }
    for (const auto& item : layer->named_buffers()) {
      other->named_buffers()[item.key()].copy_(item.value());
    }
    other->eval();
    return other->forward(x);
  };
  const std::vector<std::function<void()>> changes = {
      [] {},
      [&] {
        layer->train();
        layer->forward(x * x);
      },
      [&] { layer->context.copy_(ops::context_build(x.abs())); },
      [&] { layer->context.set_data(ops::context_build(x - 2)); },
      [&] { layer->context.set_data(ops::context_build(x + 2)); },
      [&] { layer->reset_running_stats(); },
      [&] { layer->options.levels(20); },
      [&] { layer->options.positive_share(0.8); },
      [&] { layer->options.bound(2); },
      [&] {
        layer->options.context_mode(ContextMode::stream);
        layer->forward(x * 3);
        layer->options.context_mode(ContextMode::tracked);
      },
      [&] { layer->to(torch::kDouble), layer->to(torch::kFloat); },
      [&] {  // two contexts in one storage
        const torch::Tensor both =
            torch::stack({ops::context_build(x * 5), ops::context_build(x.square())});
        layer->context.set_data(both[0]);
        layer->forward(x);
        layer->context.set_data(both[1]);
      },
  };
  for (size_t i = 0; i < changes.size(); ++i) {
    tracked();
    changes[i]();
    EXPECT_TRUE(torch::equal(tracked(), fresh())) << "change " << i;
  }
  layer->reset_running_stats();
  {
    const c10::InferenceMode inference;
    tracked();
  }
  tracked().sum().backward();  // what was computed there serves gradients, too
}

// A tangent is refused in the middle of a pass, when statistics are known.
TEST(QuantileActivation, ACallThatRaisesLeavesTheStateAsItWas) {
  const torch::NoGradGuard no_grad;
  using Options = QuantileActivationOptions;
  for (const bool training : {true, false}) {
    for (const Options& options : {Options(4), Options(4).norm_out(false),
                                   Options(4).norm_in(false), Options(4).image_share(0.5)}) {
      QuantileActivation layer(Options(options).context_mode(ContextMode::stream));
      layer(torch::randn({20, 4, 3, 3}) + 2);
      layer->train(training);
      const torch::Tensor x = torch::randn({20, 4, 3, 3});
      const uint64_t level = torch::autograd::forward_ad::enter_dual_level();
      x._set_fw_grad(torch::ones_like(x), level, /*is_inplace_op=*/false);
      QuantileActivation before(options);
      for (const auto& buffer : layer->named_buffers()) {
        before->named_buffers()[buffer.key()].copy_(buffer.value());
      }
      EXPECT_NE(message_of([&] { layer(x); }), "");
      torch::autograd::forward_ad::exit_dual_level(level);
      expect_same_state(*layer, *before);
    }
  }
}

TEST(QuantileActivation, TrackedRefusesTangents) {
  const torch::NoGradGuard no_grad;
  for (const double share : {0.0, 0.5, 1.0}) {
    QuantileActivation layer(QuantileActivationOptions(4).image_share(share));
    layer->eval();
    const torch::Tensor x = torch::randn({2, 4, 3, 3});
    const uint64_t level = torch::autograd::forward_ad::enter_dual_level();
    x._set_fw_grad(torch::ones_like(x), level, /*is_inplace_op=*/false);
    EXPECT_NE(message_of([&] { layer(x); }).find("without tangents"), std::string::npos) << share;
    torch::autograd::forward_ad::exit_dual_level(level);
  }
}

TEST(QuantileActivation, RefusesWhatItCannotUse) {
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  const std::string name = "[QuantileActivation] expected ";
  const auto with = [](QuantileActivationOptions options) {
    return message_of([&] { QuantileActivation layer(options); });
  };
  using Options = QuantileActivationOptions;
  EXPECT_EQ(with(Options(0)), name + "num_features > 0, got 0");
  EXPECT_EQ(with(Options(3).levels(256)), name + "levels in 2..255, got 256");
  EXPECT_EQ(with(Options(3).levels(256).norm_out(false)), "");
  EXPECT_EQ(with(Options(3).norm_in(false).levels(65536)), name + "levels in 2..65535, got 65536");
  EXPECT_EQ(with(Options(3).bandwidth(0)), name + "a finite bandwidth > 0, got 0");
  EXPECT_EQ(with(Options(3).bound(kNaN)), name + "a finite bound > 0, got nan");
  EXPECT_EQ(with(Options(3).positive_share(kNaN)), name + "positive_share in (0, 1), got nan");
  EXPECT_EQ(with(Options(3).eps(kNaN)), name + "a finite eps > 0, got nan");
  EXPECT_EQ(with(Options(3).momentum(kNaN)), name + "momentum in [0, 1], got nan");
  EXPECT_EQ(with(Options(3).prior(-1)), name + "a finite prior >= 0, got -1");
  EXPECT_EQ(with(Options(3).algorithm("fast")),
            name + "algorithm auto, exact or binned, got 'fast'");

  QuantileActivation fused(3), inner(Options(3).norm_out(false)),
      plain(Options(3).norm_in(false).norm_out(false));
  const auto given = [](QuantileActivation& layer, const torch::Tensor& x) {
    return message_of([&] { layer(x); });
  };
  EXPECT_EQ(given(fused, torch::zeros({2, 4})),
            name + "3 channels in dimension 1, got float32 of shape (2,4)");
  EXPECT_EQ(given(fused, torch::zeros({3}, torch::kLong)),
            name + "a floating tensor of 2 or more dimensions, got int64 of shape (3)");
  EXPECT_EQ(given(fused, torch::zeros({0, 3})),
            name + "at least one value, got float32 of shape (0,3)");
  const std::string single =
      "expected more than one value per channel to take statistics from, got float32 of shape "
      "(1,3)";
  EXPECT_EQ(given(fused, torch::zeros({1, 3})), "[quantile_layer] " + single);
  EXPECT_EQ(given(inner, torch::zeros({1, 3})), "[QuantileActivation] " + single);
  EXPECT_EQ(given(plain, torch::zeros({1, 3})), "");
  EXPECT_EQ(fused->num_batches_tracked.item<int64_t>(), 0);
  EXPECT_EQ(message_of([&] { nn::set_context_mode(*fused, ContextMode::prior, kNaN); }),
            "[set_context_mode] expected a finite prior >= 0, got nan");
}

}  // namespace
}  // namespace qact::tests
