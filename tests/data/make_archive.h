// Archives with the entries that a test asks for.
#pragma once

#include <archive.h>
#include <archive_entry.h>

#include "tests/data/test_files.h"

namespace qact::test {

struct Entry {
  std::string name, text;
  unsigned type = AE_IFREG;
  std::string link = "";
};

enum class Format { tar, zip, ar };

inline void make_archive(const fs::path& path, const std::vector<Entry>& entries,
                         Format format = Format::tar) {
  ::archive* out = archive_write_new();
  if (format == Format::zip) {
    archive_write_set_format_zip(out);
  } else if (format == Format::ar) {
    archive_write_set_format_ar_svr4(out);
  } else {
    archive_write_add_filter_gzip(out);
    archive_write_set_format_pax_restricted(out);
  }
  archive_write_open_filename(out, path.c_str());
  for (const Entry& entry : entries) {
    ::archive_entry* header = archive_entry_new();
    archive_entry_set_pathname(header, entry.name.c_str());
    archive_entry_set_filetype(header, entry.type);
    archive_entry_set_perm(header, 0644);
    archive_entry_set_size(header, static_cast<la_int64_t>(entry.text.size()));
    if (entry.type == AE_IFLNK) archive_entry_set_symlink(header, entry.link.c_str());
    if (entry.type == AE_IFREG && !entry.link.empty()) {
      archive_entry_set_hardlink(header, entry.link.c_str());
    }
    archive_write_header(out, header);
    archive_write_data(out, entry.text.data(), entry.text.size());
    archive_entry_free(header);
  }
  archive_write_free(out);
}

}  // namespace qact::test
