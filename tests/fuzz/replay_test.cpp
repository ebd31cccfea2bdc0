// Every file of the corpus through its target, in any compiler.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "tests/fuzz/targets.h"
#include "tests/image/fixtures.h"

namespace qact::fuzz {
namespace {

TEST(Fuzz, ReplaysTheCorpus) {
  for (const Target& target : targets()) {
    const std::string folder = std::string(QACT_SOURCE_DIR) + "/tests/fuzz/corpus/" + target.name;
    int count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      const std::vector<uint8_t> bytes = test::bytes_of_file(entry.path().string());
      SCOPED_TRACE(entry.path().string());
      EXPECT_NO_THROW(target.run(bytes));
      // Cut short in places too.
      for (size_t part = 1; part < 8; ++part) {
        EXPECT_NO_THROW(target.run(base::Bytes(bytes).first(bytes.size() * part / 8)));
      }
      ++count;
    }
    EXPECT_GT(count, 0) << folder;
  }
}

}  // namespace
}  // namespace qact::fuzz
