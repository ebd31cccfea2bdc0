// The images that a model is evaluated on: a test set, clean or corrupted.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "qact/corrupt/frost_texture.h"
#include "qact/data/dataset.h"
#include "qact/eval/match_classes.h"

namespace qact::eval {

struct TestImagesOptions {
  std::string data;                  // a dataset's name, or the folder of a custom one
  std::string data_dir;              // where datasets are
  int image_size = 0;                // custom images are resized and cropped to this; 0: not
  int64_t limit = 0;                 // use the first so many images; 0: all
  std::string official;              // folder of the corrupted set; empty: corrupted here
  std::string frost = "procedural";  // textures, as open_frost() takes them
  uint64_t seed = 0;                 // of the corruptions
  ModelClasses classes;              // of the model: the images get its labels
};

class TestImages {
 public:
  explicit TestImages(const TestImagesOptions& options);

  const data::DatasetInfo& dataset() const { return opened_.info; }
  image::Size size() const { return clean_.size; }
  int64_t count() const { return clean_.count(); }
  // A warning for the user; empty: none.
  const std::string& remark() const { return remark_; }

  // Throws where there are no images of this corruption and severity. Computes none.
  void check(const std::string& corruption, int severity) const;

  // Of the source of read()'s images: the clean images, and the files of corrupted ones.
  std::string hash(const std::string& corruption, int severity) const;

  // Severity 0: the clean images. Thread-safe; works on the calling thread alone.
  data::Split read(const std::string& corruption, int severity) const;

  std::string source() const { return options_.official.empty() ? "generated" : "official"; }
  // The canonical path of the folder of official images.
  std::optional<std::string> official() const;
  const std::string& frost() const { return frost_->name(); }

 private:
  data::Split read_official(const std::string& corruption, int severity) const;
  // Of a file or of a folder's files; computed once.
  std::string files_hash(const std::filesystem::path& path) const;

  TestImagesOptions options_;
  data::Dataset opened_;
  data::Split clean_;
  std::shared_ptr<const corrupt::FrostTextures> frost_;
  std::string clean_hash_, remark_;
  mutable std::mutex lock_;
  mutable std::map<std::filesystem::path, std::string> files_hash_;
};

}  // namespace qact::eval
