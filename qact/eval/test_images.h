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
  std::string data;                  // a dataset's name, or a folder of one's own
  std::string data_dir;              // where datasets are
  int image_size = 0;                // images of one's own are resized and cropped to; 0: left
  int64_t limit = 0;                 // the first so many images; 0: all
  std::string official;              // a folder with the corrupted set; empty: corruptions are made
  std::string frost = "procedural";  // the textures, as open_frost()
  uint64_t seed = 0;                 // of the corruptions
  ModelClasses classes;              // of the model to evaluate, whose labels the images get
};

class TestImages {
 public:
  explicit TestImages(const TestImagesOptions& options);

  const data::DatasetInfo& dataset() const { return opened_.info; }
  image::Size size() const { return clean_.size; }
  int64_t count() const { return clean_.count(); }
  // What a user should know about them; empty: nothing.
  const std::string& remark() const { return remark_; }

  // Throws where (corruption, severity) cannot be had: before anything is computed.
  void check(const std::string& corruption, int severity) const;

  // Of what read() would give: the clean images, and the files that corrupted ones come from.
  std::string hash(const std::string& corruption, int severity) const;

  // Severity 0: the clean images. Safe to call from many threads; works on the caller's alone.
  data::Split read(const std::string& corruption, int severity) const;

  std::string source() const { return options_.official.empty() ? "generated" : "official"; }
  // The folder of official images, whatever it was called.
  std::optional<std::string> official() const;
  const std::string& frost() const { return frost_->name(); }

 private:
  data::Split read_official(const std::string& corruption, int severity) const;
  // Of a file, or of a folder's; each is read once.
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
