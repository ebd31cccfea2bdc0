#include "qact/base/regular_file.h"

#include "qact/base/fail.h"

namespace qact::base {

void expect_regular_file(const std::filesystem::path& path) {
  std::error_code ignored;
  const auto type = std::filesystem::status(path, ignored).type();
  using enum std::filesystem::file_type;
  if (type == none || type == not_found || type == unknown || type == regular) return;
  fail("file", "expected a regular file, got ", file_type_name(type), ": ", path.string());
}

const char* file_type_name(std::filesystem::file_type type) {
  using enum std::filesystem::file_type;
  switch (type) {
    case directory:
      return "a folder";
    case symlink:
      return "a symbolic link";
    case block:
    case character:
      return "a device";
    case fifo:
      return "a FIFO";
    case socket:
      return "a socket";
    default:
      return "something else";
  }
}

}  // namespace qact::base
