// A small dataset, and the configuration of a quick training run on it.
#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "qact/train/train.h"
#include "tests/base/scratch_folder.h"

namespace qact::train {

inline std::string contents(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Grey 16x16 images of 3 classes, each with a brighter band of its own, as idx files.
inline void write_bands(const std::filesystem::path& folder, const std::string& part,
                        uint32_t count) {
  std::string images("\0\0\x08\x03", 4), labels("\0\0\x08\x01", 4);
  const auto add_size = [](std::string* text, uint32_t size) {
    for (int shift = 24; shift >= 0; shift -= 8) text->push_back(static_cast<char>(size >> shift));
  };
  for (const uint32_t size : {count, 16u, 16u}) add_size(&images, size);
  add_size(&labels, count);
  uint32_t noise = 1;
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t label = i % 3;
    labels.push_back(static_cast<char>(label));
    for (uint32_t p = 0; p < 256; ++p) {
      noise = noise * 1664525 + 1013904223;
      images.push_back(static_cast<char>((noise >> 25) + (p / 80 == label ? 100 : 0)));
    }
  }
  std::filesystem::create_directories(folder);
  std::ofstream(folder / (part + "-images-idx3-ubyte"), std::ios::binary) << images;
  std::ofstream(folder / (part + "-labels-idx1-ubyte"), std::ios::binary) << labels;
}

struct TrainingFixture : ScratchFolder {
  TrainingFixture() {
    write_bands(path / "data", "train", 90);
    write_bands(path / "data", "t10k", 3);
  }

  // 3 epochs of 4 steps, 18 images for validation.
  TrainConfig config() const {
    TrainConfig config;
    config.data = (path / "data").string();
    config.model = "mlp";
    config.epochs = 3;
    config.batch_size = 18;
    config.lr = 0.01;
    config.threads = 1;
    config.workers = 0;
    config.fit_classifiers = "off";
    return config;
  }
  RunFolder run(const std::string& name) const { return {path / name}; }
};

// Stops a run after `*calls` steps and batches of the validation.
inline TrainEvents stop_after(int* calls) {
  TrainEvents events;
  events.step = [calls](const TrainStatus&) { return --*calls > 0; };
  return events;
}

}  // namespace qact::train
