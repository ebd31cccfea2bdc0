// Fetches a dataset, or other files, from the first source that works.
#pragma once

#include <functional>
#include <string>

#include "qact/data/dataset.h"
#include "qact/data/download.h"

namespace qact::data {

struct FetchEvents {
  // A source is being tried; `from` is its source_name().
  std::function<void(const std::string& from)> trying = {};
  // It did not answer, or gave something else.
  std::function<void(const std::string& from, const std::string& why)> failed = {};
  // Another process fetches into the same folder, and is waited for.
  std::function<void(const std::string& who)> waiting = {};
  DownloadProgress progress = {};
};

// A folder to fetch. expect_complete throws where it lacks something.
struct FetchRequest {
  std::string name;
  std::vector<Source> sources;
  std::function<void(const fs::path& folder)> expect_complete;
};

// The source in words: its URL or package.
std::string source_name(const Source& source);

// Leaves the folder at `data_folder`/NAME, complete and checked, or not at all. Returns the
// source_name() it came from; empty where the folder was there already.
std::string fetch(const FetchRequest& request, const fs::path& data_folder,
                  const FetchEvents& events = {});
std::string fetch(const DatasetInfo& dataset, const fs::path& data_folder,
                  const FetchEvents& events = {});

}  // namespace qact::data
