// The fused layer's backward pass on CPU. With u = k / L the activation, y = g2 * yhat + b2
// and z = g1 * xhat + b1:
//
//   du = (g2 / s2) (dy - mean(dy) - yhat * mean(dy * yhat)),  dz = f * du,
//   dx = (g1 / s1) (dz - mean(dz) - xhat * mean(dz * xhat)).
//
// A value's code tells its yhat, f and xhat. So the sums of dy over each code give every mean, and
// dx is a linear function of dy, another one for each code.
#include <cmath>
#include <vector>

#include "qact/core/codes.h"
#include "qact/core/cpu/channels.h"
#include "qact/core/cpu/scope.h"
#include "qact/core/mutant.h"
#include "qact/core/quantile.h"

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
        sums_(plan.blocks * plan.group),
        maps_(plan.group) {}

  void run(int64_t group) {
    const int64_t first = plan_.first_channel(group), channels = plan_.channels_of(group);
    std::memset(static_cast<void*>(sums_.data()), 0, sums_.size() * sizeof(CodeSums));
    const auto sum = [&](int64_t block, const TileRange& tiles, Strips<Real>& grad_y) {
      for_each_tile(plan_, tiles, {0, channels}, [&](int64_t tile, int64_t size, int64_t g) {
        kernels_.grad_sums(grad_y.load(group, tile, g), code(first + g, tile), size,
                           sums_[block * plan_.group + g]);
      });
    };
    for_each_block(plan_, execution_, sum, grad_y_);
    for (int64_t g = 0; g < channels; ++g) {
      double total[kCodes] = {};
      for (int64_t b = 0; b < plan_.blocks; ++b) {
        if (b > 0 && QACT_MUTANT("grad_sums_block")) continue;
        tables_.add_code_sums(sums_[b * plan_.group + g], total);
      }
      solve(first + g, total, maps_[g]);
    }
    const auto write = [&](int64_t, const TileRange& tiles, Strips<Real>& grad_y,
                           Strips<Real>& grad_x) {
      for (int64_t tile = tiles.begin; tile < tiles.end; ++tile) {
        const Real* dy = grad_y.load(group, tile, 0);
        grad_x.store_runs(group, tile, [&](Real* to, RunBlock runs) {
          runs.pitch = grad_y.pitch();
          kernels_.grad_output(dy, code(first, tile), plan_.shape.context_size(), runs,
                               maps_.data(), to);
        });
      }
    };
    for_each_block(plan_, execution_, write, grad_y_, grad_x_);
  }

 private:
  const uint8_t* code(int64_t c, int64_t tile) const {
    return call_.code + c * plan_.shape.context_size() + plan_.start(tile);
  }

  void solve(int64_t c, const double* total, GradTable<Real>& map) const {
    const CodeTable& table = *reinterpret_cast<const CodeTable*>(call_.table + c * kCodeTableWords);
    const double n = static_cast<double>(plan_.shape.context_size());
    const double inv1 = 1 / std::sqrt(table.var_in + call_.eps);
    const double inv2 = 1 / std::sqrt(table.var_out + call_.eps);
    // yhat = k * slope + level0.
    const double slope = inv2 / call_.quantile.levels, level0 = -table.mean_out * inv2;
    GradSums sums;
    tables_.grad_means(total, table, sums);
    const double dy = sums.dy / n, f_dy = sums.f_dy / n;
    const double f_dy_xhat = table.input_unit * sums.f_dy_input / n;
    const double dy_yhat =
        slope * sums.dy_k / n + (QACT_MUTANT("grad_weight_out_mean") ? 0 : level0 * dy);
    const double f_yhat = slope * table.f_k + level0 * table.f;
    const double f_yhat_xhat = slope * table.f_k_xhat + level0 * table.f_xhat;

    const double outer = call_.weight_out.at(c, 1.0) * inv2;
    const double dz = outer * (f_dy - (QACT_MUTANT("grad_bias_in_mean_dy") ? 0 : dy * table.f) -
                               dy_yhat * f_yhat);
    const double dz_xhat =
        outer * (f_dy_xhat - dy * table.f_xhat -
                 (QACT_MUTANT("grad_weight_in_yhat") ? 0 : dy_yhat * f_yhat_xhat));
    double* affine = call_.grad_affine + 4 * c;
    affine[0] = n * dz_xhat;
    affine[1] = n * dz;
    affine[2] = n * dy_yhat;
    affine[3] = (n - QACT_MUTANT("grad_bias_out_n")) * dy;

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
  std::vector<CodeSums> sums_;  // [blocks][channels]
  std::vector<GradTable<Real>> maps_;
};

}  // namespace

void cpu::layer_backward_whole(const LayerBackward& call, const Execution& execution) {
  const TilePlan plan(call.shape, call.grad_y, /*reread=*/true);
  with_real(call.grad_y.dtype, [&]<class Real>(Real) {
    for_each_group(plan, execution, [&](int64_t begin, int64_t end) {
      Backward<Real> backward(call, plan, execution);
      for (int64_t group = begin; group < end; ++group) backward.run(group);
    });
  });
}

}  // namespace qact::core
