// The fused layer's backward pass on CPU. With u = k / L the activation, y = g2 * yhat + b2
// and z = g1 * xhat + b1:
//
//   du = (g2 / s2) (dy - mean(dy) - yhat * mean(dy * yhat)),  dz = f * du,
//   dx = (g1 / s1) (dz - mean(dz) - xhat * mean(dz * xhat)).
//
// yhat is linear in the level k and xhat in x, so eight sums over the channel give every
// mean, and dx is f times a linear function of dy and k, plus a linear function of x.
#include <cmath>
#include <type_traits>
#include <vector>

#include "qact/core/cpu/channels.h"
#include "qact/core/cpu/layer.h"
#include "qact/core/mutant.h"
#include "qact/core/quantile.h"

namespace qact::core {
namespace {

using namespace cpu;

template <class Real>
double total(const GradSums<Real>& sums, GradSum which) {
  double sum = 0;
  for (const double lane : sums.lane[which]) sum += lane;
  return sum;
}

template <class Real>
void add_sums(GradSums<Real>& sums, const GradSums<Real>& more) {
  for (int s = 0; s < kGradSums; ++s) {
    for (int l = 0; l < kLanes<Real>; ++l) sums.lane[s][l] += more.lane[s][l];
  }
}

template <class Real>
class Backward {
 public:
  Backward(const LayerBackward& call, const TilePlan& plan, const Execution& execution)
      : call_(call),
        plan_(plan),
        execution_(execution),
        kernels_(tensor_kernels<Real>(execution.simd)),
        grad_y_(call.grad_y, plan, kernels_, /*keeps=*/true),
        x_(call.x, plan, kernels_, /*keeps=*/true),
        grad_x_(call.grad_x, plan, kernels_),
        keeps_density_(plan.tiles == 1 && grad_y_.packed() && x_.packed() && grad_x_.packed()),
        sums_(plan.blocks * plan.group),
        maps_(plan.group) {}

  void run(int64_t group) {
    const int64_t first = plan_.first_channel(group), channels = plan_.channels_of(group);
    for (GradSums<Real>& sums : sums_) sums = {};
    bool keeps_density = keeps_density_;
    for (int64_t g = 0; g < channels; ++g) keeps_density &= exponent(first + g) == 0;
    const auto sum = [&](int64_t block, const TileRange& tiles, Strips<Real>& grad_y,
                         Strips<Real>& x) {
      std::vector<Real> room;
      for_each_tile(plan_, tiles, {0, channels}, [&](int64_t tile, int64_t size, int64_t g) {
        Ahead next = x.ahead(group + 1, tile, g, kTensors);
        Ahead written = grad_x_.ahead(group, tile, g, kTensors);
        Real* f = keeps_density ? grad_x_.open(group, tile, g) : nullptr;
        kernels_.grad_sums(grad_y.load(group, tile, g), in_units(x, group, tile, g, room),
                           level(first + g, tile), size, density(first + g),
                           sums_[block * plan_.group + g], f, next, written);
      });
    };
    for_each_block(plan_, execution_, sum, grad_y_, x_);
    for (int64_t g = 0; g < channels; ++g) {
      for (int64_t b = 1; b < plan_.blocks; ++b)
        add_sums(sums_[g], sums_[(b - QACT_MUTANT("grad_sums_block")) * plan_.group + g]);
      maps_[g] = solve(first + g, sums_[g]);
    }
    if (keeps_density) return write_runs(group);
    const auto write = [&](int64_t, const TileRange& tiles, Strips<Real>& grad_y, Strips<Real>& x,
                           Strips<Real>& grad_x) {
      std::vector<Real> room;
      for (int64_t tile = tiles.begin; tile < tiles.end; ++tile) {
        write_tile(group, tile, grad_y, x, grad_x, room);
      }
    };
    for_each_block(plan_, execution_, write, grad_y_, x_, grad_x_);
  }

 private:
  void write_runs(int64_t group) {
    grad_x_.store_runs(group, 0, [&](Real* to, RunBlock runs) {
      runs.pitch = grad_x_.pitch();
      kernels_.grad_output(grad_x_.open(group, 0, 0), grad_y_.load(group, 0, 0),
                           x_.load(group, 0, 0), level(plan_.first_channel(group), 0),
                           plan_.shape.context_size(), runs, maps_.data(), to,
                           grad_y_.ahead(group + 1, kTensors));
    });
  }

  void write_tile(int64_t group, int64_t tile, Strips<Real>& grad_y, Strips<Real>& x,
                  Strips<Real>& grad_x, std::vector<Real>& room) {
    const int64_t first = plan_.first_channel(group);
    for (int64_t g = 0; g < plan_.channels_of(group); ++g) {
      Ahead next = grad_y.ahead(group + 1, tile, g, kTensors);
      kernels_.grad_apply(grad_y.load(group, tile, g), in_units(x, group, tile, g, room),
                          level(first + g, tile), plan_.size(tile), density(first + g), maps_[g],
                          grad_x.open(group, tile, g), next);
    }
    grad_x.store(group, tile);
  }

  static constexpr int64_t kTensors = 5;  // three in use and two asked for ahead

  // Far beyond what any network has, float sums of d overflow, and 1 / variance is 0: such a
  // channel is taken in units of 2^exponent.
  int exponent(int64_t c) const {
    constexpr double kFar = 0x1p64;
    const double variance = reinterpret_cast<const LayerStats*>(call_.stats)[c].var_in;
    if (std::is_same_v<Real, double> || !(variance > kFar) || std::isinf(variance)) return 0;
    return std::ilogb(variance) / 2;
  }
  LayerStats stats(int64_t c) const {
    LayerStats out = reinterpret_cast<const LayerStats*>(call_.stats)[c];
    const int e = exponent(c);
    if (e == 0) return out;
    out.mean_in = std::ldexp(out.mean_in, -e);
    out.var_in = std::ldexp(out.var_in, -2 * e);
    out.density_scale = std::ldexp(out.density_scale, e);
    return out;
  }
  const Real* in_units(Strips<Real>& x, int64_t group, int64_t tile, int64_t g,
                       std::vector<Real>& room) const {
    const Real* strip = x.load(group, tile, g);
    const int e = exponent(plan_.first_channel(group) + g);
    if (e == 0) return strip;
    room.resize(plan_.size(tile));
    for (size_t i = 0; i < room.size(); ++i) room[i] = std::ldexp(strip[i], -e);
    return room.data();
  }
  const uint8_t* level(int64_t c, int64_t tile) const {
    return call_.level + c * plan_.shape.context_size() + plan_.start(tile);
  }
  DensityLookup<Real> density(int64_t c) const {
    const LayerStats s = stats(c);
    const Real centre = static_cast<Real>(s.mean_in);
    const double rest = static_cast<double>(centre) - s.mean_in;
    return {call_.density + c * kDensityNodes, centre, static_cast<Real>(s.density_scale),
            static_cast<Real>(s.density_offset + rest * s.density_scale),
            static_cast<Real>(s.density_last)};
  }

  GradMap<Real> solve(int64_t c, const GradSums<Real>& sums) const {
    const LayerStats s = stats(c);
    const int e = exponent(c);
    const double n = static_cast<double>(plan_.shape.context_size());
    const double g1 = call_.weight_in.at(c, 1.0), g2 = call_.weight_out.at(c, 1.0);
    const double inv1 = 1 / std::sqrt(s.var_in + std::ldexp(call_.eps, -2 * e));
    const double inv2 = 1 / std::sqrt(s.var_out + call_.eps);
    // xhat = (d + rest) * inv1, d = x - centre; yhat = k * slope + level0.
    const Real centre = static_cast<Real>(s.mean_in);
    const double rest = static_cast<double>(centre) - s.mean_in;
    const double slope = inv2 / call_.quantile.levels, level0 = -s.mean_out * inv2;

    const auto mean = [&](GradSum which) { return total(sums, which) / n; };
    const double unit = s.density_unit;
    const double dy = mean(kDy);
    const double dy_yhat =
        slope * mean(kDyK) + (QACT_MUTANT("grad_weight_out_mean") ? 0 : level0 * dy);
    const double f_dy = unit * mean(kFDy);
    const double f_dy_xhat = inv1 * (unit * mean(kFDyD) + rest * f_dy);
    const double f = unit * mean(kF), f_k = unit * mean(kFK);
    const double f_yhat = slope * f_k + level0 * f;
    const double f_xhat = inv1 * (unit * mean(kFD) + rest * f);
    const double f_k_xhat = inv1 * (unit * mean(kFKD) + rest * f_k);
    const double f_yhat_xhat = slope * f_k_xhat + level0 * f_xhat;

    const double dz =
        g2 * inv2 * (f_dy - (QACT_MUTANT("grad_bias_in_mean_dy") ? 0 : dy * f) - dy_yhat * f_yhat);
    const double dz_xhat = g2 * inv2 *
                           (f_dy_xhat - dy * f_xhat -
                            (QACT_MUTANT("grad_weight_in_yhat") ? 0 : dy_yhat * f_yhat_xhat));
    double* affine = call_.grad_affine + 4 * c;
    affine[0] = n * dz_xhat;
    affine[1] = n * dz;
    affine[2] = n * dy_yhat;
    affine[3] = (n - QACT_MUTANT("grad_bias_out_n")) * dy;

    const double inner = std::ldexp(g1 * inv1, -e), both = inner * g2 * inv2 * unit;
    return {static_cast<Real>(both),
            static_cast<Real>(-both * slope * dy_yhat),
            static_cast<Real>(-both * (dy + level0 * dy_yhat)),
            static_cast<Real>(QACT_MUTANT("grad_x_xhat") ? 0 : -inner * inv1 * dz_xhat),
            static_cast<Real>(-inner *
                              ((QACT_MUTANT("grad_x_mean_dz") ? 0 : dz) + rest * inv1 * dz_xhat)),
            centre};
  }

  const LayerBackward& call_;
  const TilePlan& plan_;
  const Execution& execution_;  // of a lone group's blocks
  const TensorKernels<Real>& kernels_;
  Strips<Real> grad_y_, x_, grad_x_;
  const bool keeps_density_;          // in the strips of grad_x_, where whole channels are packed
  std::vector<GradSums<Real>> sums_;  // [blocks][channels]
  std::vector<GradMap<Real>> maps_;
};

}  // namespace

void cpu::layer_backward_whole(const LayerBackward& call, const Execution& execution) {
  const TilePlan plan(call.shape, call.x, /*reread=*/2);
  with_real(call.x.dtype, [&]<class Real>(Real) {
    for_each_group(plan, execution, [&](int64_t begin, int64_t end) {
      Backward<Real> backward(call, plan, execution);
      for (int64_t group = begin; group < end; ++group) backward.run(group);
    });
  });
}

}  // namespace qact::core
