// Every tensor of every operator is checked on every backend: its device, type, shape and layout.
// The table below has a sound call of each operator; the tests spoil one tensor at a time.
#include <ATen/core/dispatch/Dispatcher.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "qact/ops/context.h"
#include "qact/ops/layer_track.h"
#include "qact/ops/quantile_layer.h"
#include "tests/ops/calls.h"
#include "tests/ops/cases.h"

namespace qact::tests {
namespace {

// Calls the kernel of one backend, wherever the tensors lie.
std::string refusal(const OperatorCall& call, c10::DispatchKey backend) {
  return message_of([&] {
    torch::jit::Stack stack = call.arguments;
    call.op().redispatchBoxed(c10::DispatchKeySet(backend), &stack);
  });
}

constexpr c10::DispatchKey kBackends[] = {c10::DispatchKey::CPU, c10::DispatchKey::Meta};

torch::Device device_of(c10::DispatchKey backend) {
  return backend == c10::DispatchKey::CPU ? torch::kCPU : torch::kMeta;
}

TEST(Tensors, TheTableHasEveryOperator) {
  std::set<std::string> registered, called;
  for (const auto& op : c10::Dispatcher::singleton().getAllOpNames()) {
    if (op.name.starts_with("qact::")) registered.insert(op.name.substr(6));
  }
  for (const OperatorCall& call : operator_calls(torch::kCPU)) called.insert(call.name);
  EXPECT_EQ(called, registered);
}

TEST(Tensors, SoundCallsPass) {
  for (const auto backend : kBackends) {
    for (const OperatorCall& call : operator_calls(device_of(backend))) {
      EXPECT_EQ(refusal(call, backend), "") << call.name;
    }
  }
}

// A pointer to another device's memory must never reach a kernel.
TEST(Tensors, EachIsOnTheDeviceOfTheOthers) {
  for (const auto backend : kBackends) {
    const torch::Device here = device_of(backend),
                        there = here == torch::kCPU ? torch::kMeta : torch::kCPU;
    for (const OperatorCall& call : operator_calls(here)) {
      for (const size_t i : call.tensors()) {
        if (call.argument(i) == call.lead) continue;
        const OperatorCall spoilt = call.with(i, torch::zeros_like(call.tensor(i), there));
        EXPECT_EQ(refusal(spoilt, backend), "[" + call.says + "] expected " + call.argument(i) +
                                                " on " + here.str() + ", as " + call.lead +
                                                ", got " + there.str());
      }
      if (call.tensors().size() == 1) continue;
      const OperatorCall spoilt =
          call.with(call.index(call.lead), torch::zeros_like(call.lead_tensor(), there));
      EXPECT_NE(refusal(spoilt, backend).find("on " + there.str() + ", as " + call.lead + ", got"),
                std::string::npos)
          << call.name << ": " << refusal(spoilt, backend);
    }
  }
}

// Through the dispatcher, as a user calls them.
TEST(Tensors, MetaAndCpuDoNotMix) {
  const torch::Tensor x = torch::randn({4, 3}), weight = torch::ones({3}, torch::kMeta);
  EXPECT_EQ(message_of([&] { ops::quantile_layer(x, {.weight_in = weight}); }),
            "[quantile_layer] expected weight_in on cpu, as x, got meta");
  EXPECT_EQ(
      message_of([&] { ops::quantile_layer(x.to(torch::kMeta), {.bias_out = torch::ones({3})}); }),
      "[quantile_layer] expected bias_out on meta, as x, got cpu");
}

TEST(Tensors, EachHasItsTypeAndShape) {
  for (const auto backend : kBackends) {
    for (const OperatorCall& call : operator_calls(device_of(backend))) {
      for (const size_t i : call.tensors()) {
        const torch::Tensor sound = call.tensor(i);
        std::vector<torch::Tensor> wrong = {sound.to(torch::kShort), sound.to(torch::kBool)};
        if (sound.dim() != 1) wrong.push_back(torch::zeros({7}, sound.options()));
        // Alone, a tensor may have more dimensions and channels.
        if (call.tensors().size() > 1) {
          wrong.push_back(sound.unsqueeze(0));
          if (sound.dim() > 0) {
            const size_t longer = sound.dim() > 2 ? 1 : 0;
            std::vector<int64_t> sizes = sound.sizes().vec();
            sizes[longer] =
                std::max<int64_t>(2 * sizes[longer], 1);  // kept tables may have no rows
            wrong.push_back(torch::zeros(sizes, sound.options()));
          }
        }
        for (const torch::Tensor& other : wrong) {
          const std::string found = refusal(call.with(i, other), backend);
          EXPECT_TRUE(found.starts_with("[" + call.says + "] expected "))
              << call.name << " " << call.argument(i) << " as " << other.dtype() << " "
              << other.sizes() << ": " << found;
        }
      }
    }
  }
}

// No values, or none per channel, on every backend.
TEST(Tensors, NoneIsEmpty) {
  for (const auto backend : kBackends) {
    for (const OperatorCall& call : operator_calls(device_of(backend))) {
      if (call.lead != "x" && call.lead != "grad") continue;
      for (const std::vector<int64_t>& shape : {std::vector<int64_t>{0, 3}, {4, 0}, {4, 3, 0}}) {
        if (call.says == "quantile_layer_world" && shape[0] == 0) continue;  // others may have some
        const auto found =
            refusal(call.with(call.index(call.lead), call.lead_tensor().new_zeros(shape)), backend);
        EXPECT_TRUE(found.starts_with("[" + call.says + "] expected at least one value, got "))
            << call.name << ": " << found;
      }
    }
  }
}

// Tensors that are read may lie anyhow; those that are written in place must be contiguous.
TEST(Tensors, StridedOnesAreReadButNotWritten) {
  const Layout& stepped = layouts()[3];
  for (const auto backend : kBackends) {
    for (const OperatorCall& call : operator_calls(device_of(backend))) {
      for (const size_t i : call.tensors()) {
        const torch::Tensor sound = call.tensor(i);
        if (sound.dim() == 0) continue;
        const std::string found = refusal(call.with(i, stepped.of(sound)), backend);
        const std::string contiguous = "[" + call.says + "] expected " + call.argument(i) +
                                       " to be contiguous, since it is written in place, got ";
        if (call.writes(i)) {
          EXPECT_TRUE(found.starts_with(contiguous)) << call.name << ": " << found;
        } else {
          EXPECT_EQ(found, "") << call.name << " " << call.argument(i);
        }
      }
    }
  }
}

// Strided inputs give what contiguous ones give.
TEST(Tensors, StridesChangeNoResult) {
  const Layout& stepped = layouts()[3];
  for (const OperatorCall& call : operator_calls(torch::kCPU)) {
    torch::jit::Stack expected = call.arguments;
    if (call.name == "_layer_track") continue;  // changes its arguments: below
    call.op().callBoxed(&expected);
    for (const size_t i : call.tensors()) {
      torch::jit::Stack found = call.with(i, stepped.of(call.tensor(i))).arguments;
      call.op().callBoxed(&found);
      ASSERT_EQ(found.size(), expected.size());
      for (size_t r = 0; r < found.size(); ++r) {
        EXPECT_TRUE(torch::equal(found[r].toTensor(), expected[r].toTensor()))
            << call.name << " " << call.argument(i) << " result " << r;
      }
    }
  }
}

struct Tracked {
  torch::Tensor mean_in = torch::zeros({3}), var_in = torch::ones({3}),
                mean_out = torch::zeros({3}), var_out = torch::ones({3}),
                context = ops::context_standard_normal(3), batches = torch::zeros({}, torch::kLong);

  void track(const torch::Tensor& stats, const torch::Tensor& batch, double momentum = 0.1,
             double n = 40, double values = 1024) {
    ops::layer_track({mean_in, var_in, mean_out, var_out, context, batches},
                     {stats, batch, momentum, n, values});
  }
  std::vector<torch::Tensor> all() const {
    return {mean_in, var_in, mean_out, var_out, context, batches};
  }
  std::vector<torch::Tensor> copies() const {
    std::vector<torch::Tensor> out;
    for (const torch::Tensor& t : all()) out.push_back(t.clone());
    return out;
  }
};

TEST(LayerTrack, ReadsStridedTables) {
  torch::manual_seed(1);
  const torch::Tensor stats = torch::rand({3, core::kLayerStats}, torch::kDouble);
  const torch::Tensor batch = ops::context_build(torch::randn({40, 3}));
  Tracked plain, strided;
  plain.track(stats, batch);
  strided.track(layouts()[3].of(stats), layouts()[3].of(batch));
  for (size_t i = 0; i < 6; ++i) EXPECT_TRUE(torch::equal(plain.all()[i], strided.all()[i])) << i;
}

// What is refused leaves all as it was.
TEST(LayerTrack, WritesNothingThatItRefuses) {
  const torch::Tensor stats = torch::rand({3, core::kLayerStats}, torch::kDouble);
  const torch::Tensor batch = ops::context_build(torch::randn({40, 3}));
  const std::string op = "[layer_track] expected ";
  const auto expect = [&](Tracked tracked, const std::string& message, double momentum = 0.1,
                          double n = 40, double values = 1024) {
    const auto before = tracked.copies();
    EXPECT_EQ(message_of([&] { tracked.track(stats, batch, momentum, n, values); }), op + message);
    for (size_t i = 0; i < 6; ++i) EXPECT_TRUE(torch::equal(tracked.all()[i], before[i])) << i;
  };
  Tracked expanded;
  expanded.context = ops::context_standard_normal(1).expand({3, 256});
  expect(expanded,
         "context to be contiguous, since it is written in place, got int64 of shape (3,256) with "
         "strides (0,1)");
  Tracked one_number;
  one_number.var_out = torch::ones({1}).expand({3});
  expect(one_number,
         "var_out to be contiguous, since it is written in place, got float32 of shape (3) with "
         "strides (0)");
  Tracked whole_numbers;
  whole_numbers.var_out = torch::ones({3}, torch::kLong);
  expect(whole_numbers,
         "var_out to be a floating tensor of shape (3), one number per channel, got int64 of shape "
         "(3)");
  expect({}, "momentum in [0, 1], got 2", 2);
  expect({}, "a number n > 1 of values per channel, got 1", 0.1, 1);
  expect({}, "a number of values in [0, 2^46), got -1", 0.1, 40, -1);
}

}  // namespace
}  // namespace qact::tests
