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

// Checksum and length are verified; memory grows with what is really there.
Blob inflate_gzip(image::Bytes bytes);

// `name`, else `name`.gz unpacked.
Blob read_plain_or_gzip(const fs::path& folder, const std::string& name);

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

// Runs a reader of bytes that knows no file's name, and puts the name before its error.
template <class Reader>
auto naming(const fs::path& path, const Reader& reader) {
  try {
    return reader();
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    throw std::runtime_error(path.string() + ": " + error.what());
  }
}

}  // namespace qact::data
