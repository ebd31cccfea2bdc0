#include "cli/output.h"

#include <cerrno>
#include <cstdio>
#include <system_error>

namespace qact::cli {
namespace {

int first_error = 0;  // of a print()

}  // namespace

void print(const std::string& text) {
  errno = 0;
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (!written && first_error == 0) first_error = errno;
}

Delivery deliver_output() {
  errno = 0;
  const bool flushed = std::fflush(stdout) == 0;
  const int error = first_error != 0 ? first_error : errno;
  if (flushed && !std::ferror(stdout)) return {};
  return {false, error == 0 ? "an earlier write failed" : std::generic_category().message(error)};
}

}  // namespace qact::cli
