// The loader alone, on one core: batches of 128 CIFAR-sized images, shuffled and normalised,
// plain and with each augmentation.
#include "qact/data/loader.h"

#include <cmath>
#include <cstdio>
#include <stdexcept>

#include "bench/bench.h"
#include "qact/base/random.h"

namespace qact::bench {
namespace {

constexpr int64_t kBatch = 128, kImages = 64 * kBatch;
const data::Moments kNormalisation = {{0.4914, 0.4822, 0.4465}, {0.2023, 0.1994, 0.2010}};

data::Split noise_images() {
  const image::Size size{32, 32, 3};
  std::vector<uint8_t> pixels(kImages * size.values());
  base::Random random(0, 0);
  for (uint8_t& pixel : pixels) pixel = static_cast<uint8_t>(random.bits());
  return data::make_split(size, 10, std::move(pixels), std::vector<int64_t>(kImages));
}

// Images in order, written out by the definition.
void validate(const data::Split& split, const data::BatchSlot& batch) {
  constexpr int plane = 32 * 32;
  for (int64_t i = 0; i < batch.count; ++i) {
    for (int v = 0; v < 3 * plane; ++v) {
      const int c = v / plane;
      const double expected =
          (split.image(i)[3 * (v % plane) + c] / 255.0 - kNormalisation.mean[c]) /
          kNormalisation.std[c];
      if (std::abs(batch.images[i * 3 * plane + v] - expected) > 1e-5) {
        throw std::runtime_error("[loader] expected the normalised image, got another");
      }
    }
  }
}

}  // namespace

void loader(const Settings& settings, Report& report) {
  const data::Split split = noise_images();
  std::vector<float> images(kBatch * split.size.values());
  std::vector<int64_t> labels(kBatch);
  const std::vector<data::BatchSlot> slots = {{images.data(), labels.data()}};

  data::LoaderOptions options;
  options.batch_size = kBatch;
  options.normalisation = kNormalisation;
  data::Loader plain(split, options, slots);
  plain.start(0);
  validate(split, *plain.next());

  options.shuffle = true;
  const std::pair<const char*, data::Augmentation> cases[] = {
      {"normalise", {}},
      {"crop + flip", {.pad = 4, .flip = true}},
      {"crop + flip + AugMix", {.pad = 4, .flip = true, .mix = true}},
  };
  for (const auto& [name, augmentation] : cases) {
    options.augmentation = augmentation;
    data::Loader timed(split, options, slots);
    timed.start(0);
    const auto one_batch = [&]() -> std::vector<double> {
      return {milliseconds_of([&] {
        if (!timed.next()) {
          timed.start(0);
          timed.next();
        }
      })};
    };
    const double ms = interleave({one_batch}, settings.repeats)[0][0];
    char note[64];
    std::snprintf(note, sizeof note, "%.0f images per second and core", 1000 * kBatch / ms);
    report.add({"loader", {kBatch, 3, 32, 32}, "float32", "contiguous", name, ms, "", 0, note});
  }
}

}  // namespace qact::bench
