#include "qact/corrupt/corrupt.h"

#include <algorithm>
#include <stdexcept>

#include "qact/corrupt/effects.h"
#include "qact/image/fail.h"
#include "qact/image/parallel.h"

namespace qact::corrupt {
namespace {

using enum Family;

// In the order in which the benchmark lists them.
constexpr Distortion kDistortions[] = {
    // name, family, benchmark, extra, mnist
    {"gaussian_noise", noise, true, false, false, gaussian_noise},
    {"shot_noise", noise, true, false, true, shot_noise},
    {"impulse_noise", noise, true, false, true, impulse_noise},
    {"defocus_blur", blur, true, false, false, defocus_blur},
    {"glass_blur", blur, true, false, true, glass_blur},
    {"motion_blur", blur, true, false, true, motion_blur},
    {"zoom_blur", blur, true, false, false, zoom_blur},
    {"snow", weather, true, false, false, snow},
    {"frost", weather, true, false, false, frost},
    {"fog", weather, true, false, true, fog},
    {"brightness", digital, true, false, true, brightness},
    {"contrast", digital, true, false, false, contrast},
    {"elastic_transform", digital, true, false, false, elastic_transform},
    {"pixelate", digital, true, false, false, pixelate},
    {"jpeg_compression", digital, true, false, false, jpeg_compression},
    {"speckle_noise", noise, false, true, false, speckle_noise},
    {"gaussian_blur", blur, false, true, false, gaussian_blur},
    {"spatter", weather, false, true, true, spatter},
    {"saturate", digital, false, true, false, saturate},
    {"shear", mnist, false, false, true, shear},
    {"scale", mnist, false, false, true, scale},
    {"rotate", mnist, false, false, true, rotate},
    {"translate", mnist, false, false, true, translate},
    {"stripe", mnist, false, false, true, stripe},
    {"dotted_line", mnist, false, false, true, dotted_line},
    {"zigzag", mnist, false, false, true, zigzag},
    {"canny_edges", mnist, false, false, true, canny_edges},
};

std::string to_string(image::Size size) {
  return std::to_string(size.height) + "x" + std::to_string(size.width) + "x" +
         std::to_string(size.channels);
}

constexpr image::Size kMnistSize{28, 28, 1};
// Smaller pictures leave no room for the shuffle of glass blur or the elastic square.
constexpr int kLeastSide = 16;

Setting make_setting(const Distortion& distortion, int severity, image::Size size) {
  if (severity < 1 || severity > kSeverities) {
    image::fail("corrupt", "expected a severity from 1 to 5 for ", distortion.name, ", got ",
                severity);
  }
  if (size.channels != 1 && size.channels != 3) {
    image::fail("corrupt", "expected images of 1 or 3 channels, got ", to_string(size));
  }
  if (std::min(size.height, size.width) < kLeastSide) {
    image::fail("corrupt", "expected images of at least ", kLeastSide, "x", kLeastSide, ", got ",
                to_string(size));
  }
  if (distortion.family == mnist && size != kMnistSize) {
    image::fail("corrupt", "expected images of ", to_string(kMnistSize), " for ", distortion.name,
                ", got ", to_string(size));
  }
  const int side = std::max(size.height, size.width);
  const bool digits = size.channels == 1 && side <= kMnistSize.height;
  Setting setting;
  setting.size = size;
  setting.severity = severity;
  setting.mnist = digits;
  setting.scale = digits || side > 64 ? Scale::imagenet : side > 32 ? Scale::tiny : Scale::cifar;
  return setting;
}

}  // namespace

std::span<const Distortion> distortions() { return kDistortions; }

const Distortion& find(std::string_view name) {
  std::string names;
  for (const Distortion& distortion : kDistortions) {
    if (distortion.name == name) return distortion;
    names += names.empty() ? "" : ", ";
    names += distortion.name;
  }
  image::fail("corrupt", "expected one of ", names, ", got ", name);
}

Corruption::Corruption(std::string_view distortion, int severity, image::Size size, uint64_t seed,
                       std::shared_ptr<const FrostTextures> frost)
    : distortion_(find(distortion)), severity_(severity), size_(size), seed_(seed) {
  Setting setting = make_setting(distortion_, severity, size);
  if (distortion_.make == corrupt::frost && !frost) {
    frost = std::make_shared<const FrostTextures>(FrostTextures::procedural());
  }
  setting.frost = std::move(frost);
  effect_ = distortion_.make(setting);
}

void Corruption::apply(const uint8_t* in, int64_t index, uint8_t* out) const {
  Draw draw(seed_, distortion_.name, severity_, index);
  effect_(in, draw, out);
}

void Corruption::apply(const uint8_t* in, int64_t first, int64_t count, uint8_t* out,
                       int threads) const {
  const int64_t values = size_.values();
  image::parallel_for(count, threads, 16,
                      [&](int64_t i) { apply(in + i * values, first + i, out + i * values); });
}

}  // namespace qact::corrupt
