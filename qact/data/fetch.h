// Getting a dataset, or other files, from the first of the sources that answers.
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
  // Another process fetches into the same folder, and is waited for.
  std::function<void(const std::string& who)> waiting = {};
  Progress progress = {};
};

// What to fetch: a folder of this name. expect_whole throws where something is missing in it.
struct Wanted {
  std::string name;
  std::vector<Source> sources;
  std::function<void(const fs::path& folder)> expect_whole;
};

// The source's home, for people: an address or a package.
std::string home_of(const Source& source);

// Leaves it in `data_folder`/NAME, whole and read once, or not at all. Returns the home it came
// from; empty where it was there already.
std::string fetch(const Wanted& wanted, const fs::path& data_folder,
                  const FetchEvents& events = {});
std::string fetch(const Dataset& dataset, const fs::path& data_folder,
                  const FetchEvents& events = {});

}  // namespace qact::data
