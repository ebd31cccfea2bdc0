// Datasets: a table of names, and images with labels once one is read. Read this first.
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

struct Dataset {
  std::string name, title;
  image::Size size;
  int classes = 0;
  int64_t train = 0, test = 0;  // images; of a corrupted set, per corruption and severity
  Moments normalisation;        // that networks are trained with
  Moments moments;              // of the training images, or the test images where there are
                                // no others; empty where nobody has published them
  // Images of each class in train and test; empty: the same of each.
  std::vector<int64_t> train_balance, test_balance;
  std::vector<std::string> class_names;  // empty: none, or those that its folders have

  // Corrupted sets only.
  std::string clean;  // the set that was corrupted
  std::vector<std::string> corruptions;
  int severities = 0;

  // Reads from the dataset's folder.
  std::function<Split(const fs::path& folder, const Which& which)> read;
  bool embedded = false;        // in the library itself, without a folder
  std::vector<Source> sources;  // tried in turn
};

// The one table; a new dataset is a new file and a line there.
const std::vector<Dataset>& datasets();
const Dataset& find_dataset(const std::string& name);

// --data-dir, else QACT_DATA, else ~/.cache/qact.
fs::path data_folder(const std::string& option = "");

// A dataset that can be read: from the table, or the description of a folder of one's own
// (see own.h). One that was never fetched is an error that says how to fetch it.
struct Opened {
  Dataset dataset;
  fs::path folder;

  Split read(const Which& which) const;
};
Opened open_dataset(const std::string& name_or_path, const fs::path& data_folder,
                    const Fit& fit = {});

// Whether the dataset's folder is there.
bool is_present(const Dataset& dataset, const fs::path& data_folder);

}  // namespace qact::data
