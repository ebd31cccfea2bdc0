// Folders of PNG and JPEG files as one split.
#pragma once

#include <filesystem>
#include <vector>

#include "qact/data/split.h"

namespace qact::data {

// How images of any size become images of one size: the shorter side is resized, then the centre is
// cropped. 0 leaves a step out.
struct Preprocessing {
  int resize = 0;
  int crop = 0;
  int channels = 3;
};

// PNG or JPEG, by the file name's extension.
bool is_image_file(const std::filesystem::path& path);
image::Image read_image(const std::filesystem::path& path, const Preprocessing& preprocessing);

struct ImageFile {
  std::filesystem::path path;
  int64_t label = 0;
};

// Decodes PNG and JPEG on all cores.
Split read_image_files(const std::vector<ImageFile>& images, int classes,
                       const Preprocessing& preprocessing);

// The names of the folders in `folder`, sorted; each is a class. Here and below, names that begin
// with "." are none of the dataset's.
std::vector<std::string> class_folders(const std::filesystem::path& folder);

// A folder per class; classes and files sorted by name.
struct ClassFolders {
  std::vector<std::string> classes;
  std::vector<ImageFile> images;
};
// `inner`: a folder within each class's folder that holds its images.
ClassFolders list_class_folders(const std::filesystem::path& folder, const std::string& inner = "");

Split read_class_folders(const std::filesystem::path& folder, const Preprocessing& preprocessing);

}  // namespace qact::data
