// What a caller of core/cuda allocates: memory that holds NaN until a kernel writes it.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "qact/core/cuda/cuda.h"
#include "tests/core/cuda/emulator/device.h"

namespace qact::core::testing {

template <class Value>
class DeviceArray {
 public:
  DeviceArray() = default;
  explicit DeviceArray(size_t count) { resize(count); }
  void resize(size_t count) {
    count_ = count;
    words_.assign((count * sizeof(Value) + 7) / 8, kPoison);
  }
  size_t size() const { return count_; }
  Value* data() { return reinterpret_cast<Value*>(words_.data()); }
  const Value* data() const { return reinterpret_cast<const Value*>(words_.data()); }
  Value operator[](size_t i) const {
    Value out;
    std::memcpy(&out, reinterpret_cast<const char*>(words_.data()) + i * sizeof(Value),
                sizeof(out));
    return out;
  }
  std::vector<Value> values() const { return {data(), data() + count_}; }
  bool operator==(const DeviceArray& other) const { return words_ == other.words_; }  // bit by bit

 private:
  static constexpr uint64_t kPoison = 0x7ff5a5a57ff5a5a5;  // NaN in every type
  std::vector<uint64_t> words_;
  size_t count_ = 0;
};

// Runs a call to its end, with as much scratch memory as it asked for, aligned to 16 and no better.
template <class Call>
void run_with_scratch(size_t bytes, const Call& call) {
  DeviceArray<unsigned char> scratch;
  scratch.resize(bytes + 48);
  const auto first = reinterpret_cast<uintptr_t>(scratch.data());
  unsigned char* at = scratch.data() + ((first + 31) / 32 * 32 + 16 - first);
  call(cuda::Stream{nullptr, at});
  emulator::device().synchronize();
}

}  // namespace qact::core::testing
