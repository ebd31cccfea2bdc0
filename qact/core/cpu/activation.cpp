// The plain operator on CPU.
#include <cmath>
#include <vector>

#include "qact/core/cpu/channels.h"
#include "qact/core/exact.h"
#include "qact/core/mutant.h"
#include "qact/core/quantile.h"

namespace qact::core {
namespace {

using namespace cpu;

template <class Real>
class Forward {
 public:
  Forward(const ActivationForward& call, const TilePlan& plan, Simd simd)
      : quantile_(call.quantile),
        plan_(plan),
        kernels_(tensor_kernels<Real>(simd)),
        tables_(table_kernels(simd)),
        x_(call.x, plan, kernels_),
        y_(call.y, plan, kernels_),
        density_(call.density, plan, kernels_),
        need_density_(call.density),
        bins_(plan.group),
        level_(plan.length + kLanes<Real>),
        bin_(plan.length + kLanes<Real>) {}

  void run(int64_t group) {
    const int64_t channels = plan_.channels_of(group);
    plan_bins(group);
    count_bins(kernels_, plan_, x_, group, {0, channels}, bins_);
    solve_bins(kernels_, tables_, quantile_, plan_, x_, group, {0, channels}, bins_);
    exact_.resize(channels);
    for (int64_t g = 0; g < channels; ++g) {
      if (bins_[g].bins.plan.bins > 0) {
        if (need_density_) bins_[g].density_by_bin(tables_, quantile_);
      } else {
        solve_exact(group, g);
      }
    }
    for (int64_t tile = 0; tile < plan_.tiles; ++tile) {
      for (int64_t g = 0; g < channels; ++g) {
        const Real* x = x_.load(group, tile, g);
        Real* y = y_.open(group, tile, g);
        Real* f = need_density_ ? density_.open(group, tile, g) : nullptr;
        if (bins_[g].bins.plan.bins > 0) {
          write_binned(bins_[g], x, plan_.start(tile), plan_.size(tile), y, f);
        } else {
          write_exact(exact_[g], x, plan_.size(tile), y, f);
        }
      }
      y_.store(group, tile);
      if (need_density_) density_.store(group, tile);
    }
  }

 private:
  struct Exact {
    SortedContext<Real> context;
    MemberLevels<Real> levels;
    GaussSum density{1.0};
  };

  // Bins for the channels that can have them; a NaN or an infinity is left to the sort.
  void plan_bins(int64_t group) {
    const bool exact = quantile_.exact_for(plan_.shape.context_size());
    if (!exact) summarise(kernels_, plan_, x_, group, summaries_);
    for (int64_t g = 0; g < plan_.channels_of(group); ++g) {
      if (exact || !summaries_[g].finite() ||
          !bins_[g].bins.plan.make(summaries_[g], {}, quantile_.bandwidth)) {
        bins_[g].bins.plan = {};
      }
    }
  }

  void solve_exact(int64_t group, int64_t g) {
    Exact& exact = exact_[g];
    auto& values = exact.context.values;
    values.clear();
    for (int64_t tile = 0; tile < plan_.tiles; ++tile) {
      const Real* x = x_.load(group, tile, g);
      values.insert(values.end(), x, x + plan_.size(tile));
    }
    exact.context.sort();
    exact.levels.build(exact.context, quantile_);
    if (need_density_) {
      exact.density = context_density(exact.context, quantile_, plan_.first_channel(group) + g);
    }
  }

  void write_levels(int64_t n, Real* y) const {
    const Real levels = static_cast<Real>(quantile_.levels);
    for (int64_t i = 0; i < n; ++i) y[i] = static_cast<Real>(level_[i]) / levels;
  }

  void write_binned(const BinnedChannel<Real>& channel, const Real* x, int64_t start, int64_t n,
                    Real* y, Real* f) {
    kernels_.find_bins(x, n, channel.bins.plan.map, bin_.data());
    for (int64_t i = 0; i < n; ++i) level_[i] = channel.levels()[bin_[i]];
    for_each_override(channel.overrides(), start, n, [&](int64_t i, const Override& o) {
      level_[i] = o.level - QACT_MUTANT("activation_heavy_values");
    });
    write_levels(n, y);
    if (!f) return;
    const std::vector<float>& density = channel.bin_density();
    for (int64_t i = 0; i < n; ++i) f[i] = density[bin_[i]];
  }

  void write_exact(const Exact& exact, const Real* x, int64_t n, Real* y, Real* f) {
    if (quantile_.quantised) {
      kernels_.search(x, n, exact.levels.thresholds.data(), exact.levels.reached, level_.data());
      write_levels(n, y);
    } else {
      const LevelRule rule(quantile_, exact.context.negatives, exact.context.positives());
      for (int64_t i = 0; i < n; ++i) {
        const int64_t rank = exact.context.rank(x[i], quantile_.bound);
        y[i] = static_cast<Real>(rule.cumulative(!(x[i] < 0), rank));
      }
    }
    for (int64_t i = 0; i < n; ++i) {
      if (std::isnan(x[i])) y[i] = x[i];
      if (f) f[i] = std::isnan(x[i]) ? x[i] : static_cast<Real>(exact.density.at(x[i]));
    }
  }

  const Quantile& quantile_;
  const TilePlan& plan_;
  const TensorKernels<Real>& kernels_;
  const TableKernels& tables_;
  Strips<Real> x_, y_, density_;
  bool need_density_;
  std::vector<Summary<Real>> summaries_;
  std::vector<BinnedChannel<Real>> bins_;
  std::vector<Exact> exact_;
  std::vector<int32_t> level_;
  std::vector<uint16_t> bin_;
};

}  // namespace

void activation_forward(const ActivationForward& call, const Execution& execution) {
  const TilePlan plan(call.shape, call.x);
  with_real(call.x.dtype, [&]<class Real>(Real) {
    for_each_group(plan, execution, [&](int64_t begin, int64_t end) {
      Forward<Real> forward(call, plan, execution.simd);
      for (int64_t group = begin; group < end; ++group) forward.run(group);
    });
  });
}

void quantiles(const Quantiles& call, const Execution& execution) {
  const TilePlan plan(call.shape, call.x);
  with_real(call.x.dtype, [&]<class Real>(Real) {
    for_each_group(plan, execution, [&](int64_t begin, int64_t end) {
      Strips<Real> x(call.x, plan, tensor_kernels<Real>(execution.simd));
      for (int64_t group = begin; group < end; ++group) {
        std::vector<SortedContext<Real>> contexts(plan.channels_of(group));
        for_each_tile(plan, group, [&](int64_t tile, int64_t size, int64_t g) {
          const Real* strip = x.load(group, tile, g);
          contexts[g].values.insert(contexts[g].values.end(), strip, strip + size);
        });
        for (size_t g = 0; g < contexts.size(); ++g) {
          contexts[g].sort();
          const int64_t channel = plan.first_channel(group) + static_cast<int64_t>(g);
          weighted_quantiles(contexts[g], call.quantile,
                             call.quantiles + channel * call.quantile.levels);
        }
      }
    });
  });
}

}  // namespace qact::core
