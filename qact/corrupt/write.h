// Corrupted sets on disk, in the layouts in which they are published.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "qact/corrupt/corrupt.h"

namespace qact::corrupt {

enum class Layout {
  cifar_c,  // CORRUPTION.npy, all severities one after the other, and labels.npy
  folders,  // CORRUPTION/SEVERITY/CLASS/NUMBER.JPEG at quality 85, as Tiny-ImageNet-C
  mnist_c,  // CORRUPTION/PART_images.npy and PART_labels.npy at MNIST-C's severity
};

// Images of one size that follow each other, to be corrupted.
struct CleanImages {
  std::string name;  // for the record
  std::span<const uint8_t> pixels;
  image::Size size;
  std::vector<int64_t> labels;           // none: no labels are written
  std::vector<std::string> class_names;  // folders; none: the numbers
  std::string part = "test";             // of the dataset
  std::string hash = "";                 // for the record: data::digest_of them
  int64_t count() const { return static_cast<int64_t>(pixels.size()) / size.values(); }
};

struct WriteOptions {
  std::filesystem::path folder;
  Layout layout = Layout::cifar_c;
  std::vector<std::string> corruptions;
  // cifar_c: the published file has all five. Fewer are written to folders of their
  // own, SEVERITY/CORRUPTION.npy, so that no reader takes one for another.
  std::vector<int> severities = {1, 2, 3, 4, 5};
  uint64_t seed = 0;
  int threads = 0;
  std::shared_ptr<const FrostTextures> frost;  // none: procedural ones
};

struct Written {
  int made = 0, kept = 0;  // files, or folders of images
};

// Told the share done; false stops after the image at hand, and nothing half-made stays.
using Progress = std::function<bool(double share)>;

// What is there already, made with the same options, is kept: corrupted.json records them.
Written write_corrupted(const CleanImages& images, const WriteOptions& options,
                        const Progress& progress);

}  // namespace qact::corrupt
