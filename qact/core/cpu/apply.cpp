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

// Of the tables of a channel with so many levels: as many as the kernels search, or read.
size_t table_size(int levels) {
  size_t size = kShortTable;
  while (size - 1 < static_cast<size_t>(levels)) size *= 2;
  return size;
}

// A channel's quantiles as the kernels search them.
template <class Real>
void load_thresholds(const double* quantiles, int levels, Real* thresholds) {
  for (int j = 0; j < levels; ++j) thresholds[j] = static_cast<Real>(quantiles[j]);
  std::fill(thresholds + levels, thresholds + table_size(levels),
            std::numeric_limits<Real>::infinity());
  if (!QACT_MUTANT("apply_less")) return;
  for (int j = 0; j < levels; ++j) {
    thresholds[j] = std::nextafter(thresholds[j], std::numeric_limits<Real>::infinity());
  }
}

// The cumulative weight of z, continuous: (level + the share of the way to the next
// quantile) / (levels + 1).
template <class Real>
Real unquantised(Real z, int32_t level, const Real* q, int levels) {
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

// A channel's quantiles, and what its levels become, in memory that is given.
template <class Real>
struct ApplyChannel {
  Affine<Real> map;
  Real *thresholds, *outputs;

  static size_t memory(int levels) { return 2 * table_size(levels); }

  ApplyChannel(const QuantileApply& call, const std::vector<double>& shares, int64_t c,
               Real* memory)
      : map(affine_of<Real>(call.scale, call.shift, c)),
        thresholds(memory),
        outputs(memory + table_size(call.levels)) {
    load_thresholds(call.quantiles + c * call.levels, call.levels, thresholds);
    const double out_scale = call.out_scale.at(c, 1.0), out_shift = call.out_shift.at(c, 0.0);
    for (int k = 0; k <= call.levels; ++k) {
      outputs[k] = static_cast<Real>(shares[k] * out_scale + out_shift);
    }
    std::fill(outputs + call.levels + 1, outputs + table_size(call.levels), outputs[call.levels]);
  }

  ApplyTable<Real> table(int levels) const { return {thresholds, levels, outputs}; }
};

// The level as a fraction between its two quantiles.
template <class Real>
void apply_unquantised(const QuantileApply& call, int64_t c, const ApplyChannel<Real>& channel,
                       const TensorKernels<Real>& kernels, const Real* x, int64_t size, Real* y) {
  std::vector<Real> z(size + kLanes<Real>);
  std::vector<int32_t> level(size + kLanes<Real>);
  kernels.affine(x, size, channel.map, z.data());
  kernels.search(z.data(), size, channel.thresholds, call.levels, level.data());
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

template <class Real>
void apply_in_place(const QuantileApply& call, const std::vector<double>& shares,
                    const TensorKernels<Real>& kernels, const ChannelRange& channels) {
  std::vector<Real> memory(ApplyChannel<Real>::memory(call.levels));
  for (int64_t c = channels.begin; c < channels.end; ++c) {
    const ApplyChannel<Real> channel(call, shares, c, memory.data());
    kernels.apply(static_cast<const Real*>(call.x.from(0, c).data),
                  {call.shape.batch, call.shape.spatial, call.x.batch_stride, call.y.batch_stride},
                  channel.map, channel.table(call.levels),
                  static_cast<Real*>(call.y.from(0, c).data));
  }
}

template <class Real>
void apply_group(const QuantileApply& call, const std::vector<double>& shares, const TilePlan& plan,
                 const TensorKernels<Real>& kernels, Strips<Real>& x, Strips<Real>& y,
                 int64_t group) {
  const int64_t first = plan.first_channel(group), count = plan.channels_of(group);
  const size_t size = ApplyChannel<Real>::memory(call.levels);
  std::vector<Real> memory(size * count);
  std::vector<ApplyChannel<Real>> channels;
  channels.reserve(count);
  for (int64_t g = 0; g < count; ++g) {
    channels.emplace_back(call, shares, first + g, memory.data() + size * g);
  }
  for (int64_t tile = 0; tile < plan.tiles; ++tile) {
    const int64_t n = plan.size(tile);
    for (int64_t g = 0; g < count; ++g) {
      const Real* in = x.load(group, tile, g);
      Real* out = y.open(group, tile, g);
      if (call.quantised) {
        kernels.apply(in, {1, n, 0, 0}, channels[g].map, channels[g].table(call.levels), out);
      } else {
        apply_unquantised(call, first + g, channels[g], kernels, in, n, out);
      }
    }
    y.store(group, tile);
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
    thresholds.resize(table_size(call.levels));
    load_thresholds(q, call.levels, thresholds.data());
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
    const TensorKernels<Real>& table = tensor_kernels<Real>(execution.simd);
    for_each_group(plan, execution, [&](int64_t begin, int64_t end) {
      if (in_place_runs<Real>(call)) {
        const int64_t most = plan.shape.channels;
        const ChannelRange channels = {plan.first_channel(begin),
                                       std::min(plan.first_channel(end), most)};
        return apply_in_place(call, shares, table, channels);
      }
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
