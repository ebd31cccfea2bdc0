#include "qact/data/image_files.h"

#include <algorithm>

#include "qact/base/fail.h"
#include "qact/base/parallel.h"
#include "qact/data/file.h"
#include "qact/image/codec.h"
#include "qact/image/resize.h"

namespace qact::data {
namespace {

using base::fail;

std::vector<fs::path> sorted_entries(const fs::path& folder) {
  expect_folder(folder);
  std::vector<fs::path> out;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (!it->path().filename().string().starts_with(".")) out.push_back(it->path());
  }
  if (error) fail("folder", "cannot list ", folder.string(), ": ", error.message());
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace

image::Image read_image(const fs::path& path, const Preprocessing& preprocessing) {
  const Blob file = map_file(path);
  return with_file_name(path, [&] {
    image::Image image = image::decode_image(file.bytes, preprocessing.channels);
    if (preprocessing.resize > 0) image = image::resize_shorter(image, preprocessing.resize);
    if (preprocessing.crop > 0)
      image = image::centre_crop(image, preprocessing.crop, preprocessing.crop);
    return image;
  });
}

bool is_image_file(const fs::path& path) {
  std::string ending = path.extension().string();
  std::transform(ending.begin(), ending.end(), ending.begin(), ::tolower);
  return ending == ".png" || ending == ".jpg" || ending == ".jpeg";
}

Split read_image_files(const std::vector<ImageFile>& images, int classes,
                       const Preprocessing& preprocessing) {
  if (images.empty()) fail("images", "expected PNG or JPEG files, got none");
  const image::Size size = read_image(images[0].path, preprocessing).size;
  std::vector<uint8_t> pixels(images.size() * size.values());
  std::vector<int64_t> labels(images.size());
  base::parallel_for(static_cast<int64_t>(images.size()), 0, 64, [&](int64_t i) {
    const image::Image image = read_image(images[i].path, preprocessing);
    if (image.size != size) {
      fail("images", "expected all of one size (", size.width, "x", size.height,
           " as the first, unless resized and cropped), got ", image.size.width, "x",
           image.size.height, ": ", images[i].path.string());
    }
    std::copy(image.pixels.begin(), image.pixels.end(), &pixels[i * size.values()]);
    labels[i] = images[i].label;
  });
  return make_split(size, classes, std::move(pixels), std::move(labels));
}

std::vector<std::string> class_folders(const fs::path& folder) {
  std::vector<std::string> out;
  for (const fs::path& entry : sorted_entries(folder)) {
    if (fs::is_directory(entry)) out.push_back(entry.filename().string());
  }
  return out;
}

ClassFolders list_class_folders(const fs::path& folder, const std::string& inner) {
  ClassFolders out{class_folders(folder), {}};
  for (size_t label = 0; label < out.classes.size(); ++label) {
    const fs::path place = folder / out.classes[label];
    for (const fs::path& file : sorted_entries(inner.empty() ? place : place / inner)) {
      if (is_image_file(file)) out.images.push_back({file, static_cast<int64_t>(label)});
    }
  }
  if (out.images.empty()) {
    fail("folder", "expected a folder per class with PNG or JPEG files, got none in ",
         folder.string());
  }
  return out;
}

Split read_class_folders(const fs::path& folder, const Preprocessing& preprocessing) {
  const ClassFolders found = list_class_folders(folder);
  Split out = read_image_files(found.images, static_cast<int>(found.classes.size()), preprocessing);
  out.class_names = found.classes;
  return out;
}

}  // namespace qact::data
