// Contexts counted on the CPU, for values that no fused layer has ranked.
#include <bit>
#include <cmath>
#include <vector>

#include "qact/core/context.h"
#include "qact/core/context_ties.h"
#include "qact/core/cpu/channels.h"
#include "qact/core/mutant.h"
#include "qact/core/quantile.h"
#include "qact/core/sort.h"

namespace qact::core {
namespace {

using namespace cpu;

// One channel's counts. Ties must lie in buckets of a hash table that are as heavy as a tie: few
// others are, and only the values in those are sorted.
template <class Real>
class ContextCounts {
 public:
  void clear() {
    bucket_.assign(kBuckets, 0);
    suspects_.clear();
    signs_[0] = signs_[1] = 0;
  }

  void add(const Real* z, int64_t n, int64_t* row) {
    for (int64_t i = QACT_MUTANT("context_build_first"); i < n; ++i) {
      if (std::isnan(z[i])) continue;
      row[context_bin(static_cast<float>(z[i]))] += kContextUnit;
      ++signs_[z[i] >= 0];
      ++bucket_[hash(z[i])];
    }
  }

  bool may_hold_ties() const {
    for (const int32_t count : bucket_) {
      if (may_hold_tie(count)) return true;
    }
    return false;
  }

  // For the same values as add().
  void collect(const Real* z, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
      if (!std::isnan(z[i]) && may_hold_tie(bucket_[hash(z[i])])) suspects_.push_back(z[i]);
    }
  }

  void move_ties(int64_t* row) {
    sort_values(suspects_.data(), static_cast<int64_t>(suspects_.size()), scratch_);
    core::move_ties<Real>(suspects_, signs_, row);
  }

 private:
  static constexpr int kBucketBits = 12, kBuckets = 1 << kBucketBits;
  static uint32_t hash(Real z) {
    using Bits = std::conditional_t<sizeof(Real) == 4, uint32_t, uint64_t>;
    constexpr uint64_t kGolden = 0x9e3779b97f4a7c15;
    const uint64_t bits = std::bit_cast<Bits>(z + Real{0});  // -0 is 0
    return static_cast<uint32_t>((bits * kGolden) >> (64 - kBucketBits));
  }
  bool may_hold_tie(int32_t count) const {
    return context_is_tie(count, signs_[0]) || context_is_tie(count, signs_[1]);
  }

  std::vector<int32_t> bucket_;
  std::vector<Real> suspects_;
  int64_t signs_[2];
  std::vector<uint8_t> scratch_;
};

template <class Real>
void build_group(const ContextBuild& call, const TilePlan& plan, const TensorKernels<Real>& kernels,
                 Strips<Real>& x, int64_t group, std::vector<ContextCounts<Real>>& counts) {
  const int64_t first = plan.first_channel(group), channels = plan.channels_of(group);
  const auto row = [&](int64_t g) { return call.context + (first + g) * kContextBins; };
  std::vector<Real> z(plan.length + kLanes<Real>);
  const auto for_each_strip = [&](auto use) {
    for_each_tile(plan, group, [&](int64_t tile, int64_t size, int64_t g) {
      kernels.affine(x.load(group, tile, g), size,
                     affine_of<Real>(call.scale, call.shift, first + g), z.data());
      use(g, size);
    });
  };
  counts.resize(plan.group);
  for (int64_t g = 0; g < channels; ++g) counts[g].clear();
  std::fill_n(row(0), channels * kContextBins, int64_t{0});
  for_each_strip([&](int64_t g, int64_t size) { counts[g].add(z.data(), size, row(g)); });
  std::vector<bool> suspect(channels);
  bool any = false;
  for (int64_t g = 0; g < channels; ++g) any |= suspect[g] = counts[g].may_hold_ties();
  if (!any) return;
  for_each_strip([&](int64_t g, int64_t size) {
    if (suspect[g]) counts[g].collect(z.data(), size);
  });
  for (int64_t g = 0; g < channels; ++g) counts[g].move_ties(row(g));
}

}  // namespace

void context_build(const ContextBuild& call, const Execution& execution) {
  const TilePlan plan(call.shape, call.x);
  with_real(call.x.dtype, [&]<class Real>(Real) {
    for_each_group(plan, execution, [&](int64_t begin, int64_t end) {
      const TensorKernels<Real>& kernels = tensor_kernels<Real>(execution.simd);
      Strips<Real> x(call.x, plan, kernels);
      std::vector<ContextCounts<Real>> counts;
      for (int64_t group = begin; group < end; ++group) {
        build_group(call, plan, kernels, x, group, counts);
      }
    });
  });
}

}  // namespace qact::core
