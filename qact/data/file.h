// Files as bytes: mapped, unpacked from gzip, or written.
#pragma once

#include <filesystem>
#include <memory>
#include <new>
#include <span>
#include <stdexcept>
#include <string>

#include "qact/base/bytes.h"

namespace qact::data {

namespace fs = std::filesystem;

// Bytes, and the mapping or buffer that keeps them alive.
struct Blob {
  base::Bytes bytes;
  std::shared_ptr<const void> owner;
};

Blob map_file(const fs::path& path);

// Unpacks at most `max_bytes`, against decompression bombs. Memory grows with what is really there;
// checksum and length are verified where all of it is unpacked.
Blob inflate_gzip(base::Bytes bytes, size_t max_bytes);

// Whether the file starts like HTML or XML: servers answer so for log-in pages and moved files.
bool is_web_page(const fs::path& path);

// `folder`/`inner`/`name` where that exists (`inner` is the folder that the official archive
// unpacks to), else `folder`/`name`.
fs::path locate(const fs::path& folder, const std::string& inner, const std::string& name);

// A file being written in a folder that nobody reads yet. Errors name the file; without finish() or
// keep() it is removed.
class OutputFile {
 public:
  explicit OutputFile(fs::path path, bool append = false);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void write(base::Bytes bytes);
  void finish();
  // Leaves the partial file for a later append.
  void keep();

 private:
  fs::path path_;
  int file_ = -1;
};

void write_file(const fs::path& path, base::Bytes bytes);

void expect_folder(const fs::path& path);

// The last part of a folder's path, with or without a slash behind it.
std::string folder_name(const fs::path& folder);

// Calls reader(), which parses bytes without knowing their file, and puts the file's name before
// its error message.
template <class Reader>
auto with_file_name(const fs::path& path, const Reader& reader) {
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
