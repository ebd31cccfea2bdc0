// Ties in a context: counted below their bin, as context.h explains.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "qact/core/context.h"
#include "qact/core/mutant.h"
#include "qact/core/sort.h"

namespace qact::core {

// Moves the ties among ascending values, which were counted in `row` by their own bins. `signs`:
// how many values of the context are < 0, and how many are not.
template <class Real>
void move_ties(std::span<const Real> ascending, const int64_t (&signs)[2], int64_t* row) {
  for (size_t i = 0; i < ascending.size();) {
    const Real z = ascending[i];
    int64_t count = 0;
    for (; i < ascending.size() && ascending[i] == z; ++i) ++count;
    count -= QACT_MUTANT("context_ties_moved");
    if (!context_is_tie(count, signs[z >= 0])) continue;
    row[context_bin(static_cast<float>(z))] -= count * kContextUnit;
    row[context_tie_bin(static_cast<float>(z))] += count * kContextUnit;
  }
}

// The context of finite values, which are sorted. `scratch` as for sort_values.
template <class Real>
void count_context(std::vector<Real>& values, std::vector<uint8_t>& scratch, int64_t* row) {
  sort_values(values.data(), static_cast<int64_t>(values.size()), scratch);
  std::fill_n(row, kContextBins, int64_t{0});
  int64_t signs[2] = {};
  for (const Real z : values) {
    row[context_bin(static_cast<float>(z))] += kContextUnit;
    ++signs[z >= 0];
  }
  move_ties<Real>(values, signs, row);
}

}  // namespace qact::core
