// Many image files as one split.
#pragma once

#include <filesystem>
#include <vector>

#include "qact/data/split.h"

namespace qact::data {

// How images of any size become images of one size: the shorter side is resized, then the
// middle cropped. 0 leaves a step out.
struct Fit {
  int resize = 0;
  int crop = 0;
  int channels = 3;
};

// PNG or JPEG, by the name's ending.
bool is_image_file(const std::filesystem::path& path);
image::Image read_image(const std::filesystem::path& path, const Fit& fit);

struct ImageFile {
  std::filesystem::path path;
  int64_t label = 0;
};

// Decodes PNG and JPEG on all cores.
Split read_image_files(const std::vector<ImageFile>& images, int classes, const Fit& fit);

// A folder per class, classes and files in the order of their names.
struct ClassFolders {
  std::vector<std::string> classes;
  std::vector<ImageFile> images;
};
// `inner` is the folder in each class's folder that holds the images, if any.
ClassFolders list_class_folders(const std::filesystem::path& folder, const std::string& inner = "");

Split read_class_folders(const std::filesystem::path& folder, const Fit& fit);

}  // namespace qact::data
