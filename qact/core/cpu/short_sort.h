// Rows of lanes, sorted lane by lane. Included once per SIMD level.
#pragma once

#include <cstdint>
#include <cstring>

#include "qact/core/cpu/simd.h"
#include "qact/core/mutant.h"

namespace qact::core::cpu {
namespace {

// A bitonic network over [row][lane]: the number of rows is a power of two, 8 or more. What lies
// in `place` goes along. Rows pass through registers eight or four at a time.
template <class Real>
class RowSort {
 public:
  RowSort(Real* key, int32_t* place, int32_t rows) : key_(key), place_(place), rows_(rows) {}

  void run() {
    for (; part_ < kParts; ++part_) {
      eights(/*whole=*/true);
      for (int32_t run = 8; run < rows_; run *= 2) merge(run);
    }
  }

 private:
  static constexpr int kN = 64 / sizeof(Real), kPart = kN / kParts;
  using Key = typename Vec<Real>::Part;
  using Place = typename IntVec<Real>::Part;
  struct Row {
    Key key;
    Place place;
  };

  Row get(int32_t i) const {
    Row out;
    std::memcpy(&out.key, key_ + i * kN + part_ * kPart, sizeof(Key));
    std::memcpy(&out.place, place_ + i * kN + part_ * kPart, sizeof(Place));
    return out;
  }
  void put(int32_t i, const Row& row) {
    std::memcpy(key_ + i * kN + part_ * kPart, &row.key, sizeof(Key));
    std::memcpy(place_ + i * kN + part_ * kPart, &row.place, sizeof(Place));
  }
  static void exchange(Row& a, Row& b) {
    const auto swap = b.key < a.key;
    const Place swap_place = __builtin_convertvector(swap, Place);
    const Row low{swap ? b.key : a.key, swap_place ? b.place : a.place};
    b = {swap ? a.key : b.key, swap_place ? a.place : b.place};
    a = low;
  }

  // The last steps of a merge within eight rows, or all of them.
  void eights(bool whole) {
    for (int32_t i = 0; i < rows_; i += 8) {
      Row r[8];
      for (int k = 0; k < 8; ++k) r[k] = get(i + k);
      if (whole) {
        for (int k = 0; k < 8; k += 2) exchange(r[k], r[k + 1]);
        for (int k = 0; k < 8; k += 4) {
          exchange(r[k], r[k + 3]);
          exchange(r[k + 1], r[k + 2]);
        }
        for (int k = 0; k < 8; k += 2) exchange(r[k], r[k + 1]);
        for (int k = 0; k < 4; ++k) exchange(r[k], r[7 - k]);
      } else {
        for (int k = 0; k < 4; ++k) exchange(r[k], r[k + 4]);
      }
      for (int k = 0; k < 8; k += 4) {
        exchange(r[k], r[k + 2]);
        exchange(r[k + 1], r[k + 3]);
      }
      for (int k = 0; k < 8; k += 2) exchange(r[k], r[k + 1]);
      for (int k = 0; k < 8; ++k) put(i + k, r[k]);
    }
  }

  // Two steps among four rows in order: the first pairs the outer and the inner ones or, if not
  // mirrored, those two apart.
  void fours(int32_t a, int32_t b, int32_t c, int32_t d, bool mirrored) {
    Row r[4] = {get(a), get(b), get(c), get(d)};
    if (mirrored) {
      exchange(r[0], r[3]);
      exchange(r[1], r[2]);
    } else {
      exchange(r[0], r[2]);
      exchange(r[1], r[3]);
    }
    exchange(r[0], r[1]);
    exchange(r[2], r[3]);
    put(a, r[0]);
    put(b, r[1]);
    put(c, r[2]);
    put(d, r[3]);
  }
  void two(int32_t a, int32_t b) {
    Row low = get(a), high = get(b);
    exchange(low, high);
    put(a, low);
    put(b, high);
  }

  // Sorted runs into runs twice as long.
  void merge(int32_t run) {
    const int32_t half = run / 2;
    int32_t step = half / 2;
    if (run == 8) {  // the next step is within eight rows
      step = half;
      for (int32_t base = 0; base < rows_; base += 16) {
        for (int32_t i = base; i < base + 8; ++i) two(i, 2 * base + 15 - i);
      }
    } else {
      for (int32_t base = 0; base < rows_; base += 2 * run) {
        for (int32_t i = 0; i < half; ++i) {
          const int32_t low = base + i, high = base + 2 * run - 1 - i;
          fours(low, low + half, high - half, high, /*mirrored=*/true);
        }
      }
    }
    for (; step >= 16; step /= 4) {
      for (int32_t base = 0; base < rows_; base += 2 * step) {
        for (int32_t i = base; i < base + step / 2; ++i) {
          fours(i, i + step / 2, i + step, i + step + step / 2, /*mirrored=*/false);
        }
      }
    }
    if (step == 8 && !QACT_MUTANT("row_sort_step")) {
      for (int32_t base = 0; base < rows_; base += 16) {
        for (int32_t i = base; i < base + 8; ++i) two(i, i + 8);
      }
    }
    eights(/*whole=*/false);
  }

  Real* key_;
  int32_t* place_;
  int32_t rows_;
  int part_ = 0;
};

}  // namespace
}  // namespace qact::core::cpu
