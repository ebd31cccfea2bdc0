#include "qact/corrupt/corrupt.h"

#include <algorithm>
#include <stdexcept>

#include "qact/base/fail.h"
#include "qact/base/parallel.h"
#include "qact/corrupt/effects.h"

namespace qact::corrupt {
namespace {

using enum Family;

// In the order in which the benchmark lists them.
constexpr Corruption kCorruptions[] = {
    // name, family, benchmark, extra, severity in MNIST-C
    {"gaussian_noise", noise, true, false, 0, gaussian_noise},
    {"shot_noise", noise, true, false, 5, shot_noise},
    {"impulse_noise", noise, true, false, 4, impulse_noise},
    {"defocus_blur", blur, true, false, 0, defocus_blur},
    {"glass_blur", blur, true, false, 1, glass_blur},
    {"motion_blur", blur, true, false, 1, motion_blur},
    {"zoom_blur", blur, true, false, 0, zoom_blur},
    {"snow", weather, true, false, 0, snow},
    {"frost", weather, true, false, 0, frost},
    {"fog", weather, true, false, 5, fog},
    {"brightness", digital, true, false, 5, brightness},
    {"contrast", digital, true, false, 0, contrast},
    {"elastic_transform", digital, true, false, 0, elastic_transform},
    {"pixelate", digital, true, false, 0, pixelate},
    {"jpeg_compression", digital, true, false, 0, jpeg_compression},
    {"speckle_noise", noise, false, true, 0, speckle_noise},
    {"gaussian_blur", blur, false, true, 0, gaussian_blur},
    {"spatter", weather, false, true, 4, spatter},
    {"saturate", digital, false, true, 0, saturate},
    {"shear", mnist, false, false, 2, shear},
    {"scale", mnist, false, false, 3, scale},
    {"rotate", mnist, false, false, 2, rotate},
    {"translate", mnist, false, false, 3, translate},
    {"stripe", mnist, false, false, 1, stripe},
    {"dotted_line", mnist, false, false, 1, dotted_line},
    {"zigzag", mnist, false, false, 1, zigzag},
    {"canny_edges", mnist, false, false, 1, canny_edges},
    {"tone", tones, false, false, 0, tone, 500},
    {"gamma4", tones, false, false, 0, gamma4},
};

std::string to_string(image::Size size) {
  return std::to_string(size.height) + "x" + std::to_string(size.width) + "x" +
         std::to_string(size.channels);
}

constexpr image::Size kMnistSize{28, 28, 1};
// Smaller images are too small for glass blur's shuffle and the elastic transform's square.
constexpr int kMinSide = 16;

EffectParams make_params(const Corruption& corruption, int severity, image::Size size) {
  if (severity < 1 || severity > kSeverities) {
    base::fail("corrupt", "expected a severity from 1 to 5 for ", corruption.name, ", got ",
               severity);
  }
  if (size.channels != 1 && size.channels != 3) {
    base::fail("corrupt", "expected images of 1 or 3 channels, got ", to_string(size));
  }
  if (std::min(size.height, size.width) < kMinSide) {
    base::fail("corrupt", "expected images of at least ", kMinSide, "x", kMinSide, ", got ",
               to_string(size));
  }
  if (corruption.family == mnist && size != kMnistSize) {
    base::fail("corrupt", "expected images of ", to_string(kMnistSize), " for ", corruption.name,
               ", got ", to_string(size));
  }
  const int side = std::max(size.height, size.width);
  const bool digits = size.channels == 1 && side <= kMnistSize.height;
  EffectParams params;
  params.size = size;
  params.severity = severity;
  params.mnist = digits;
  params.scale = digits || side > 64 ? Scale::imagenet : side > 32 ? Scale::tiny : Scale::cifar;
  return params;
}

}  // namespace

std::span<const Corruption> corruptions() { return kCorruptions; }

const Corruption& find_corruption(std::string_view name) {
  std::string names;
  for (const Corruption& corruption : kCorruptions) {
    if (corruption.name == name) return corruption;
    names += names.empty() ? "" : ", ";
    names += corruption.name;
  }
  base::fail("corrupt", "expected one of ", names, ", got ", name);
}

Corruptor::Corruptor(std::string_view corruption, int severity, image::Size size, uint64_t seed,
                     std::shared_ptr<const FrostTextures> frost)
    : corruption_(find_corruption(corruption)), severity_(severity), size_(size), seed_(seed) {
  EffectParams params = make_params(corruption_, severity, size);
  if (corruption_.make == corrupt::frost && !frost) {
    frost = std::make_shared<const FrostTextures>(FrostTextures::procedural());
  }
  params.frost = std::move(frost);
  effect_ = corruption_.make(params);
}

void Corruptor::apply(const uint8_t* in, int64_t index, uint8_t* out) const {
  Rng rng(seed_, corruption_.name, severity_, index / corruption_.images_per_draw);
  effect_(in, rng, out);
}

void Corruptor::apply(const uint8_t* in, int64_t first, int64_t count, uint8_t* out,
                      int threads) const {
  const int64_t values = size_.values();
  base::parallel_for(count, threads, 16,
                     [&](int64_t i) { apply(in + i * values, first + i, out + i * values); });
}

}  // namespace qact::corrupt
