// Values from outside a context, on the CPU: levels by search among its quantiles.
#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>

#include "qact/core/cpu/channels.h"
#include "qact/core/density.h"
#include "qact/core/mutant.h"
#include "qact/core/quantile.h"

namespace qact::core {
namespace {

using namespace cpu;

// A channel's quantiles as the kernels search them.
template <class Real>
void load_thresholds(const double* quantiles, int levels, std::vector<Real>& thresholds) {
  size_t size = kShortTable;
  while (size - 1 < static_cast<size_t>(levels)) size *= 2;
  thresholds.assign(size, std::numeric_limits<Real>::infinity());
  for (int j = 0; j < levels; ++j) thresholds[j] = static_cast<Real>(quantiles[j]);
  if (QACT_MUTANT("apply_less"))
    for (Real& q : thresholds) q = std::nextafter(q, std::numeric_limits<Real>::infinity());
}

// The cumulative weight of z, continuous: (level + the share of the way to the next
// quantile) / (levels + 1).
template <class Real>
Real unquantised(Real z, int32_t level, const std::vector<Real>& q, int levels) {
  double share = 0;
  if (level == 0) {
    share = 1 / (1 + (static_cast<double>(q[0]) - z));
  } else if (level == levels) {
    const double past = static_cast<double>(z) - q[levels - 1];
    share = std::isinf(past) ? 1 : past / (1 + past);
  } else {
    share =
        (static_cast<double>(z) - q[level - 1]) / (static_cast<double>(q[level]) - q[level - 1]);
  }
  return static_cast<Real>((level + share) / (levels + 1));
}

// k / levels
std::vector<double> level_shares(int levels) {
  std::vector<double> out(levels + 1);
  for (int k = 0; k <= levels; ++k) out[k] = static_cast<double>(k) / levels;
  return out;
}

// A channel's quantiles, and what its levels become.
template <class Real>
struct ApplyChannel {
  Affine<Real> map;
  std::vector<Real> thresholds, outputs;

  ApplyChannel(const QuantileApply& call, const std::vector<double>& shares, int64_t c)
      : map(affine_of<Real>(call.scale, call.shift, c)) {
    load_thresholds(call.quantiles + c * call.levels, call.levels, thresholds);
    const double out_scale = call.out_scale.at(c, 1.0), out_shift = call.out_shift.at(c, 0.0);
    const auto output = [&](double share) {
      return static_cast<Real>(share * out_scale + out_shift);
    };
    outputs.assign(std::max(call.levels + 1, kShortTable), output(shares.back()));
    for (int k = 0; k < call.levels; ++k) outputs[k] = output(shares[k]);
  }
};

// The level as a fraction between its two quantiles.
template <class Real>
void apply_unquantised(const QuantileApply& call, int64_t c, const ApplyChannel<Real>& channel,
                       const TensorKernels<Real>& kernels, const Real* x, int64_t size, Real* y) {
  std::vector<Real> z(size + kLanes<Real>);
  std::vector<int32_t> level(size + kLanes<Real>);
  kernels.affine(x, size, channel.map, z.data());
  kernels.search(z.data(), size, channel.thresholds.data(), call.levels, level.data());
  const double out_scale = call.out_scale.at(c, 1.0), out_shift = call.out_shift.at(c, 0.0);
  for (int64_t i = 0; i < size; ++i) {
    const double u = unquantised(z[i], level[i], channel.thresholds, call.levels);
    y[i] = std::isnan(z[i]) ? z[i] : static_cast<Real>(u * out_scale + out_shift);
  }
}

// Whether runs of both tensors are worked on where they lie: long enough ones of the type that the
// kernels compute in.
template <class Real>
bool in_place_runs(const QuantileApply& call) {
  constexpr DType kOwn = std::is_same_v<Real, double> ? DType::f64 : DType::f32;
  const auto own = [](const View& v) { return v.dtype == kOwn && v.spatial_stride == 1; };
  return call.quantised && call.shape.spatial >= kLanes<Real> && own(call.x) && own(call.y);
}

// A tile is a part of an image or whole images.
template <class Real>
void apply_runs(const QuantileApply& call, const TilePlan& plan, const TensorKernels<Real>& kernels,
                const ApplyChannel<Real>& channel, int64_t c, int64_t tile) {
  const int64_t spatial = plan.shape.spatial, start = plan.start(tile), size = plan.size(tile);
  const auto first = [&](const View& v) {
    return static_cast<Real*>(v.from(start / spatial, c).data) + start % spatial;
  };
  const int64_t images = std::max<int64_t>(1, size / spatial);
  kernels.apply(first(call.x), {images, size / images, call.x.batch_stride, call.y.batch_stride},
                channel.map, {channel.thresholds.data(), call.levels, channel.outputs.data()},
                first(call.y));
}

template <class Real>
void apply_group(const QuantileApply& call, const std::vector<double>& shares, const TilePlan& plan,
                 const TensorKernels<Real>& kernels, Strips<Real>& x, Strips<Real>& y,
                 int64_t group) {
  const int64_t first = plan.first_channel(group);
  const bool in_place = in_place_runs<Real>(call);
  std::vector<ApplyChannel<Real>> channels;
  channels.reserve(plan.channels_of(group));
  for (int64_t g = 0; g < plan.channels_of(group); ++g) {
    channels.emplace_back(call, shares, first + g);
  }
  for (int64_t tile = 0; tile < plan.tiles; ++tile) {
    const int64_t size = plan.size(tile);
    for (int64_t g = 0; g < plan.channels_of(group); ++g) {
      const ApplyChannel<Real>& channel = channels[g];
      if (in_place) {
        apply_runs(call, plan, kernels, channel, first + g, tile);
        continue;
      }
      const Real* in = x.load(group, tile, g);
      Real* out = y.open(group, tile, g);
      if (call.quantised) {
        kernels.apply(in, {1, size, 0, 0}, channel.map,
                      {channel.thresholds.data(), call.levels, channel.outputs.data()}, out);
      } else {
        apply_unquantised(call, first + g, channel, kernels, in, size, out);
      }
    }
    if (!in_place) y.store(group, tile);
  }
}

// f of each level: the quantiles as points of weight 1 / levels, at the level's middle.
void level_density(const double* q, int levels, double bandwidth, std::vector<double>& density) {
  GaussSum sum(bandwidth);
  for (int j = 0; j < levels; ++j) sum.add(q[j], 1.0 / levels);
  sum.finish();
  density.resize(levels + 1);
  for (int k = 0; k <= levels; ++k) {
    const double low = q[std::max(k - !QACT_MUTANT("apply_density_level"), 0)],
                 high = q[std::min(k, levels - 1)];
    density[k] = sum.at(0.5 * (low + high));
  }
}

// A channel's quantiles, and f * out_scale of its levels.
template <class Real>
struct ApplyGradChannel {
  Affine<Real> map;
  std::vector<Real> thresholds, density;
  ApplySums sums;

  ApplyGradChannel(const QuantileApplyBackward& call, int64_t c)
      : map(affine_of<Real>(call.scale, call.shift, c)) {
    const double* q = call.quantiles + c * call.levels;
    load_thresholds(q, call.levels, thresholds);
    std::vector<double> f;
    level_density(q, call.levels, call.bandwidth, f);
    density.resize(std::max(call.levels + 1, kShortTable));
    for (int k = 0; k <= call.levels; ++k) {
      density[k] = static_cast<Real>(f[k] * call.out_scale.at(c, 1.0));
    }
  }
};

template <class Real>
void apply_backward_group(const QuantileApplyBackward& call, const TilePlan& plan,
                          const TensorKernels<Real>& kernels, Strips<Real>& grad_y, Strips<Real>& x,
                          Strips<Real>& grad_x, int64_t group) {
  const int64_t first = plan.first_channel(group);
  std::vector<ApplyGradChannel<Real>> channels;
  channels.reserve(plan.channels_of(group));
  for (int64_t g = 0; g < plan.channels_of(group); ++g) channels.emplace_back(call, first + g);
  for (int64_t tile = 0; tile < plan.tiles; ++tile) {
    for (int64_t g = 0; g < plan.channels_of(group); ++g) {
      ApplyGradChannel<Real>& channel = channels[g];
      kernels.apply_grad(x.load(group, tile, g), grad_y.load(group, tile, g), plan.size(tile),
                         channel.map,
                         {channel.thresholds.data(), call.levels, channel.density.data()},
                         channel.sums, grad_x.open(group, tile, g));
    }
    grad_x.store(group, tile);
  }
  for (int64_t g = 0; g < plan.channels_of(group); ++g) {
    const ApplySums& sums = channels[g].sums;
    double* affine = call.grad_affine + 4 * (first + g);
    affine[0] = sums.dz_x;
    affine[1] = sums.dz;
    affine[2] = sums.dy_k / call.levels;
    affine[3] = sums.dy;
  }
}

}  // namespace

void quantile_apply(const QuantileApply& call, const Execution& execution) {
  const TilePlan plan(call.shape, call.x);
  const std::vector<double> shares = level_shares(call.levels);
  with_real(call.x.dtype, [&]<class Real>(Real) {
    for_each_group(plan, execution, [&](int64_t begin, int64_t end) {
      const TensorKernels<Real>& table = tensor_kernels<Real>(execution.simd);
      Strips<Real> x(call.x, plan, table), y(call.y, plan, table);
      for (int64_t group = begin; group < end; ++group) {
        apply_group(call, shares, plan, table, x, y, group);
      }
    });
  });
}

void quantile_apply_backward(const QuantileApplyBackward& call, const Execution& execution) {
  const TilePlan plan(call.shape, call.x);
  with_real(call.x.dtype, [&]<class Real>(Real) {
    for_each_group(plan, execution, [&](int64_t begin, int64_t end) {
      const TensorKernels<Real>& table = tensor_kernels<Real>(execution.simd);
      Strips<Real> grad_y(call.grad_y, plan, table), x(call.x, plan, table),
          grad_x(call.grad_x, plan, table);
      for (int64_t group = begin; group < end; ++group) {
        apply_backward_group(call, plan, table, grad_y, x, grad_x, group);
      }
    });
  });
}

}  // namespace qact::core
