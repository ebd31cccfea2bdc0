#include "qact/eval/normalised_images.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

namespace qact::eval {
namespace {

// 6 grey images of 16 x 16 whose pixels are all different.
data::Split gradients() {
  std::vector<uint8_t> pixels(6 * 256);
  for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<uint8_t>(i + i / 256);
  return data::make_split({16, 16, 1}, 2, std::move(pixels), {0, 1, 0, 1, 0, 1});
}

const data::Moments kMoments = {{0.5}, {0.25}};

TEST(NormalisedImages, AreThoseOfTheSplitInOrder) {
  const data::Split split = gradients();
  const NormalisedImages images(split, kMoments, /*dither=*/false, torch::kCPU, 3);
  EXPECT_EQ(images.count(), 6);
  const torch::Tensor batch = images.batch(2, 5);
  ASSERT_EQ(batch.sizes(), (std::vector<int64_t>{3, 1, 16, 16}));
  for (int64_t i = 0; i < 3; ++i) {
    for (int64_t v = 0; v < 256; v += 17) {
      EXPECT_FLOAT_EQ(batch[i].view(-1)[v].item<float>(),
                      static_cast<float>((split.image(2 + i)[v] / 255.0 - 0.5) / 0.25));
    }
  }
}

// Each method of adaptation may ask in an order of its own.
TEST(NormalisedImages, CopiesDependOnSeedAndImageAlone) {
  const data::Split split = gradients();
  const NormalisedImages images(split, kMoments, /*dither=*/false, torch::kCPU, 3);
  const NormalisedImages other(split, kMoments, /*dither=*/false, torch::kCPU, 4);
  for (const bool mix : {false, true}) {
    const data::Augmentation how = {.pad = 4, .flip = true, .mix = mix};
    const torch::Tensor copies = images.copies(1, 5, how);
    ASSERT_EQ(copies.sizes(), (std::vector<int64_t>{5, 1, 16, 16}));
    EXPECT_FALSE(torch::equal(copies[0], copies[1]));
    images.copies(2, 9, how);
    EXPECT_TRUE(torch::equal(images.copies(1, 5, how), copies));
    EXPECT_TRUE(torch::equal(images.copies(1, 3, how), copies.narrow(0, 0, 3)));
    EXPECT_FALSE(torch::equal(other.copies(1, 5, how), copies));
  }
  EXPECT_TRUE(torch::equal(images.with_copies(1, 2, {})[0], images.batch(1, 2)[0]));
  // Without an augmentation a copy is the image.
  EXPECT_TRUE(torch::equal(images.copies(1, 2, {})[1], images.batch(1, 2)[0]));
}

TEST(NormalisedImages, AreDitheredAlikeWhereverTheyStand) {
  const data::Split split = gradients();
  const NormalisedImages plain(split, kMoments, /*dither=*/false, torch::kCPU, 3);
  const NormalisedImages images(split, kMoments, /*dither=*/true, torch::kCPU, 3);
  const torch::Tensor noise = images.batch(0, 6) - plain.batch(0, 6);
  EXPECT_GT(noise.abs().min().item<float>(), 0);
  EXPECT_LE(noise.abs().max().item<float>() * 0.25 * 255, 0.5001);
  EXPECT_LT((noise - noise[0]).abs().max().item<float>(), 1e-6);
  EXPECT_TRUE(torch::equal(images.batch(4, 5), images.batch(0, 6).narrow(0, 4, 1)));
  EXPECT_TRUE(torch::equal(images.with_copies(1, 2, {})[0], images.batch(1, 2)[0]));
  const torch::Tensor copies = images.copies(1, 2, {});
  EXPECT_FALSE(torch::equal(copies[0], copies[1]));
  EXPECT_TRUE(torch::equal(images.copies(1, 1, {})[0], copies[0]));
}

}  // namespace
}  // namespace qact::eval
