// The images of a split as a network takes them.
#pragma once

#include <torch/types.h>

#include <vector>

#include "qact/adapt/method.h"
#include "qact/data/split.h"

namespace qact::eval {

class NormalisedImages : public adapt::Images {
 public:
  // Refers to the split. `seed`: of the copies.
  NormalisedImages(const data::Split& split, const data::Moments& moments, bool dither,
                   torch::Device device, uint64_t seed)
      : split_(split),
        table_(data::normalisation_table(moments, split.size.channels)),
        dither_(dither),
        device_(device),
        seed_(seed) {}

  int64_t count() const override { return split_.count(); }
  torch::Tensor batch(int64_t first, int64_t last) const override;
  torch::Tensor copies(int64_t index, int64_t count,
                       const data::Augmentation& augmentation) const override {
    return with_copies(index, count, augmentation).narrow(0, 1, count);
  }
  // The image first, then copies().
  torch::Tensor with_copies(int64_t index, int64_t count,
                            const data::Augmentation& augmentation) const;

 private:
  torch::Tensor empty(int64_t count) const;
  void write(int64_t index, float* image) const;

  const data::Split& split_;
  const std::vector<float> table_;
  const bool dither_;
  const torch::Device device_;
  const uint64_t seed_;
};

}  // namespace qact::eval
