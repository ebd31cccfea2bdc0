// A small random number generator. The same seed, stream and indices give the same numbers.
#pragma once

#include <cstdint>
#include <string_view>

namespace qact::base {

// One stream for each use of random numbers in the library, so that no two uses draw the same
// numbers, whatever the seeds and indices. A new use is a new line before `count`. Comments name
// the indices.
enum class Stream : uint64_t {
  toy_weights,
  toy_training,
  toy_test,
  toy_illustration,
  holdout,          // training images held out for validation
  order,            // shuffling: epoch
  augmentation,     // crop and flip: epoch, image
  augmix,           // epoch, image, view
  loss,             // triplets, watershed seeds: batch, counted through the run
  validation_loss,  // the same: batch of the validation
  classifiers,      // on the embeddings: seeds torch's generator
  copies,           // augmented copies at inference: image
  density,          // samples of a context: channel
  mixed_order,      // of test images under all corruptions
  label_order,      // of test images whose labels are correlated
  dither,           // in training: epoch, image, view; at inference: none; of copies: image, copy
  count
};

// A stream for each corruption and severity. Index: image.
constexpr Stream corruption_stream(std::string_view name, int severity) {
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (const char c : name) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  return static_cast<Stream>(hash + static_cast<uint64_t>(severity));
}

class Random {
 public:
  // `indices` say which of many uses of the stream this is: an epoch, an image.
  template <class... Index>
  Random(uint64_t seed, Stream stream, Index... indices)
      : Random(seed, static_cast<uint64_t>(stream)) {
    ((*this = Random(bits(), static_cast<uint64_t>(indices))), ...);
  }
  // For tests and benchmarks.
  Random(uint64_t seed, uint64_t stream) : state_(mix(mix(seed) ^ (stream + 1) * kStep)) {}

  uint64_t bits() { return mix(state_ += kStep); }

  // In [0, 1), 53 bits.
  double uniform() { return static_cast<double>(bits() >> 11) * 0x1.0p-53; }

 private:
  // splitmix64: the golden ratio's fraction, and the finaliser below.
  static constexpr uint64_t kStep = 0x9e3779b97f4a7c15;
  static uint64_t mix(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }

  uint64_t state_;
};

}  // namespace qact::base
