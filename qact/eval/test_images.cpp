#include "qact/eval/test_images.h"

#include <algorithm>
#include <filesystem>

#include "qact/base/fail.h"
#include "qact/corrupt/corrupt.h"
#include "qact/data/digest.h"
#include "qact/data/npy_pair.h"
#include "qact/eval/frost.h"

namespace qact::eval {
namespace {

namespace fs = std::filesystem;
using base::fail;

data::Split limited(const data::Split& split, int64_t limit) {
  return limit > 0 && limit < split.count() ? split.slice(0, limit) : split;
}

// Names and sizes; the contents of arrays, whose sizes say little.
void add_folder(const fs::path& folder, data::Digest& digest) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  for (const fs::path& file : files) {
    const std::string line =
        file.lexically_relative(folder).string() + " " + std::to_string(fs::file_size(file)) + "\n";
    digest.add(line.data(), line.size());
    if (file.extension() == ".npy") digest.add_file(file);
  }
}

// CORRUPTION.npy has the five severities one after the other, as `qact corrupt` writes them.
fs::path array_of(const std::string& folder, const std::string& corruption) {
  return fs::path(folder) / (corruption + ".npy");
}

}  // namespace

TestImages::TestImages(const TestImagesOptions& options)
    : options_(options),
      opened_(data::open_dataset(options.data, data::data_folder(options.data_dir),
                                 {.resize = options.image_size, .crop = options.image_size})),
      clean_(opened_.read({.split = data::SplitName::test})),
      frost_(open_frost(options.frost, data::data_folder(options.data_dir))),
      clean_hash_(data::digest_of(clean_)) {
  clean_ = with_labels_of(options.classes, clean_, options.data);
  remark_ = missing_classes(options.classes, clean_, options.data);
  clean_ = limited(clean_, options.limit);
}

void TestImages::check(const std::string& corruption, int severity) const {
  if (severity == 0) return;
  if (options_.official.empty()) {
    corrupt::Corruptor(corruption, severity, clean_.size, options_.seed, frost_);
    return;
  }
  if (fs::exists(array_of(options_.official, corruption))) return;
  const std::string layout = opened_.info.name + "-c";
  const auto& sets = data::datasets();
  const auto set = std::find_if(sets.begin(), sets.end(),
                                [&](const data::DatasetInfo& d) { return d.name == layout; });
  if (set == sets.end() || !fs::is_directory(options_.official)) {
    fail("eval", "expected a folder with ", corruption, ".npy",
         set == sets.end() ? "" : ", or in the layout of ", set == sets.end() ? "" : layout,
         ", got ", options_.official);
  }
  const auto& known = set->corruptions;
  if (std::find(known.begin(), known.end(), corruption) == known.end() ||
      severity > set->severities) {
    fail("eval", "expected one of the corruptions of ", set->name, " at severities 1 to ",
         set->severities, ", got ", corruption, " at ", severity);
  }
}

std::optional<std::string> TestImages::official() const {
  if (options_.official.empty()) return std::nullopt;
  return fs::weakly_canonical(options_.official).string();
}

std::string TestImages::hash(const std::string& corruption, int severity) const {
  if (severity == 0) return clean_hash_;
  std::string files;
  if (!options_.official.empty()) {
    const fs::path folder = options_.official, array = array_of(folder, corruption);
    if (fs::exists(array)) {
      files = files_hash(array) + files_hash(folder / "labels.npy");
    } else {
      files = files_hash(fs::exists(folder / corruption) ? folder / corruption : folder);
    }
  } else if (corruption == "frost" && frost() != "procedural") {
    files = frost();
  }
  if (files.empty()) return clean_hash_;
  data::Digest digest;
  digest.add(clean_hash_.data(), clean_hash_.size());
  digest.add(files.data(), files.size());
  return digest.hex().substr(0, data::kShortDigest);
}

std::string TestImages::files_hash(const fs::path& path) const {
  const std::scoped_lock lock(lock_);
  const auto known = files_hash_.find(path);
  if (known != files_hash_.end()) return known->second;
  if (!fs::exists(path)) return "";
  data::Digest digest;
  fs::is_directory(path) ? add_folder(path, digest) : digest.add_file(path);
  return files_hash_[path] = digest.hex();
}

data::Split TestImages::read(const std::string& corruption, int severity) const {
  if (severity == 0) return clean_;
  if (!options_.official.empty()) {
    const data::Split split = with_labels_of(
        options_.classes, limited(read_official(corruption, severity), options_.limit),
        options_.official);
    if (split.size != clean_.size) {
      fail("eval", "expected images of the clean set's size in ", options_.official, ", got ",
           split.size.height, "x", split.size.width);
    }
    if (split.count() != count()) {
      fail("eval", "expected ", count(), " images, as the clean set has, of ", corruption, " at ",
           severity, " in ", options_.official, ", got ", split.count());
    }
    return split;
  }
  const corrupt::Corruptor corruptor(corruption, severity, clean_.size, options_.seed, frost_);
  std::vector<uint8_t> pixels(count() * clean_.size.values());
  corruptor.apply(clean_.pixels.data(), 0, count(), pixels.data(), /*threads=*/1);
  return data::make_split(clean_.size, clean_.classes, std::move(pixels), clean_.labels);
}

data::Split TestImages::read_official(const std::string& corruption, int severity) const {
  const fs::path array = array_of(options_.official, corruption);
  if (!fs::exists(array)) {
    const data::Dataset set{data::find_dataset(opened_.info.name + "-c"), options_.official};
    return set.read({data::SplitName::test, corruption, severity});
  }
  data::Split all =
      data::read_npy_pair(array, fs::path(options_.official) / "labels.npy", opened_.info.classes);
  all.class_names = opened_.info.class_names;  // of the set that was corrupted
  if (all.count() % corrupt::kSeverities != 0) {
    fail("eval", "expected five severities of one size, got ", all.count(), " images in ",
         array.string());
  }
  const int64_t each = all.count() / corrupt::kSeverities;
  return all.slice((severity - 1) * each, each);
}

}  // namespace qact::eval
