// Datasets: the table of those known by name, and reading one from disk. Read this first.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "qact/data/image_files.h"
#include "qact/data/source.h"
#include "qact/data/split.h"
#include "qact/image/image.h"

namespace qact::data {

namespace fs = std::filesystem;

// What is known about a dataset before it is read.
struct DatasetInfo {
  std::string name, title;
  image::Size size;
  int classes = 0;
  int64_t train = 0, test = 0;  // images; of a corrupted set, per corruption and severity
  Moments normalisation;        // for training
  Moments moments;              // of the training images (of the test images where there are no
                                // others); empty where they are not published
  // Images per class in train and test; empty: all classes have the same.
  std::vector<int64_t> train_balance, test_balance;
  std::vector<std::string> class_names;  // empty: none, or named by the folders

  // Corrupted datasets only.
  std::string clean;  // the dataset that was corrupted
  std::vector<std::string> corruptions;
  int severities = 0;

  // Reads one split from the dataset's folder.
  std::function<Split(const fs::path& folder, const SplitId& id)> read;
  bool embedded = false;        // compiled into the library; has no folder
  std::vector<Source> sources;  // tried in turn
};

// All datasets known by name: a new one is a factory (factories.h) and an entry in this table.
const std::vector<DatasetInfo>& datasets();
const DatasetInfo& find_dataset(const std::string& name);

// --data-dir, else QACT_DATA, else ~/.cache/qact.
fs::path data_folder(const std::string& option = "");

// A dataset that can be read.
struct Dataset {
  DatasetInfo info;
  fs::path folder;

  Split read(const SplitId& id) const;
};

// By name from the table; or a custom dataset, by the path of its folder (custom.h), which contains
// a slash. Only the latter's image files are resized and cropped. Throws where the dataset was
// never fetched, and says how to fetch it.
Dataset open_dataset(const std::string& name_or_path, const fs::path& data_folder,
                     const Preprocessing& preprocessing = {});

// Throws where images of a set that is not resized, of this size, would have to be. `name` is the
// set's.
void expect_size(const std::string& name, image::Size size, const Preprocessing& wanted);

// Whether the dataset's folder is there.
bool is_present(const DatasetInfo& info, const fs::path& data_folder);

}  // namespace qact::data
