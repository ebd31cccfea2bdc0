#include "qact/data/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <utility>
#include <vector>

#include "qact/base/fail.h"
#include "qact/base/regular_file.h"

namespace qact::data {

using base::fail;

Blob map_file(const fs::path& path) {
  base::expect_regular_file(path);
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) fail("file", "cannot open ", path.string(), ": ", std::strerror(errno));
  const std::shared_ptr<const void> closer(nullptr, [file](const void*) { ::close(file); });
  struct stat about{};
  if (::fstat(file, &about) != 0 || !S_ISREG(about.st_mode)) {
    fail("file", "expected a regular file, got something else: ", path.string());
  }
  const auto size = static_cast<size_t>(about.st_size);
  if (size == 0) return {};
  void* at = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
  if (at == MAP_FAILED) fail("file", "cannot map ", path.string(), ": ", std::strerror(errno));
  return {{static_cast<const uint8_t*>(at), size},
          std::shared_ptr<const void>(
              at, [size](const void* p) { ::munmap(const_cast<void*>(p), size); })};
}

Blob inflate_gzip(base::Bytes bytes, size_t max_bytes) {
  z_stream stream = {};
  if (inflateInit2(&stream, 15 + 16) != Z_OK) fail("gzip", "cannot start zlib");
  const std::shared_ptr<z_stream> closer(&stream, inflateEnd);
  auto out = std::make_shared<std::vector<uint8_t>>(std::min(2 * bytes.size() + 64, max_bytes));
  stream.next_in = const_cast<uint8_t*>(bytes.data());
  stream.avail_in = static_cast<uInt>(bytes.size());
  int state = Z_OK;
  while (state == Z_OK) {
    if (stream.total_out == max_bytes) return {*out, out};
    if (stream.total_out == out->size()) out->resize(std::min(2 * out->size(), max_bytes));
    stream.next_out = out->data() + stream.total_out;
    stream.avail_out = static_cast<uInt>(std::min<size_t>(out->size() - stream.total_out, 1 << 30));
    state = inflate(&stream, Z_NO_FLUSH);
  }
  if (state != Z_STREAM_END) {
    fail("gzip", "expected a whole gzip stream, got ",
         state == Z_BUF_ERROR ? "a truncated one" : "another or a corrupt one");
  }
  if (stream.avail_in != 0) {
    fail("gzip", "expected nothing after the stream, got ", stream.avail_in, " bytes");
  }
  return {{out->data(), stream.total_out}, out};
}

bool is_web_page(const fs::path& path) {
  std::error_code ignored;
  if (!fs::is_regular_file(path, ignored)) return false;
  std::ifstream in(path, std::ios::binary);
  std::string start(256, '\0');
  in.read(start.data(), static_cast<std::streamsize>(start.size()));
  start.resize(in.gcount());
  std::transform(start.begin(), start.end(), start.begin(), ::tolower);
  const size_t first = start.find_first_not_of(" \t\r\n\xef\xbb\xbf");
  if (first == start.npos) return false;
  start.erase(0, first);
  return start.starts_with("<!doctype") || start.starts_with("<html") ||
         start.starts_with("<head") || start.starts_with("<?xml");
}

fs::path locate(const fs::path& folder, const std::string& inner, const std::string& name) {
  const fs::path nested = folder / inner / name;
  return fs::exists(nested) ? nested : folder / name;
}

OutputFile::OutputFile(fs::path path, bool append) : path_(std::move(path)) {
  const int mode = append ? O_APPEND : O_TRUNC;
  file_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | mode, 0644);
  if (file_ < 0) fail("file", "cannot write ", path_.string(), ": ", std::strerror(errno));
}

OutputFile::~OutputFile() {
  if (file_ < 0) return;
  ::close(file_);
  ::unlink(path_.c_str());
}

void OutputFile::write(base::Bytes bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail("file", "cannot write ", path_.string(), ": ", std::strerror(errno));
    bytes = bytes.subspan(written);
  }
}

void OutputFile::finish() {
  const int file = std::exchange(file_, -1);
  if (::close(file) != 0) {
    const int why = errno;
    ::unlink(path_.c_str());
    fail("file", "cannot write ", path_.string(), ": ", std::strerror(why));
  }
}

void OutputFile::keep() { ::close(std::exchange(file_, -1)); }

void write_file(const fs::path& path, base::Bytes bytes) {
  OutputFile file(path);
  file.write(bytes);
  file.finish();
}

std::string folder_name(const fs::path& folder) {
  const fs::path whole = fs::absolute(folder).lexically_normal();
  return (whole.has_filename() ? whole : whole.parent_path()).filename().string();
}

void expect_folder(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found) {
    fail("file", "expected a folder, got nothing at ", path.string());
  }
  if (!fs::is_directory(status)) {
    fail("file", "expected a folder, got a file: ", path.string());
  }
}

}  // namespace qact::data
