// Counts that are added up over ranks: two to a word of 32 bits where no sum exceeds 16, since
// that halves what is sent and there is no addition of 16 bits to be had everywhere.
#pragma once

#include <cstdint>
#include <vector>

#include "qact/core/mutant.h"
#include "qact/core/world.h"

namespace qact::core::cpu {

class WorldCounts {
 public:
  // No sum exceeds `most`.
  void clear(int64_t count, int64_t most) {
    counts_.assign(count, 0);
    packed_ = most < (1 << 16);
    words_.assign(packed_ ? (count + 1) / 2 : 0, 0);
  }

  int64_t size() const { return static_cast<int64_t>(counts_.size()); }
  bool packed() const { return packed_; }

  // This rank's own, to be filled in before pack(); all ranks', after unpack().
  int32_t* data() { return counts_.data(); }
  const int32_t* data() const { return counts_.data(); }

  void pack() {
    for (size_t i = 0; i < counts_.size() && packed_; ++i) {
      words_[i / 2] += static_cast<uint32_t>(counts_[i]) << (i % 2 * 16);
    }
  }
  Reduction reduction() {
    std::vector<uint32_t>& words = words_;
    if (packed_) {
      return {Reduction::Kind::sum_i32, words.data(), static_cast<int64_t>(words.size())};
    }
    return {Reduction::Kind::sum_i32, counts_.data(), static_cast<int64_t>(counts_.size())};
  }
  void unpack() {
    const uint32_t mask = QACT_MUTANT("counts_of_15_bits") ? 0x7fff : 0xffff;
    for (size_t i = 0; i < counts_.size() && packed_; ++i) {
      counts_[i] = static_cast<int32_t>(words_[i / 2] >> (i % 2 * 16) & mask);
    }
    words_ = {};
  }

 private:
  bool packed_ = false;
  std::vector<int32_t> counts_;
  std::vector<uint32_t> words_;
};

}  // namespace qact::core::cpu
