#include "qact/eval/normalised_images.h"

#include <torch/torch.h>

namespace qact::eval {

torch::Tensor NormalisedImages::empty(int64_t count) const {
  return torch::empty({count, split_.size.channels, split_.size.height, split_.size.width});
}

void NormalisedImages::write(int64_t index, float* image) const {
  data::write_normalised(split_.image(index), split_.size, {}, table_, image);
  if (dither_) data::add_dither(split_.size, table_, data::inference_dither(), image);
}

torch::Tensor NormalisedImages::batch(int64_t first, int64_t last) const {
  torch::Tensor out = empty(last - first);
  auto* values = out.data_ptr<float>();
  for (int64_t i = first; i < last; ++i, values += split_.size.values()) {
    write(i, values);
  }
  return out.to(device_);
}

torch::Tensor NormalisedImages::with_copies(int64_t index, int64_t count,
                                            const data::Augmentation& augmentation) const {
  torch::Tensor out = empty(1 + count);
  auto* values = out.data_ptr<float>();
  write(index, values);
  base::Random random(seed_, base::Stream::copies, index);
  for (int64_t k = 0; k < count; ++k) {
    values += split_.size.values();
    const data::CropFlip at = data::draw_crop_flip(augmentation, &random);
    if (augmentation.mix) {
      const image::Image placed = data::crop_flip(split_.image(index), split_.size, at);
      data::write_mixed(data::augmix(placed, augmentation.augmix, &random), table_, values);
    } else {
      data::write_normalised(split_.image(index), split_.size, at, table_, values);
    }
    if (dither_) {
      data::add_dither(split_.size, table_, base::Random(seed_, base::Stream::dither, index, k),
                       values);
    }
  }
  return out.to(device_);
}

}  // namespace qact::eval
