#include "qact/run/evaluate_images.h"

#include <algorithm>
#include <filesystem>

#include "qact/corrupt/corrupt.h"
#include "qact/data/npy_pair.h"
#include "qact/image/fail.h"

namespace qact::run {
namespace {

namespace fs = std::filesystem;
using image::fail;

data::Split first(const data::Split& split, int64_t limit) {
  return limit > 0 && limit < split.count() ? split.slice(0, limit) : split;
}

// DISTORTION.npy with the five severities one after the other, as `qact corrupt` writes any set.
fs::path array_of(const std::string& folder, const std::string& distortion) {
  return fs::path(folder) / (distortion + ".npy");
}

}  // namespace

TestImages::TestImages(const TestImagesOptions& options)
    : options_(options),
      opened_(data::open_dataset(options.data, data::data_folder(options.data_dir),
                                 {.resize = options.image_size, .crop = options.image_size})),
      clean_(first(opened_.read({.part = data::Part::kTest}), options.limit)),
      frost_(std::make_shared<const corrupt::FrostTextures>(
          options.frost.empty() ? corrupt::FrostTextures::procedural()
                                : corrupt::FrostTextures::from_folder(options.frost))) {}

void TestImages::check(const std::string& distortion, int severity) const {
  if (severity == 0) return;
  if (options_.official.empty()) {
    corrupt::Corruption(distortion, severity, clean_.size, options_.seed, frost_);
    return;
  }
  if (fs::exists(array_of(options_.official, distortion))) return;
  const data::Dataset& set = data::find_dataset(opened_.dataset.name + "-c");
  const auto& known = set.distortions;
  if (std::find(known.begin(), known.end(), distortion) == known.end() ||
      severity > set.severities) {
    fail("eval", "expected one of the distortions of ", set.name, " at severities 1 to ",
         set.severities, ", got ", distortion, " at ", severity);
  }
}

data::Split TestImages::read(const std::string& distortion, int severity) const {
  if (severity == 0) return clean_;
  if (!options_.official.empty()) {
    const data::Split split = first(read_official(distortion, severity), options_.limit);
    if (split.size == clean_.size) return split;
    fail("eval", "expected images of the clean set's size in ", options_.official, ", got ",
         split.size.height, "x", split.size.width);
  }
  const corrupt::Corruption corruption(distortion, severity, clean_.size, options_.seed, frost_);
  std::vector<uint8_t> pixels(count() * clean_.size.values());
  corruption.apply(clean_.pixels.data(), 0, count(), pixels.data(), /*threads=*/1);
  return data::make_split(clean_.size, clean_.classes, std::move(pixels), clean_.labels);
}

data::Split TestImages::read_official(const std::string& distortion, int severity) const {
  const fs::path array = array_of(options_.official, distortion);
  if (!fs::exists(array)) {
    const data::Opened set{data::find_dataset(opened_.dataset.name + "-c"), options_.official};
    return set.read({data::Part::kTest, distortion, severity});
  }
  const data::Split all =
      data::read_npy_pair(array, fs::path(options_.official) / "labels.npy", clean_.classes);
  if (all.count() % corrupt::kSeverities != 0) {
    fail("eval", "expected five severities of one size, got ", all.count(), " images in ",
         array.string());
  }
  const int64_t each = all.count() / corrupt::kSeverities;
  return all.slice((severity - 1) * each, each);
}

}  // namespace qact::run
