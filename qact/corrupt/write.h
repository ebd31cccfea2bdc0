// Writes corrupted datasets in the layouts of the published ones.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "qact/base/progress.h"
#include "qact/corrupt/corrupt.h"

namespace qact::corrupt {

enum class Layout {
  cifar_c,  // CORRUPTION.npy, with all severities one after the other, and labels.npy
  folders,  // CORRUPTION/SEVERITY/CLASS/NUMBER.JPEG at quality 85, as Tiny-ImageNet-C
  mnist_c,  // CORRUPTION/SPLIT_images.npy and SPLIT_labels.npy at MNIST-C's severity
};

// The images to corrupt: NHWC, of one size.
struct CleanImages {
  std::string name;  // of the dataset, for the manifest
  std::span<const uint8_t> pixels;
  image::Size size;
  std::vector<int64_t> labels;           // empty: no labels are written
  std::vector<std::string> class_names;  // names of folders; empty: numbers
  std::string split = "test";            // of the dataset
  std::string hash = "";                 // data::digest_of() them, for the manifest
  int64_t count() const { return static_cast<int64_t>(pixels.size()) / size.values(); }
};

struct WriteOptions {
  std::filesystem::path folder;
  Layout layout = Layout::cifar_c;
  std::vector<std::string> corruptions;
  // In any order. cifar_c: the published files have all five. Fewer are written to
  // SEVERITY/CORRUPTION.npy, so that no reader takes one severity for another.
  std::vector<int> severities = {1, 2, 3, 4, 5};
  uint64_t seed = 0;
  int threads = 0;
  // Of the files, those with the numbers shard, shard + shards, ...: processes with different
  // shards write one set together.
  int shard = 0, shards = 1;
  std::shared_ptr<const FrostTextures> frost;  // null: procedural ones
};

struct Written {
  int made = 0, kept = 0;  // files, or folders of images
};

// Files that exist already, whole, and were made with the same options are kept (manifest.h). Where
// `progress` stops it, no partial file stays. Several processes may write one set, but throws where
// another is writing the same file.
Written write_corrupted(const CleanImages& images, const WriteOptions& options,
                        const base::Progress& progress);

}  // namespace qact::corrupt
