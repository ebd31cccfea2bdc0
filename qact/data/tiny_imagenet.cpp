// Tiny-ImageNet in its official layout: train/WNID/images/*.JPEG, and val/images/*.JPEG with
// the classes in val/val_annotations.txt. The published test split has no labels; val takes its
// place.
#include <map>
#include <sstream>

#include "qact/base/fail.h"
#include "qact/data/factories.h"
#include "qact/data/file.h"

namespace qact::data {
namespace {

using base::fail;

constexpr int kClasses = 200;

fs::path root(const fs::path& folder) {
  return fs::exists(folder / "tiny-imagenet-200") ? folder / "tiny-imagenet-200" : folder;
}

ClassFolders training_images(const fs::path& folder) {
  return list_class_folders(folder / "train", "images");
}

// Lines of: file, class, box; separated by tabs.
ClassFolders validation_images(const fs::path& folder) {
  ClassFolders out{class_folders(folder / "train"), {}};
  std::map<std::string, int64_t> label_of;
  for (const std::string& name : out.classes) {
    label_of.emplace(name, static_cast<int64_t>(label_of.size()));
  }

  const fs::path list = folder / "val" / "val_annotations.txt";
  const Blob file = map_file(list);
  std::istringstream lines{std::string(base::as_text(file.bytes))};
  for (std::string line; std::getline(lines, line);) {
    const size_t first = line.find('\t'), second = line.find('\t', first + 1);
    const std::string name = line.substr(0, first);
    const auto label = first == line.npos
                           ? label_of.end()
                           : label_of.find(line.substr(first + 1, second - first - 1));
    if (label == label_of.end() || name.find('/') != name.npos) {
      fail("tiny-imagenet", "expected a file's name and one of ", label_of.size(),
           " classes, got another line ", out.images.size() + 1, " in ", list.string());
    }
    out.images.push_back({folder / "val" / "images" / name, label->second});
  }
  return out;
}

}  // namespace

DatasetInfo tiny_imagenet() {
  const std::string md5 = "md5:90528d7ca1a48142e341f4ef8d21d0de";
  DatasetInfo out;
  out.name = "tiny-imagenet";
  out.title = "Tiny-ImageNet: colour images of 200 classes";
  out.size = {64, 64, 3};
  out.classes = kClasses;
  out.train = 100000;
  out.test = 10000;
  // The standard deviations in common use are a little above the true ones in `moments`.
  out.normalisation = {{0.4802, 0.4481, 0.3975}, {0.2770, 0.2691, 0.2821}};
  out.moments = {{0.480237, 0.448067, 0.397504}, {0.276436, 0.268863, 0.281590}};
  out.read = [](const fs::path& folder, const SplitId& id) {
    expect_folder(root(folder) / "train");
    const ClassFolders found = id.split == SplitName::train ? training_images(root(folder))
                                                            : validation_images(root(folder));
    if (found.classes.size() != kClasses) {
      fail("tiny-imagenet", "expected ", kClasses, " classes, got ", found.classes.size(), " in ",
           (root(folder) / "train").string());
    }
    Split out = read_image_files(found.images, kClasses, {});
    out.class_names = found.classes;
    return out;
  };
  out.sources = {
      {.downloads = {{"http://cs231n.stanford.edu/tiny-imagenet-200.zip", md5}},
       .inside = "tiny-imagenet-200/"},
      {.downloads = {{"https://zenodo.org/records/10720917/files/tiny-imagenet-200.zip", md5}},
       .inside = "tiny-imagenet-200/"}};
  return out;
}

}  // namespace qact::data
