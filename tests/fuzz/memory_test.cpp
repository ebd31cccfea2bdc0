// Headers that promise more than their file holds: no request for memory may follow them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "tests/fuzz/targets.h"
#include "tests/image/fixtures.h"

// Sanitizers bring an allocator of their own, and so do other C libraries.
#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__)
#define QACT_SEES_REQUESTS 1
#else
#define QACT_SEES_REQUESTS 0
#endif

namespace {

size_t largest_request = 0;

[[maybe_unused]] size_t seen(size_t bytes) {
  largest_request = std::max(largest_request, bytes);
  return bytes;
}

}  // namespace

#if QACT_SEES_REQUESTS
extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);

void* malloc(size_t bytes) { return __libc_malloc(seen(bytes)); }
void* calloc(size_t count, size_t bytes) {
  seen(count * bytes);
  return __libc_calloc(count, bytes);
}
void* realloc(void* block, size_t bytes) { return __libc_realloc(block, seen(bytes)); }
}
#endif

namespace qact::fuzz {
namespace {

TEST(Fuzz, AsksForNoMoreMemoryThanAFileCanFill) {
  if (!QACT_SEES_REQUESTS) GTEST_SKIP() << "the allocator cannot be watched here";
  constexpr size_t kExpansion = 1100;  // deflate's most, and a little
  constexpr size_t kOwn = 1 << 20;     // what decoders take for themselves
  size_t largest_of_all = 0;
  for (const Target& target : targets()) {
    const auto folder = std::filesystem::path(QACT_SOURCE_DIR) / "tests/fuzz/corpus" / target.name;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      const std::vector<uint8_t> bytes = test::bytes_of_file(entry.path().string());
      SCOPED_TRACE(entry.path().string());
      // The largest number that four bytes hold, signed or not, and decimal nines.
      for (const char* number : {"\x7f\xff\xff\xff", "\xff\xff\xff\xff", "9999"}) {
        for (size_t at = 0; at + 4 <= std::min<size_t>(bytes.size(), 160); ++at) {
          std::vector<uint8_t> changed = bytes;
          std::copy(number, number + 4, changed.begin() + at);
          largest_request = 0;
          EXPECT_NO_THROW(target.run(changed));
          largest_of_all = std::max(largest_of_all, largest_request);
          ASSERT_LE(largest_request, kOwn + kExpansion * bytes.size()) << "changed at " << at;
        }
      }
    }
  }
  EXPECT_GT(largest_of_all, 0u);
}

}  // namespace
}  // namespace qact::fuzz
