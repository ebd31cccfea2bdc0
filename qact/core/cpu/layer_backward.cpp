// The fused layer's backward pass on CPU. With u = k / L the activation, y = g2 * yhat + b2
// and z = g1 * xhat + b1:
//
//   du = (g2 / s2) (dy - mean(dy) - yhat * mean(dy * yhat)),  dz = f * du,
//   dx = (g1 / s1) (dz - mean(dz) - xhat * mean(dz * xhat)).
//
// A value's code tells its yhat, f and xhat. So the sums of dy over each code give every mean, and
// dx is a linear function of dy, another one for each code.
#include <cmath>
#include <cstring>
#include <vector>

#include "qact/core/codes.h"
#include "qact/core/cpu/channels.h"
#include "qact/core/cpu/scope.h"
#include "qact/core/mutant.h"
#include "qact/core/quantile.h"
#include "qact/core/world.h"

namespace qact::core {
namespace {

using namespace cpu;

template <class Real>
class Backward {
 public:
  Backward(const LayerBackward& call, const TilePlan& plan, const Execution& execution)
      : call_(call),
        plan_(plan),
        execution_(execution),
        kernels_(tensor_kernels<Real>(execution.simd)),
        tables_(table_kernels(execution.simd)),
        grad_y_(call.grad_y, plan, kernels_, /*keeps=*/true),
        grad_x_(call.grad_x, plan, kernels_),
        at_once_(channels_at_once(plan)),
        sums_(plan.blocks * at_once_),
        grad_sums_(plan.group),
        maps_(plan.group) {}

  void run(int64_t group) {
    const double n = static_cast<double>(plan_.shape.context_size());
    sum(group, grad_sums_.data());
    write(group, n, grad_sums_.data(), grad_sums_.data());
  }

  // What the gradient needs of each channel's sums over its codes.
  void sum(int64_t group, GradSums* out) {
    const int64_t channels = plan_.channels_of(group);
    for (int64_t g = 0; g < channels; g += at_once_) {
      sum(group, {g, std::min(g + at_once_, channels)}, out);
    }
  }

  // grad_x from the sums of all `n` values per channel, the affine gradients from `own`.
  void write(int64_t group, double n, const GradSums* own, const GradSums* all) {
    const int64_t first = plan_.first_channel(group), channels = plan_.channels_of(group);
    for (int64_t g = 0; g < channels; ++g) solve(first + g, n, own[g], all[g], maps_[g]);
    const auto write = [&](int64_t, const TileRange& tiles, Strips<Real>& grad_y,
                           Strips<Real>& grad_x) {
      for (int64_t tile = tiles.begin; tile < tiles.end; ++tile) {
        const Real* dy = grad_y.load(group, tile, 0);
        grad_x.store_runs(group, tile, [&](void* to, RunBlock runs) {
          runs.pitch = grad_y.pitch();
          kernels_.grad_output(dy, code(first, tile), plan_.shape.context_size(), runs,
                               maps_.data(), grad_x.written(), to);
        });
      }
    };
    for_each_block(plan_, execution_, write, grad_y_, grad_x_);
  }

 private:
  void sum(int64_t group, const ChannelRange& range, GradSums* out) {
    const int64_t first = plan_.first_channel(group);
    std::memset(static_cast<void*>(sums_.data()), 0, sums_.size() * sizeof(CodeSums));
    const auto sum = [&](int64_t block, const TileRange& tiles, Strips<Real>& grad_y) {
      for_each_tile(plan_, tiles, range, [&](int64_t tile, int64_t size, int64_t g) {
        Prefetch next = grad_y.prefetch(group + 1, tile, g);
        Prefetch written = grad_x_.prefetch(group, tile, g);
        kernels_.grad_sums(grad_y.load(group, tile, g), code(first + g, tile), size,
                           sums_[block * at_once_ + g - range.begin], next, written);
      });
    };
    for_each_block(plan_, execution_, sum, grad_y_);
    for (int64_t g = range.begin; g < range.end; ++g) {
      tables_.grad_means(&sums_[g - range.begin], plan_.blocks, at_once_, table_of(first + g),
                         out[g]);
    }
  }

  const uint8_t* code(int64_t c, int64_t tile) const {
    return call_.code + c * plan_.shape.context_size() + plan_.start(tile);
  }

  const CodeTable& table_of(int64_t c) const {
    return *reinterpret_cast<const CodeTable*>(call_.table + c * kCodeTableWords);
  }

  // Over n values: the means of dy, dy * yhat, dz and dz * xhat. All are linear in dy.
  struct Means {
    double dy, dy_yhat, dz, dz_xhat;
  };

  void solve(int64_t c, double n, const GradSums& own, const GradSums& all,
             GradTable<Real>& map) const {
    const CodeTable& table = table_of(c);
    const double inv1 = 1 / std::sqrt(table.var_in + call_.eps);
    const double inv2 = 1 / std::sqrt(table.var_out + call_.eps);
    // yhat = k * slope + level0.
    const double slope = inv2 / call_.quantile.levels, level0 = -table.mean_out * inv2;
    const double f_yhat = slope * table.f_k + level0 * table.f;
    const double f_yhat_xhat = slope * table.f_k_xhat + level0 * table.f_xhat;
    const double outer = call_.weight_out.at(c, 1.0) * inv2;
    const auto means_of = [&](const GradSums& sums) {
      Means out;
      out.dy = sums.dy / n;
      const double f_dy = sums.f_dy / n;
      const double f_dy_xhat = table.input_unit * sums.f_dy_input / n;
      out.dy_yhat =
          slope * sums.dy_k / n + (QACT_MUTANT("grad_weight_out_mean") ? 0 : level0 * out.dy);
      out.dz = outer * (f_dy - (QACT_MUTANT("grad_bias_in_mean_dy") ? 0 : out.dy * table.f) -
                        out.dy_yhat * f_yhat);
      out.dz_xhat = outer * (f_dy_xhat - out.dy * table.f_xhat -
                             (QACT_MUTANT("grad_weight_in_yhat") ? 0 : out.dy_yhat * f_yhat_xhat));
      return out;
    };
    const Means share = means_of(own);
    double* affine = call_.grad_affine + 4 * c;
    affine[0] = n * share.dz_xhat;
    affine[1] = n * share.dz;
    affine[2] = n * share.dy_yhat;
    affine[3] = (n - QACT_MUTANT("grad_bias_out_n")) * share.dy;

    const auto [dy, dy_yhat, dz, dz_xhat] = means_of(all);
    const double inner = call_.weight_in.at(c, 1.0) * inv1;
    const double both = inner * outer;
    kernels_.grad_table({both, -both * (dy + level0 * dy_yhat), -both * slope * dy_yhat,
                         QACT_MUTANT("grad_x_xhat") ? 0 : -inner * dz_xhat * table.input_unit,
                         QACT_MUTANT("grad_x_mean_dz") ? 0 : -inner * dz},
                        table, map);
  }

  const LayerBackward& call_;
  const TilePlan& plan_;
  const Execution& execution_;  // of a lone group's blocks
  const TensorKernels<Real>& kernels_;
  const TableKernels& tables_;
  Strips<Real> grad_y_, grad_x_;
  int64_t at_once_;             // channels whose sums are made together
  std::vector<CodeSums> sums_;  // [blocks][channels]
  std::vector<GradSums> grad_sums_;
  std::vector<GradTable<Real>> maps_;
};

// run(backward, group) for all groups of channels.
template <class Run>
void for_each_backward(const LayerBackward& call, const Execution& execution, const Run& run) {
  const TilePlan plan(call.shape, call.grad_y, /*reread=*/true);
  with_real(call.grad_y.dtype, [&]<class Real>(Real) {
    for_each_group(plan, execution, [&](int64_t begin, int64_t end) {
      Backward<Real> backward(call, plan, execution);
      for (int64_t group = begin; group < end; ++group) {
        run(backward, group, plan.first_channel(group));
      }
    });
  });
}

}  // namespace

void cpu::layer_backward_whole(const LayerBackward& call, const Execution& execution) {
  for_each_backward(call, execution,
                    [](auto& backward, int64_t group, int64_t) { backward.run(group); });
}

static_assert(sizeof(GradSums) == kWorldSums * sizeof(double));

void world_backward_sums(const LayerBackward& call, double* sums, const Execution& execution) {
  if (call.shape.batch == 0) {
    std::fill_n(sums, kWorldSums * call.shape.channels, 0.0);
    return;
  }
  auto* own = reinterpret_cast<GradSums*>(sums);
  for_each_backward(call, execution, [&](auto& backward, int64_t group, int64_t first) {
    backward.sum(group, own + first);
  });
}

void world_backward_write(const LayerBackward& call, double values, const double* own,
                          const double* all, const Execution& execution) {
  if (call.shape.batch == 0) {
    std::fill_n(call.grad_affine, 4 * call.shape.channels, 0.0);
    return;
  }
  const auto* own_sums = reinterpret_cast<const GradSums*>(own);
  const auto* all_sums = reinterpret_cast<const GradSums*>(all);
  for_each_backward(call, execution, [&](auto& backward, int64_t group, int64_t first) {
    backward.write(group, values, own_sums + first, all_sums + first);
  });
}

}  // namespace qact::core
