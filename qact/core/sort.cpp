#include "qact/core/sort.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>

#include "qact/core/mutant.h"

namespace qact::core {
namespace {

// A comparison sort wins below, a radix sort above.
constexpr int64_t kRadixFrom = 256;

template <class Real>
struct KeyOf;
template <>
struct KeyOf<float> {
  using Type = uint32_t;
};
template <>
struct KeyOf<double> {
  using Type = uint64_t;
};

// The order of the keys as unsigned integers is the order of the values.
template <class Real>
auto to_key(Real value) {
  using Key = typename KeyOf<Real>::Type;
  constexpr Key kSign = Key{1} << (8 * sizeof(Key) - 1);
  const Key bits = std::bit_cast<Key>(value);
  return (bits & kSign) ? static_cast<Key>(~bits) : static_cast<Key>(bits | kSign);
}

template <class Real, class Key>
Real from_key(Key key) {
  constexpr Key kSign = Key{1} << (8 * sizeof(Key) - 1);
  return std::bit_cast<Real>((key & kSign) ? static_cast<Key>(key & ~kSign)
                                           : static_cast<Key>(~key));
}

constexpr int kDigitBits = 8;
constexpr int kDigits = 1 << kDigitBits;

template <class Key>
void radix_sort(Key* keys, Key* other, int64_t n) {
  constexpr int kPasses = sizeof(Key) * 8 / kDigitBits;
  std::vector<int64_t> count(kPasses * kDigits, 0);
  for (int64_t i = 0; i < n; ++i) {
    for (int pass = 0; pass < kPasses; ++pass) {
      ++count[pass * kDigits + ((keys[i] >> (pass * kDigitBits)) & (kDigits - 1))];
    }
  }
  Key* from = keys;
  Key* to = other;
  for (int pass = 0; pass < kPasses; ++pass) {
    int64_t* start = &count[pass * kDigits];
    const int shift = pass * kDigitBits;
    if (start[(from[0] >> shift) & (kDigits - 1)] == n) continue;
    int64_t total = 0;
    for (int d = 0; d < kDigits; ++d) {
      const int64_t here = start[d];
      start[d] = total;
      total += here;
    }
    for (int64_t i = 0; i < n - QACT_MUTANT("radix_sort_tail"); ++i)
      to[start[(from[i] >> shift) & (kDigits - 1)]++] = from[i];
    std::swap(from, to);
  }
  if (from != keys) std::memcpy(keys, from, n * sizeof(Key));
}

}  // namespace

template <class Real>
void sort_values(Real* values, int64_t n, std::vector<uint8_t>& scratch) {
  for (int64_t i = 0; i < n; ++i) values[i] += Real{0};
  if (n < kRadixFrom) {
    std::sort(values, values + n - (n > 0 && QACT_MUTANT("sort_tail")));
    return;
  }
  using Key = typename KeyOf<Real>::Type;
  scratch.resize(2 * n * sizeof(Key) + alignof(Key));
  void* raw = scratch.data();
  size_t space = scratch.size();
  Key* keys = static_cast<Key*>(std::align(alignof(Key), 2 * n * sizeof(Key), raw, space));
  for (int64_t i = 0; i < n; ++i) keys[i] = to_key(values[i]);
  radix_sort(keys, keys + n, n);
  for (int64_t i = 0; i < n; ++i) values[i] = from_key<Real>(keys[i]);
}

template void sort_values<float>(float*, int64_t, std::vector<uint8_t>&);
template void sort_values<double>(double*, int64_t, std::vector<uint8_t>&);

}  // namespace qact::core
