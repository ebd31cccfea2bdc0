// The distortions without chance, against values computed with the libraries they were
// published with (scripts/distortion_fixtures.py).
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "qact/corrupt/corrupt.h"
#include "qact/image/codec.h"
#include "tests/corrupt/pictures.h"

namespace qact::corrupt {
namespace {

// The environment names another folder for the fixtures of every value (--full).
std::filesystem::path fixtures() {
  const char* folder = std::getenv("QACT_CORRUPT_FIXTURES");
  return folder ? std::filesystem::path(folder)
                : std::filesystem::path(QACT_TEST_FIXTURES) / "corrupt";
}

std::vector<uint8_t> read_array(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<uint8_t> bytes{std::istreambuf_iterator<char>(file),
                             std::istreambuf_iterator<char>()};
  const auto header = image::parse_npy_header(bytes, static_cast<int64_t>(bytes.size()));
  bytes.erase(bytes.begin(), bytes.begin() + header.data_offset);
  return bytes;
}

struct Difference {
  int64_t values = 0, beyond_one = 0;
  int worst = 0;
};

TEST(Exact, WithinOneOfTheOriginalLibraries) {
  const std::vector<uint8_t> expected = read_array(fixtures() / "exact.npy");
  std::ifstream file(fixtures() / "exact.json");
  size_t next = 0;
  for (const auto& row : nlohmann::json::parse(file)) {
    const int side = row["side"], channels = row["channels"], count = row["pictures"];
    const int stride = row["stride"], severity = row["severity"];
    const std::string name = row["name"];
    const Corruption corruption(name, severity, {side, side, channels});
    Difference difference;
    for (int i = 0; i < count; ++i) {
      const image::Image in = testing::picture(i, side, channels);
      image::Image out(in.size);
      corruption.apply(in.pixels.data(), i, out.pixels.data());
      for (size_t k = i % stride; k < out.pixels.size(); k += stride) {
        ASSERT_LT(next, expected.size());
        const int off = std::abs(out.pixels[k] - expected[next++]);
        ++difference.values;
        difference.beyond_one += off > 1;
        difference.worst = std::max(difference.worst, off);
      }
    }
    EXPECT_LE(difference.worst, 1)
        << name << " at severity " << severity << ", side " << side << ": " << difference.beyond_one
        << " of " << difference.values << " values";
  }
  EXPECT_EQ(next, expected.size());
}

}  // namespace
}  // namespace qact::corrupt
