// Getting a dataset from the first of its sources that answers.
#pragma once

#include <functional>
#include <string>

#include "qact/data/dataset.h"
#include "qact/data/download.h"

namespace qact::data {

struct FetchEvents {
  // A source is being tried; `from` names its home.
  std::function<void(const std::string& from)> trying = {};
  // It did not answer, or answered wrongly.
  std::function<void(const std::string& from, const std::string& why)> failed = {};
  Progress progress = {};
};

// The source's home, for people: an address or a package.
std::string home_of(const Source& source);

// Leaves the dataset in `data_folder`/NAME, whole and read once, or not at all. Returns the
// home it came from; empty where it was there already.
std::string fetch(const Dataset& dataset, const fs::path& data_folder,
                  const FetchEvents& events = {});

}  // namespace qact::data
