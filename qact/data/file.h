// Whole files as bytes: mapped, or unpacked from gzip.
#pragma once

#include <filesystem>
#include <memory>
#include <new>
#include <span>
#include <stdexcept>
#include <string>

#include "qact/image/codec.h"

namespace qact::data {

namespace fs = std::filesystem;

struct Blob {
  image::Bytes bytes;
  std::shared_ptr<const void> keep;
};

Blob map_file(const fs::path& path);

// What was packed, but no more than the first `most` bytes: a bomb stays small. Memory grows
// with what is really there; checksum and length are verified where it is whole.
Blob inflate_gzip(image::Bytes bytes, size_t most);

// Whether the file starts like a web page, as the answers of log-in pages and of lost homes
// do.
bool is_web_page(const fs::path& path);

// `folder`/`name`, or in the folder that the official archive unpacks to.
fs::path locate(const fs::path& folder, const std::string& inner, const std::string& name);

// A file being written in a folder that nobody reads yet. Errors name it; without finish()
// it is removed.
class OutputFile {
 public:
  explicit OutputFile(fs::path path, bool append = false);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void write(image::Bytes bytes);
  void finish();
  // Leaves what is there for a later append.
  void keep();

 private:
  fs::path path_;
  int file_ = -1;
};

void write_file(const fs::path& path, image::Bytes bytes);

void expect_folder(const fs::path& path);

// The last part of a folder's path, with or without a slash behind it.
std::string name_of(const fs::path& folder);

// Runs a reader of bytes that knows no file's name, and puts the name before its error.
template <class Reader>
auto naming(const fs::path& path, const Reader& reader) {
  try {
    return reader();
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    throw std::runtime_error(
        path.string() + ": " +
        (is_web_page(path) ? "[file] expected data, got a web page" : error.what()));
  }
}

}  // namespace qact::data
