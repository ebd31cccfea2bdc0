#include "qact/core/cpu/binned.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "qact/core/context.h"
#include "qact/core/mutant.h"

namespace qact::core::cpu {

template <class Real>
bool BinnedChannel<Real>::solve(const TensorKernels<Real>& kernels, const TableKernels& tables,
                                const Quantile& quantile) {
  bins.finish(tables);
  level_.resize(padded_bins(bins.plan.bins));
  overrides_.clear();
  rule_ = LevelRule(quantile, bins.negatives, bins.total() - bins.negatives);
  has_heavy_ = resolve_light_bins(tables, quantile) && !QACT_MUTANT("heavy_bins_skipped");
  if (has_heavy_) heavy_.mark(work(kernels, tables, quantile));
  return has_heavy_;
}

// Ranks count -c or c once it lies below, so each side falls into two runs of bins.
// Returns whether any bin is heavier than half a level.
template <class Real>
bool BinnedChannel<Real>::resolve_light_bins(const TableKernels& tables, const Quantile& quantile) {
  const BinPlan<Real>& plan = bins.plan;
  bool heavy = false;
  for (const bool positive : {false, true}) {
    const int32_t begin = positive ? plan.split : 0, end = positive ? plan.bins : plan.split;
    const double bound = positive ? quantile.bound : -quantile.bound;
    const double past = plan.z_width > 0 ? std::floor((bound - plan.z_first) / plan.z_width) + 1
                                         : (bound <= plan.z_first ? begin : end);
    const int32_t middle = static_cast<int32_t>(std::clamp<double>(past, begin, end));
    const double gain = (quantile.levels + 1) * rule_.weight(positive);
    BinLevels rule;
    rule.base =
        positive ? static_cast<float>((quantile.levels + 1) * (1 - quantile.positive_share)) : 0.0f;
    rule.gain = static_cast<float>(gain / 2);
    rule.cap = quantile.levels;
    rule.limit = rule_.half_level(positive);
    const auto run = [&](int32_t from, int32_t to, int bounds) {
      if (from == to) return;
      rule.rank = bounds - (positive ? bins.negatives : 0);
      heavy |= tables.bin_levels(bins.count.data() + from, bins.before.data() + from, to - from,
                                 rule, level_.data() + from);
    };
    run(begin, middle, 0);
    run(middle, end, !QACT_MUTANT("bins_past_bound"));
  }
  return heavy;
}

template <class Real>
void BinnedChannel<Real>::estimate_density(const TableKernels& tables, const Quantile& quantile) {
  density_.reset(bins.plan.z_first, bins.plan.z_last(), quantile.bandwidth);
  const int32_t cells = DensityGrid::kCells * density_.nodes();
  cumulative_.find(tables, bins, nullptr, density_.first_edge(),
                   density_.spacing() / DensityGrid::kCells, cells + 1);
  cells_.resize(padded(cells));
  const float weight[2] = {static_cast<float>(rule_.weight(false)),
                           static_cast<float>(rule_.weight(true))};
  tables.cell_weights(cumulative_.whole.data(),
                      cumulative_.parts ? cumulative_.part.data() : nullptr, cells, bins.negatives,
                      weight, cells_.data());
  density_.set_cells(cells_.data());
  density_.add(-quantile.bound, rule_.weight(false));
  density_.add(quantile.bound, rule_.weight(true));
  density_.finish(tables);
}

template <class Real>
void BinnedChannel<Real>::density_by_bin(const TableKernels& tables, const Quantile& quantile) {
  const BinPlan<Real>& plan = bins.plan;
  estimate_density(tables, quantile);
  bin_density_.resize(plan.bins);
  for (int32_t b = 0; b < plan.bins; ++b) bin_density_[b] = density_.at(plan.centre(b));
}

template <class Real>
void BinnedChannel<Real>::find_codes(const TableKernels& tables, const CodeCells& cells,
                                     double weight, double bias, CodeCounts& counts) {
  const BinPlan<Real>& plan = bins.plan;
  code_.assign(std::max<size_t>(padded_bins(plan.bins), kMostShuffled), 0);
  if (plan.bins > 1) {
    const double stretch = std::abs(weight) / plan.z_width;
    const CellEdges edges{static_cast<float>(cells.first()), static_cast<float>(cells.width()),
                          static_cast<float>(stretch * CodeCells::scale()),
                          static_cast<float>((bias - plan.z_first) / plan.z_width),
                          cells.cells() - 1};
    int32_t end[kCodes];
    tables.cell_ends(edges, plan.bins, end);
    for (int j = 0; j < edges.cells; ++j) ++code_[end[j]];
  }
  const double width = plan.z_width / weight, origin = (plan.centre(0) - bias) / weight;
  start_.resize(padded_bins(plan.bins));
  moment_.resize(padded_bins(plan.bins));
  counts.set_bins(tables,
                  {bins.count.data(), bins.before.data(), level_.data(), plan.bins, bins.total()},
                  code_.data(), {start_.data(), moment_.data()}, origin, width);
  for (const Override& value : overrides_) {
    const double xhat = origin + value.bin * width;
    counts.add(code_[value.bin], level_[value.bin], -1, -xhat);
    if (!QACT_MUTANT("codes_of_overrides")) counts.add(code(value), value.level, 1, xhat);
  }
}

template <class Real>
void BinnedChannel<Real>::fill_table(const TableKernels& tables, const Quantile& quantile,
                                     double weight, double bias, const CodeCounts& counts,
                                     CodeTable& table) {
  estimate_density(tables, quantile);
  counts.fill(tables, density_, weight, bias, bins.total(), table);
}

template <class Real>
void BinnedChannel<Real>::write_context(const TableKernels& tables, std::span<const Tie> ties,
                                        int64_t* context) {
  static const auto upper_edges = [] {
    std::array<float, padded(kContextBins)> out{};
    for (int b = 0; b < kContextBins; ++b) out[b] = context_edge(b + 1);
    return out;
  }();
  for (const Tie& tie : ties) bins.remove(tie.bin, tie.count);
  cumulative_.find(tables, bins, upper_edges.data(), 0, 1, kContextBins);
  tables.context_counts(cumulative_.whole.data(), cumulative_.part.data(), context);
  for (const Tie& tie : ties) context[context_tie_bin(tie.z)] += tie.count * kContextUnit;
}

template class BinnedChannel<float>;
template class BinnedChannel<double>;

}  // namespace qact::core::cpu
