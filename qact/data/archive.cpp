#include "qact/data/archive.h"

#include <archive.h>
#include <archive_entry.h>

#include <memory>

#include "qact/base/fail.h"

namespace qact::data {
namespace {

using base::fail;
using Reader = std::unique_ptr<::archive, int (*)(::archive*)>;

constexpr size_t kBlock = 1 << 16;

Reader zip_and_tar_reader() {
  Reader reader(archive_read_new(), archive_read_free);
  archive_read_support_filter_all(reader.get());
  archive_read_support_format_tar(reader.get());
  archive_read_support_format_zip(reader.get());
  return reader;
}

Reader open_archive(const fs::path& path) {
  Reader reader = zip_and_tar_reader();
  archive_read_support_format_ar(reader.get());
  if (archive_read_open_filename(reader.get(), path.c_str(), kBlock) != ARCHIVE_OK) {
    fail("unpack", "expected an archive, got ", path.string(), ": ",
         archive_error_string(reader.get()));
  }
  return reader;
}

// The entry's path below `inside`, or empty where it lies elsewhere.
fs::path path_inside(const std::string& name, const std::string& inside) {
  const std::string plain = name.starts_with("./") ? name.substr(2) : name;
  return plain.starts_with(inside) ? plain.substr(inside.size()) : "";
}

void expect_safe(const fs::path& path, ::archive_entry* entry, const fs::path& archive) {
  bool safe = path.is_relative();
  for (const fs::path& step : path) safe = safe && step != "..";
  if (!safe) {
    fail("unpack", "expected paths within the dataset, got ", path.string(), " in ",
         archive.string());
  }
  const auto type = archive_entry_filetype(entry);
  if (archive_entry_hardlink(entry) || (type != AE_IFREG && type != AE_IFDIR)) {
    fail("unpack", "expected files and folders, got a link or a device: ", path.string(), " in ",
         archive.string());
  }
}

void write_entry(::archive* reader, const fs::path& target, const fs::path& archive,
                 int64_t* bytes_left) {
  OutputFile out(target);
  const void* block = nullptr;
  size_t count = 0;
  la_int64_t offset = 0, written = 0;
  int state = 0;
  while ((state = archive_read_data_block(reader, &block, &count, &offset)) == ARCHIVE_OK) {
    *bytes_left -= static_cast<int64_t>(count);
    if (*bytes_left < 0 || offset != written) {
      fail("unpack", "expected a dataset, got a bomb (more bytes than it can have, or holes): ",
           archive.string());
    }
    out.write({static_cast<const uint8_t*>(block), count});
    written += static_cast<la_int64_t>(count);
  }
  if (state != ARCHIVE_EOF) {
    fail("unpack", "cannot read ", archive.string(), ": ", archive_error_string(reader));
  }
  out.finish();
}

}  // namespace

void unpack(const fs::path& archive, const fs::path& target, const std::string& inside,
            int64_t max_bytes) {
  const Reader reader = open_archive(archive);
  fs::create_directories(target);
  ::archive_entry* entry = nullptr;
  int state = 0, files = 0;
  while ((state = archive_read_next_header(reader.get(), &entry)) == ARCHIVE_OK) {
    const char* name = archive_entry_pathname(entry);
    const fs::path path = path_inside(name ? name : "", inside);
    if (path.empty()) continue;
    expect_safe(path, entry, archive);
    if (archive_entry_filetype(entry) == AE_IFDIR) {
      fs::create_directories(target / path);
      continue;
    }
    fs::create_directories((target / path).parent_path());
    write_entry(reader.get(), target / path, archive, &max_bytes);
    ++files;
  }
  if (state != ARCHIVE_EOF) {
    fail("unpack", "cannot read ", archive.string(), ": ", archive_error_string(reader.get()));
  }
  if (files == 0) fail("unpack", "expected files in ", inside, ", got none in ", archive.string());
}

bool is_archive(const fs::path& path) {
  const Reader reader = zip_and_tar_reader();
  ::archive_entry* entry = nullptr;
  return archive_read_open_filename(reader.get(), path.c_str(), kBlock) == ARCHIVE_OK &&
         archive_read_next_header(reader.get(), &entry) == ARCHIVE_OK;
}

}  // namespace qact::data
