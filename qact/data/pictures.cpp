#include "qact/data/pictures.h"

#include <algorithm>

#include "qact/data/file.h"
#include "qact/image/codec.h"
#include "qact/image/fail.h"
#include "qact/image/parallel.h"
#include "qact/image/resize.h"

namespace qact::data {
namespace {

using image::fail;

std::vector<fs::path> sorted_entries(const fs::path& folder) {
  expect_folder(folder);
  std::vector<fs::path> out;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    out.push_back(it->path());
  }
  if (error) fail("folder", "cannot list ", folder.string(), ": ", error.message());
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace

image::Image read_picture(const fs::path& path, const Fit& fit) {
  const Blob file = map_file(path);
  return naming(path, [&] {
    image::Image picture = image::decode_picture(file.bytes, fit.channels);
    if (fit.resize > 0) picture = image::resize_shorter(picture, fit.resize);
    if (fit.crop > 0) picture = image::crop_middle(picture, fit.crop, fit.crop);
    return picture;
  });
}

bool is_picture(const fs::path& path) {
  std::string ending = path.extension().string();
  std::transform(ending.begin(), ending.end(), ending.begin(), ::tolower);
  return ending == ".png" || ending == ".jpg" || ending == ".jpeg";
}

Split read_pictures(const std::vector<Picture>& pictures, int classes, const Fit& fit) {
  if (pictures.empty()) fail("pictures", "expected PNG or JPEG files, got none");
  const image::Size size = read_picture(pictures[0].path, fit).size;
  std::vector<uint8_t> pixels(pictures.size() * size.values());
  std::vector<int64_t> labels(pictures.size());
  image::parallel_for(static_cast<int64_t>(pictures.size()), 0, 64, [&](int64_t i) {
    const image::Image picture = read_picture(pictures[i].path, fit);
    if (picture.size != size) {
      fail("pictures", "expected all of one size (", size.width, "x", size.height,
           " as the first, unless resized and cropped), got ", picture.size.width, "x",
           picture.size.height, ": ", pictures[i].path.string());
    }
    std::copy(picture.pixels.begin(), picture.pixels.end(), &pixels[i * size.values()]);
    labels[i] = pictures[i].label;
  });
  return make_split(size, classes, std::move(pixels), std::move(labels));
}

ClassFolders list_class_folders(const fs::path& folder, const std::string& inner) {
  ClassFolders out;
  for (const fs::path& entry : sorted_entries(folder)) {
    if (!fs::is_directory(entry)) continue;
    const auto label = static_cast<int64_t>(out.classes.size());
    out.classes.push_back(entry.filename().string());
    for (const fs::path& file : sorted_entries(inner.empty() ? entry : entry / inner)) {
      if (is_picture(file)) out.pictures.push_back({file, label});
    }
  }
  if (out.pictures.empty()) {
    fail("folder", "expected a folder per class with PNG or JPEG files, got none in ",
         folder.string());
  }
  return out;
}

Split read_class_folders(const fs::path& folder, const Fit& fit) {
  const ClassFolders found = list_class_folders(folder);
  Split out = read_pictures(found.pictures, static_cast<int>(found.classes.size()), fit);
  out.class_names = found.classes;
  return out;
}

}  // namespace qact::data
