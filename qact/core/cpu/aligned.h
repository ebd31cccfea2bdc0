// A vector that starts on a cache line, so that no SIMD load of its parts straddles two. What
// resize() adds is not set to anything: most of it is written before it is read.
#pragma once

#include <cstddef>
#include <new>
#include <vector>

namespace qact::core::cpu {

template <class T>
struct CacheLineAllocator {
  using value_type = T;
  static constexpr std::align_val_t kLine{64};

  CacheLineAllocator() = default;
  template <class Other>
  CacheLineAllocator(const CacheLineAllocator<Other>&) {}

  template <class Made>
  void construct(Made* at) {
    ::new (static_cast<void*>(at)) Made;
  }
  template <class Made, class Value>
  void construct(Made* at, const Value& value) {
    ::new (static_cast<void*>(at)) Made(value);
  }

  T* allocate(size_t n) { return static_cast<T*>(::operator new(n * sizeof(T), kLine)); }
  void deallocate(T* p, size_t) { ::operator delete(p, kLine); }
  bool operator==(const CacheLineAllocator&) const = default;
};

template <class T>
using AlignedVector = std::vector<T, CacheLineAllocator<T>>;

}  // namespace qact::core::cpu
