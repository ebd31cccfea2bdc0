// The fused layer over several processes, torch.ops.qact_world: core's rounds (core/world.h), which
// Python reduces over a process group. No state lives between the calls: each replays the reduced
// rounds so far, given as bytes one after the other, without a look at x, and goes on from there.
#include "qact/core/world.h"

#include <torch/csrc/stable/library.h>

#include <cstring>
#include <memory>
#include <tuple>
#include <vector>

#include "python/ops/cpu/affine.h"
#include "python/ops/execution.h"
#include "python/ops/layer.h"
#include "qact/core/context.h"

namespace qact::python {
namespace {

constexpr const char* kOp = "quantile_layer_world";

int64_t table_bytes(const Tensor& x) {
  return x.size(1) * static_cast<int64_t>(sizeof(core::CodeTable));
}

// flatten_spatial, whose batch may be empty.
FlatTensor flatten_images(const Tensor& x) {
  FlatTensor out = flatten_spatial(x);
  out.shape.spatial = 1;
  for (int64_t d = 2; d < x.dim(); ++d) out.shape.spatial *= x.size(d);
  return out;
}

struct WorldArguments {
  const Tensor& x;
  LayerVectors vectors;
  double eps;
  int64_t levels;
  double bound, positive_share, bandwidth;
  int64_t algorithm;
};

// A call and all that it points to. Results have their places; those that nobody wants yet, too.
struct WorldCall {
  FlatTensor in;
  ResultTensor y;
  FlatVector vectors[4];
  Tensor kept, stats, context;
  core::LayerForward call;

  WorldCall(const WorldArguments& a, bool track)
      : in(flatten_images(a.x)),
        y(a.x),
        vectors{flatten_vector(a.vectors.weight_in), flatten_vector(a.vectors.bias_in),
                flatten_vector(a.vectors.weight_out), flatten_vector(a.vectors.bias_out)},
        kept(empty_beside(a.x, {table_bytes(a.x) + a.x.numel()}, ScalarType::Byte)),
        stats(empty_beside(a.x, {a.x.size(1), core::kLayerStats}, ScalarType::Double)),
        context(
            empty_beside(a.x, {track ? a.x.size(1) : 0, core::kContextBins}, ScalarType::Long)) {
    check_values(kOp, a.x);
    QACT_EXPECT(in.shape.spatial > 0, "[", kOp, "] expected at least one value per image, got ",
                describe(a.x));
    check_positive(kOp, "eps", a.eps);
    check_channels(kOp, "weight_in", a.vectors.weight_in, a.x);
    check_channels(kOp, "bias_in", a.vectors.bias_in, a.x);
    check_channels(kOp, "weight_out", a.vectors.weight_out, a.x);
    check_channels(kOp, "bias_out", a.vectors.bias_out, a.x);
    call.quantile = check_quantile(kOp, a.levels, a.bound, a.positive_share, a.bandwidth,
                                   a.algorithm, kMostLayerLevels);
    call.eps = a.eps;
    call.shape = in.shape;
    call.x = in.view;
    call.y = y.view();
    call.weight_in = vectors[0].vector;
    call.bias_in = vectors[1].vector;
    call.weight_out = vectors[2].vector;
    call.bias_out = vectors[3].vector;
    auto* bytes = static_cast<uint8_t*>(kept.mutable_data_ptr());
    call.table = reinterpret_cast<int32_t*>(bytes);
    call.code = bytes + table_bytes(a.x);
    call.stats = static_cast<double*>(stats.mutable_data_ptr());
    if (track) call.context = static_cast<int64_t*>(context.mutable_data_ptr());
  }
};

int64_t size_of(const core::Reduction& reduction) {
  return reduction.count * (reduction.kind == core::Reduction::Kind::sum_i32 ? 4 : 8);
}

ScalarType type_of_number(core::Reduction::Kind kind) {
  return kind == core::Reduction::Kind::sum_i32   ? ScalarType::Int
         : kind == core::Reduction::Kind::sum_i64 ? ScalarType::Long
                                                  : ScalarType::Double;
}

std::unique_ptr<core::WorldForward> replayed(const WorldCall& world, int64_t rank, int64_t ranks,
                                             const Tensor& rounds) {
  QACT_EXPECT(0 <= rank && rank < ranks, "[", kOp, "] expected a rank below ", ranks, ", got ",
              rank);
  QACT_EXPECT(type_of(rounds) == ScalarType::Byte && rounds.is_contiguous(), "[", kOp,
              "] expected rounds to be bytes, got ", describe(rounds));
  auto forward = core::world_forward(world.call, {rank, ranks}, cpu_execution());
  const auto* bytes = static_cast<const uint8_t*>(rounds.const_data_ptr());
  for (int64_t left = rounds.numel(); left > 0;) {
    QACT_EXPECT(!forward->done(), "[", kOp, "] expected rounds to be as they were counted, got ",
                left, " bytes too many");
    for (const core::Reduction& reduction : forward->round()) {
      const int64_t size = size_of(reduction);
      QACT_EXPECT(size <= left, "[", kOp, "] expected rounds to be as they were counted, got ",
                  size - left, " bytes too few");
      std::memcpy(reduction.data, bytes, size);
      bytes += size;
      left -= size;
    }
    forward->next();
  }
  return forward;
}

// The next round's own numbers: those whose maximum is wanted, and those whose sum; none of either
// once all rounds are done.
std::tuple<Tensor, Tensor> next_round(Tensor x, MaybeTensor weight_in, MaybeTensor bias_in,
                                      MaybeTensor weight_out, MaybeTensor bias_out, double eps,
                                      int64_t levels, double bound, double positive_share,
                                      double bandwidth, int64_t algorithm, int64_t rank,
                                      int64_t ranks, Tensor rounds) {
  const WorldCall world({x,
                         {weight_in, bias_in, weight_out, bias_out},
                         eps,
                         levels,
                         bound,
                         positive_share,
                         bandwidth,
                         algorithm},
                        false);
  const auto forward = replayed(world, rank, ranks, rounds);
  Tensor maxima = empty_beside(x, {0}, ScalarType::Double), sums = maxima;
  if (forward->done()) return {std::move(maxima), std::move(sums)};
  forward->count();
  for (const core::Reduction& reduction : forward->round()) {
    Tensor& to = reduction.kind == core::Reduction::Kind::max_f64 ? maxima : sums;
    to = empty_beside(x, {reduction.count}, type_of_number(reduction.kind));
    std::memcpy(to.mutable_data_ptr(), reduction.data, size_of(reduction));
  }
  return {std::move(maxima), std::move(sums)};
}

std::tuple<Tensor, Tensor, Tensor, Tensor, int64_t> finish(
    Tensor x, MaybeTensor weight_in, MaybeTensor bias_in, MaybeTensor weight_out,
    MaybeTensor bias_out, double eps, int64_t levels, double bound, double positive_share,
    double bandwidth, int64_t algorithm, int64_t rank, int64_t ranks, Tensor rounds, bool track) {
  WorldCall world({x,
                   {weight_in, bias_in, weight_out, bias_out},
                   eps,
                   levels,
                   bound,
                   positive_share,
                   bandwidth,
                   algorithm},
                  track);
  const auto forward = replayed(world, rank, ranks, rounds);
  QACT_EXPECT(forward->done(), "[", kOp, "] expected all rounds, got too few");
  forward->write();
  return {world.y.take(), std::move(world.kept), std::move(world.stats), std::move(world.context),
          forward->values()};
}

// Both directions' operands of the backward pass.
struct BackwardCall {
  FlatTensor grad;
  FlatVector weight_in, weight_out;
  core::LayerBackward call;

  BackwardCall(const Tensor& grad_y, const Tensor& kept, const MaybeTensor& in,
               const MaybeTensor& out, double eps, int64_t levels)
      : grad(flatten_images(grad_y)),
        weight_in(flatten_vector(in)),
        weight_out(flatten_vector(out)) {
    constexpr const char* kBackward = "quantile_layer_world_backward";
    check_values(kBackward, grad_y);
    check_channels(kBackward, "weight_in", in, grad_y);
    check_channels(kBackward, "weight_out", out, grad_y);
    const int64_t bytes = table_bytes(grad_y) + grad_y.numel();
    QACT_EXPECT(type_of(kept) == ScalarType::Byte && kept.is_contiguous() && kept.numel() == bytes,
                "[", kBackward, "] expected kept to be ", bytes,
                " bytes, as the forward pass left it, got ", describe(kept));
    call.quantile.levels = static_cast<int>(levels);
    call.eps = eps;
    call.shape = grad.shape;
    call.grad_y = grad.view;
    call.weight_in = weight_in.vector;
    call.weight_out = weight_out.vector;
    const auto* from = static_cast<const uint8_t*>(kept.const_data_ptr());
    call.table = reinterpret_cast<const int32_t*>(from);
    call.code = from + table_bytes(grad_y);
  }
};

Tensor backward_sums(Tensor grad_y, Tensor kept, MaybeTensor weight_in, MaybeTensor weight_out,
                     double eps, int64_t levels) {
  const BackwardCall of(grad_y, kept, weight_in, weight_out, eps, levels);
  Tensor sums = empty_beside(grad_y, {grad_y.size(1), core::kWorldSums}, ScalarType::Double);
  core::world_backward_sums(of.call, static_cast<double*>(sums.mutable_data_ptr()),
                            cpu_execution());
  return sums;
}

std::tuple<Tensor, Tensor> backward_write(Tensor grad_y, Tensor kept, MaybeTensor weight_in,
                                          MaybeTensor weight_out, double eps, int64_t levels,
                                          Tensor own, Tensor all, int64_t values) {
  BackwardCall of(grad_y, kept, weight_in, weight_out, eps, levels);
  const Named as = {"grad_y", grad_y};
  for (const Named& sums : {Named{"own", own}, Named{"all", all}}) {
    check_table("quantile_layer_world_backward", sums, ScalarType::Double, grad_y.size(1),
                core::kWorldSums, as);
  }
  const Tensor own_sums = as_contiguous(own), all_sums = as_contiguous(all);
  ResultTensor grad_x(grad_y);
  std::vector<double> affine(4 * grad_y.size(1));
  of.call.grad_x = grad_x.view();
  of.call.grad_affine = affine.data();
  core::world_backward_write(
      of.call, static_cast<double>(values), static_cast<const double*>(own_sums.const_data_ptr()),
      static_cast<const double*>(all_sums.const_data_ptr()), cpu_execution());
  return {grad_x.take(), affine_rows(affine, grad_y)};
}

}  // namespace

// A namespace of their own: what a round needs is known in its turn, by no compiler before.
STABLE_TORCH_LIBRARY(qact_world, m) {
  m.def(
      "next_round(Tensor x, Tensor? weight_in, Tensor? bias_in, Tensor? weight_out, "
      "Tensor? bias_out, float eps, int levels, float bound, float positive_share, "
      "float bandwidth, int algorithm, int rank, int ranks, Tensor rounds) "
      "-> (Tensor maxima, Tensor sums)");
  m.def(
      "finish(Tensor x, Tensor? weight_in, Tensor? bias_in, Tensor? weight_out, "
      "Tensor? bias_out, float eps, int levels, float bound, float positive_share, "
      "float bandwidth, int algorithm, int rank, int ranks, Tensor rounds, bool track) "
      "-> (Tensor y, Tensor kept, Tensor stats, Tensor context, int values)");
  m.def(
      "backward_sums(Tensor grad_y, Tensor kept, Tensor? weight_in, Tensor? weight_out, float eps, "
      "int levels) -> Tensor sums");
  m.def(
      "backward_write(Tensor grad_y, Tensor kept, Tensor? weight_in, Tensor? weight_out, "
      "float eps, int levels, Tensor own, Tensor all, int values) "
      "-> (Tensor grad_x, Tensor grad_affine)");
}

STABLE_TORCH_LIBRARY_IMPL(qact_world, CPU, m) {
  m.impl("next_round", TORCH_BOX(&next_round));
  m.impl("finish", TORCH_BOX(&finish));
  m.impl("backward_sums", TORCH_BOX(&backward_sums));
  m.impl("backward_write", TORCH_BOX(&backward_write));
}

}  // namespace qact::python
