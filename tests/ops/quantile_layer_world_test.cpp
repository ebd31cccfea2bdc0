// A layer over several processes of which some channels are ranked in their image: each half is
// what it is alone, and the images' is computed while the others' first reduction is under way.
#include "qact/ops/quantile_layer_world.h"

#include <gtest/gtest.h>
#include <torch/library.h>

#include "qact/ops/quantile_layer.h"
#include "tests/nn/thread_group.h"
#include "tests/ops/cases.h"

namespace qact::tests {
namespace {

using torch::Tensor;
using Events = std::vector<std::string>;

// --- the same bits

struct Step {
  Tensor y, stats, context, values, grad_x;
  std::vector<Tensor> affine;

  // layer(x, vectors) as of quantile_layer_world.
  template <class Layer>
  Step(const Layer& layer, const Tensor& images, const Tensor& grad_y) {
    const Tensor x = images.detach().requires_grad_();
    std::vector<Tensor> vectors;
    for (int i = 1; i < 5; ++i) {
      vectors.push_back((torch::arange(x.size(1)).to(torch::kFloat) * 0.3 * i - 0.5));
      vectors.back().requires_grad_();
    }
    const ops::WorldLayerResult out = layer(x, vectors);
    out.y.backward(grad_y);
    y = out.y.detach(), stats = out.stats, context = out.context, values = out.values;
    grad_x = x.grad();
    for (const Tensor& vector : vectors) affine.push_back(vector.grad());
  }
};

ops::LayerAffine affine_of(const std::vector<Tensor>& v) { return {v[0], v[1], v[2], v[3]}; }

Step in_one(const Tensor& x, const Tensor& grad_y, int64_t images, const std::string& group) {
  return Step(
      [&](const Tensor& in, const std::vector<Tensor>& v) {
        return ops::quantile_layer_world(in, affine_of(v), {.track = true, .scope = {images, 0}},
                                         group);
      },
      x, grad_y);
}

// The oracle: two layers one after the other.
Step one_by_one(const Tensor& x, const Tensor& grad_y, int64_t images, const std::string& group) {
  return Step(
      [&](const Tensor& in, const std::vector<Tensor>& v) {
        const auto half = [&](int64_t first, int64_t count) {
          std::vector<Tensor> vectors;
          for (const Tensor& vector : v) vectors.push_back(vector.narrow(0, first, count));
          return std::pair(in.narrow(1, first, count), vectors);
        };
        const auto [of_others, others_v] = half(images, in.size(1) - images);
        auto out =
            ops::quantile_layer_world(of_others, affine_of(others_v), {.track = true}, group);
        const auto [of_images, images_v] = half(0, images);
        Tensor y = of_images;
        if (in.size(0) > 0) {
          y = std::get<0>(
              ops::quantile_layer(of_images, affine_of(images_v), {.scope = {images, 0}}));
        }
        out.y = torch::cat({y, out.y}, 1);
        return out;
      },
      x, grad_y);
}

void expect_same(const Tensor& a, const Tensor& b, const char* what) {
  EXPECT_TRUE(torch::equal(a.isnan(), b.isnan())) << what;
  EXPECT_TRUE(torch::equal(a.nan_to_num(7), b.nan_to_num(7))) << what;
}

void expect_same(const Step& found, const Step& expected) {
  expect_same(found.y, expected.y, "y");
  expect_same(found.stats, expected.stats, "stats");
  expect_same(found.context, expected.context, "context");
  expect_same(found.values, expected.values, "values");
  expect_same(found.grad_x, expected.grad_x, "grad_x");
  EXPECT_EQ(found.y.strides(), expected.y.strides());
  for (size_t i = 0; i < 4 && found.y.size(0) > 0; ++i) {
    expect_same(found.affine[i], expected.affine[i], "affine");
  }
}

Tensor drawn(const std::vector<int64_t>& shape, const std::string& kind) {
  torch::manual_seed(4);
  Tensor x = torch::randn(shape, torch::kDouble);
  if (kind == "ties") x = x.mul(2).round().clamp_min(0);
  if (kind == "not finite") {
    x[0][0][0] = std::numeric_limits<double>::quiet_NaN();
    x[0][3][0] = std::numeric_limits<double>::infinity();
  }
  return x;
}

// Images of 30 values, which are computed again in the backward pass, and of 1,200, which are not.
TEST(WorldHalves, AreEachAlone) {
  for (const auto& shape : {std::vector<int64_t>{6, 5, 5, 6}, {6, 5, 30, 40}, {1, 4, 7, 9}}) {
    for (const char* kind : {"normal", "ties", "not finite"}) {
      const Tensor values = drawn(shape, kind), gradients = torch::randn_like(values);
      for (const auto type : types()) {
        for (const Layout& layout : layouts()) {
          const Tensor x = layout.of(values.to(type)), grad_y = layout.of(gradients.to(type));
          SCOPED_TRACE(std::string(kind) + " " + describe(x, layout));
          for (const int64_t images : {1, 3}) {
            expect_same(in_one(x, grad_y, images, ""), one_by_one(x, grad_y, images, ""));
          }
          if (HasFailure()) return;
        }
      }
    }
  }
}

TEST(WorldHalves, AreEachAloneOnEveryRank) {
  const Tensor x = drawn({6, 5, 30, 40}, "ties").to(torch::kFloat);
  const Tensor grad_y = torch::randn_like(x);
  const std::vector<int64_t> split = {2, 0, 3, 1};
  const auto xs = x.split_with_sizes(split), grads = grad_y.split_with_sizes(split);
  on_ranks(4, [&](int rank, const std::string& group) {
    const Step found = in_one(xs[rank], grads[rank], 2, group);
    expect_same(found, one_by_one(xs[rank], grads[rank], 2, group));
    if (split[rank] > 0) return;
    for (const Tensor& gradient : found.affine) EXPECT_TRUE((gradient == 0).all().item<bool>());
  });
}

// --- what is under way meanwhile

constexpr c10::DispatchKey kWatch = c10::DispatchKey::TESTING_ONLY_GenericMode;

// What a rank's thread does before a half in images is computed.
thread_local std::function<void()> before_images;

void watched(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  before_images();
  const c10::impl::ExcludeDispatchKeyGuard once(kWatch);
  op.callBoxed(stack);
}

TORCH_LIBRARY_IMPL(_, TESTING_ONLY_GenericMode, m) {
  m.fallback(torch::CppFunction::makeFallthrough());
}
TORCH_LIBRARY_IMPL(qact, TESTING_ONLY_GenericMode, m) {
  m.impl("_quantile_layer_forward", torch::CppFunction::makeFromBoxedFunction<&watched>());
  m.impl("_quantile_layer_backward", torch::CppFunction::makeFromBoxedFunction<&watched>());
}

// Ranks meet when a reduction is waited for, not when it starts.
class LateWork : public c10d::Work {
 public:
  LateWork(std::function<void()> reduce, Events& events)
      : reduce_(std::move(reduce)), events_(events) {}
  bool wait(std::chrono::milliseconds = std::chrono::milliseconds()) override {
    events_.push_back("waited");
    reduce_();
    return true;
  }

 private:
  std::function<void()> reduce_;
  Events& events_;
};

class LateBackend : public c10d::Backend {
 public:
  LateBackend(int rank, int size, std::shared_ptr<Meeting> meeting, Events& events, bool fails)
      : Backend(rank, size), meeting_(std::move(meeting)), events_(events), fails_(fails) {}
  const std::string getBackendName() const override { return "late"; }
  c10::intrusive_ptr<c10d::Work> allreduce(std::vector<Tensor>& tensors,
                                           const c10d::AllreduceOptions& options) override {
    const bool maximum = options.reduceOp == c10d::ReduceOp::MAX;
    Tensor numbers = tensors.at(0);
    events_.push_back((maximum ? "max " : "sum ") + std::string(toString(numbers.scalar_type())));
    return c10::make_intrusive<LateWork>(
        [this, numbers, maximum]() mutable {
          TORCH_CHECK(!fails_, "the connection is gone");
          meeting_->reduce(getRank(), numbers, maximum);
        },
        events_);
  }

 private:
  std::shared_ptr<Meeting> meeting_;
  Events& events_;
  bool fails_;
};

// What happens on each rank during step(rank, group), and the error that ends it.
struct Watched {
  Events events;
  std::string error;
};

template <class Body>
std::vector<Watched> watch(int size, const Body& step, bool fails = false, bool throws = false) {
  std::vector<Watched> out(size);
  on_ranks(
      size,
      [&](int rank, const std::string& group) {
        before_images = [&] {
          out[rank].events.push_back("images");
          TORCH_CHECK(!throws, "no images");
        };
        const c10::impl::IncludeDispatchKeyGuard watching(kWatch);
        try {
          step(rank, group);
        } catch (const c10::Error& error) {
          out[rank].error = error.what_without_backtrace();
        }
      },
      [&](int rank, int, std::shared_ptr<Meeting> meeting) {
        return c10::make_intrusive<LateBackend>(rank, size, std::move(meeting), out[rank].events,
                                                fails);
      });
  return out;
}

const Events kSummary = {"max Double", "sum Long"};

Events joined(std::vector<Events> parts) {
  Events out;
  for (const Events& part : parts) out.insert(out.end(), part.begin(), part.end());
  return out;
}

TEST(WorldHalves, ImagesAreComputedDuringTheFirstReduction) {
  const Tensor x = drawn({4, 5, 5, 6}, "normal").to(torch::kFloat);
  const auto found = watch(2, [&](int rank, const std::string& group) {
    const Tensor own = x.narrow(0, 2 * rank, 2);
    in_one(own, own, 2, group);
  });
  for (const Watched& rank : found) {
    EXPECT_EQ(rank.error, "");
    EXPECT_EQ(rank.events, joined({kSummary,
                                   {"images", "waited", "waited"},
                                   {"sum Int", "waited"},
                                   {"sum Double", "images", "waited"}}));
  }
}

// Without images, with numbers that are not finite, with ties: the same, in the same order.
TEST(WorldHalves, RanksReduceTheSameInTheSameOrder) {
  const std::vector<int64_t> split = {2, 0, 3, 1};
  for (const char* kind : {"normal", "ties", "not finite"}) {
    for (const auto& shape : {std::vector<int64_t>{6, 5, 30, 40}, {6, 5, 5, 6}}) {
      const Tensor x = drawn(shape, kind).to(torch::kFloat);
      x.narrow(0, 5, 1).fill_(3);  // those of the last rank are all the same
      auto found = watch(4, [&](int rank, const std::string& group) {
        const Tensor own = x.split_with_sizes(split)[rank];
        in_one(own, own, 2, group);
      });
      for (size_t rank = 0; rank < found.size(); ++rank) {
        EXPECT_EQ(found[rank].error, "");
        const auto images = std::erase(found[rank].events, "images");
        EXPECT_EQ(images, split[rank] > 0 ? 2u : 0u);
        EXPECT_EQ(found[rank].events, found[0].events) << kind << " " << rank;
      }
    }
  }
}

// The numbers that are being reduced are the pass's own.
TEST(WorldHalves, AnErrorWaitsForTheReduction) {
  const Tensor x = drawn({4, 5, 30, 40}, "normal").to(torch::kFloat);
  const auto forward = [&](int rank, const std::string& group) {
    ops::quantile_layer_world(x.narrow(0, 2 * rank, 2), {}, {.scope = {2, 0}}, group);
  };
  for (const Watched& rank : watch(2, forward, /*fails=*/false, /*throws=*/true)) {
    EXPECT_EQ(rank.error, "no images");
    EXPECT_EQ(rank.events, joined({kSummary, {"images", "waited", "waited"}}));
  }
  const auto backward = [&](int rank, const std::string& group) {
    const Tensor own = x.narrow(0, 2 * rank, 2).detach().requires_grad_();
    Tensor y;
    {
      const c10::impl::ExcludeDispatchKeyGuard unwatched(kWatch);
      y = ops::quantile_layer_world(own, {}, {.scope = {2, 0}}, group).y;
    }
    y.sum().backward();
  };
  for (const Watched& rank : watch(2, backward, /*fails=*/false, /*throws=*/true)) {
    EXPECT_EQ(rank.error, "no images");
    const Events last(rank.events.end() - 3, rank.events.end());
    EXPECT_EQ(last, (Events{"sum Double", "images", "waited"}));
  }
}

TEST(WorldHalves, AReductionThatFailsLeavesNoneUnderWay) {
  const Tensor x = drawn({4, 5, 30, 40}, "normal").to(torch::kFloat);
  const auto forward = [&](int rank, const std::string& group) {
    ops::quantile_layer_world(x.narrow(0, 2 * rank, 2), {}, {.scope = {2, 0}}, group);
  };
  for (const Watched& rank : watch(2, forward, /*fails=*/true)) {
    EXPECT_EQ(rank.error, "the connection is gone");
    EXPECT_EQ(rank.events, joined({kSummary, {"images", "waited", "waited"}}));
  }
}

// Before anything is reduced, on every rank alike: one may have no images.
TEST(WorldHalves, ImagesOfOneValueAreRefusedByAll) {
  const auto forward = [&](int rank, const std::string& group) {
    ops::quantile_layer_world(torch::randn({3 * rank, 4, 1}), {}, {.scope = {2, 0}}, group);
  };
  for (const Watched& rank : watch(2, forward)) {
    EXPECT_EQ(rank.events, Events{});
    EXPECT_TRUE(rank.error.starts_with(
        "[quantile_layer_world] expected more than one value per context to take statistics from"))
        << rank.error;
  }
}

TEST(WorldHalves, SomeChannelsAreLeftToTheOthers) {
  static const auto op =
      c10::Dispatcher::singleton().findSchemaOrThrow("qact::quantile_layer_world", "");
  torch::jit::Stack stack = {torch::randn({4, 3, 5})};
  const auto& arguments = op.schema().arguments();
  for (size_t i = 1; i < arguments.size(); ++i) {
    stack.push_back(arguments[i].name() == "image_channels" ? c10::IValue(3)
                                                            : *arguments[i].default_value());
  }
  std::string message;
  try {
    op.callBoxed(stack);
  } catch (const c10::Error& error) {
    message = error.what_without_backtrace();
  }
  EXPECT_EQ(message,
            "[quantile_layer_world] expected image_channels below 3, the channels of x, got 3");
}

}  // namespace
}  // namespace qact::tests
