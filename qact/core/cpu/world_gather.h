// Contexts that every rank gathers whole and ranks by the layer of one process: those that are
// short, and those that cannot be binned. Each rank puts its values in their places among zeros,
// and the sum of the bits, as whole numbers, is all of them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "qact/core/codes.h"
#include "qact/core/context.h"
#include "qact/core/cpu/scope.h"
#include "qact/core/cpu/short_layer.h"
#include "qact/core/mutant.h"
#include "qact/core/world.h"

namespace qact::core::cpu {

template <class Real>
class GatheredContexts {
 public:
  // Channels ascend.
  void add(int64_t c) { channels_.push_back(c); }

  // Some channels at a time, n values each; false once all are ranked.
  bool start(int64_t n) {
    const size_t at_once = std::max<int64_t>(1, kMostValues / n), left = channels_.size() - ranked_;
    n_ = n;
    at_once_ = std::min(at_once, left);
    values_.assign(at_once_ * n, 0);
    return left > 0;
  }
  Reduction reduction() {
    return {sizeof(Real) == 4 ? Reduction::Kind::sum_i32 : Reduction::Kind::sum_i64, values_.data(),
            static_cast<int64_t>(values_.size())};
  }
  // Those that are being gathered.
  std::span<const int64_t> now() const { return std::span(channels_).subspan(ranked_, at_once_); }
  bool wants(int64_t c) const { return slot(c) < at_once_; }
  Real* values(int64_t c) { return values_.data() + slot(c) * n_; }

  // All that `call` wants of these channels, but y: the codes of its own images, which come after
  // `before` others of `images`.
  void rank(const LayerForward& call, int64_t images, int64_t before, const Execution& execution) {
    Ranked found(call, *this, images);
    layer_forward_whole(found.whole, execution);
    // One process has the statistics of these from short_layer.h, where sums have another order.
    if (is_short_context(call.quantile, n_, call.x.dtype)) {
      ShortLayer<Real>(execution.simd).forward(found.whole);
    }
    for (size_t i = 0; i < at_once_; ++i) {
      found.copy(call, static_cast<int64_t>(i), channels_[ranked_ + i], before);
      const auto* table =
          reinterpret_cast<const CodeTable*>(found.table.data() + i * kCodeTableWords);
      level_.insert(level_.end(), table->level, table->level + kCodes);
    }
    ranked_ += at_once_;
  }
  // By code, of a channel that is ranked.
  const uint8_t* levels(int64_t c) const {
    const auto at = std::lower_bound(channels_.begin(), channels_.end(), c) - channels_.begin();
    return level_.data() + at * kCodes;
  }

 private:
  static constexpr int64_t kMostValues = int64_t{1} << 22;  // in a round

  // The whole contexts' call and its results.
  struct Ranked {
    std::vector<double> weight, bias;
    std::vector<uint8_t> code;
    std::vector<int32_t> table;
    std::vector<double> stats;
    std::vector<int64_t> context;
    LayerForward whole;

    Ranked(const LayerForward& call, GatheredContexts& of, int64_t images)
        : code(of.at_once_ * of.n_),
          table(of.at_once_ * kCodeTableWords),
          stats(of.at_once_ * kLayerStats),
          context(call.context ? of.at_once_ * kContextBins : 0),
          whole(call) {
      for (size_t i = 0; i < of.at_once_; ++i) {
        weight.push_back(call.weight_in.at(of.channels_[of.ranked_ + i], 1.0));
        bias.push_back(call.bias_in.at(of.channels_[of.ranked_ + i], 0.0));
      }
      whole.shape = {images, static_cast<int64_t>(of.at_once_), call.shape.spatial};
      whole.x = {of.values_.data(), sizeof(Real) == 4 ? DType::f32 : DType::f64, call.shape.spatial,
                 of.n_, 1};
      whole.y = {};
      whole.weight_in = {weight.data(), true};
      whole.bias_in = {bias.data(), true};
      whole.weight_out = whole.bias_out = {};
      whole.code = code.data();
      whole.table = table.data();
      whole.stats = stats.data();
      whole.context = call.context ? context.data() : nullptr;
    }

    // The i-th of these channels, to where c has its rows.
    void copy(const LayerForward& call, int64_t i, int64_t c, int64_t before) const {
      const auto copy_row = [&](const auto& from, int64_t row, auto* to) {
        std::copy_n(from.data() + i * row, row, to + c * row);
      };
      const int64_t own = call.shape.context_size(), n = whole.shape.context_size();
      const int64_t first = QACT_MUTANT("gather_own_codes") ? 0 : before * call.shape.spatial;
      std::copy_n(code.data() + i * n + first, own, call.code + c * own);
      copy_row(stats, kLayerStats, call.stats);
      if (call.table) copy_row(table, kCodeTableWords, call.table);
      if (call.context) copy_row(context, kContextBins, call.context);
    }
  };

  // Among those that are being gathered; beyond them for any other.
  size_t slot(int64_t c) const {
    const auto begin = channels_.begin() + ranked_, end = begin + at_once_;
    const auto at = std::lower_bound(begin, end, c);
    return at != end && *at == c ? at - begin : at_once_;
  }

  std::vector<int64_t> channels_;
  size_t ranked_ = 0, at_once_ = 0;
  int64_t n_ = 0;
  std::vector<Real> values_;
  std::vector<uint8_t> level_;  // [ranked][kCodes]
};

}  // namespace qact::core::cpu
