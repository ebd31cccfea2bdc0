// The corruptions against bytes computed with the libraries they were published with; random
// ones from the same draws (scripts/corruption_fixtures.py). Noise has a test of its own.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "qact/corrupt/corrupt.h"
#include "tests/corrupt/test_images.h"
#include "tests/image/fixtures.h"

namespace qact::corrupt {
namespace {

// The environment names another folder for the fixtures of every value (--full).
std::filesystem::path fixtures() {
  const char* folder = std::getenv("QACT_CORRUPT_FIXTURES");
  return folder ? std::filesystem::path(folder)
                : std::filesystem::path(QACT_TEST_FIXTURES) / "corrupt";
}

// The share of bytes that may differ, and by how much.
struct Allowed {
  double share = 0;
  int worst = 0;
};

Allowed allowed(const std::string& name, int side) {
  if (name == "zoom_blur") return {.002, 1};  // its many float32 sums are taken in another order
  // ImageNet-C's constants. OpenCV's own sums there depend on the CPU.
  if (side == 96 && name == "defocus_blur") return {.1, 1};
  if (side == 96 && name == "spatter") return {.01, 3};
  return {};
}

struct Difference {
  int64_t values = 0, other = 0;
  int worst = 0;
  double share() const { return static_cast<double>(other) / static_cast<double>(values); }
};

// Every other image in colour is twice as bright: much of it is white, where rounding shows.
image::Image input(int index, int side, int channels) {
  image::Image out = test::test_image(index, side, channels);
  for (uint8_t& v : out.pixels) {
    if (channels == 3 && index % 2 == 1) v = static_cast<uint8_t>(std::min(2 * v, 255));
  }
  return out;
}

// The library's bytes against the originals', for one row of exact.json.
Difference compare(const nlohmann::json& row, std::shared_ptr<const FrostTextures> frost,
                   const uint8_t* expected) {
  const int side = row["side"], channels = row["channels"], stride = row["stride"];
  const Corruptor corruptor(row["name"].get<std::string>(), row["severity"], {side, side, channels},
                            0, std::move(frost));
  Difference difference;
  for (int i = 0; i < row["images"]; ++i) {
    const image::Image in = input(i, side, channels);
    image::Image out(in.size);
    corruptor.apply(in.pixels.data(), i, out.pixels.data());
    for (size_t k = i % stride; k < out.pixels.size(); k += stride) {
      const int off = std::abs(out.pixels[k] - expected[difference.values++]);
      difference.other += off > 0;
      difference.worst = std::max(difference.worst, off);
    }
  }
  return difference;
}

// The published images are not part of the repository: the environment may name their folder, for
// fixtures made with --frost.
std::shared_ptr<const FrostTextures> textures() {
  const char* folder = std::getenv("QACT_FROST_TEXTURES");
  if (!folder) return test::synthetic_textures();
  return std::make_shared<const FrostTextures>(FrostTextures::from_folder(folder, "official"));
}

TEST(Exact, SameBytesAsTheOriginalLibraries) {
  const std::vector<uint8_t> expected =
      test::array_of_file((fixtures() / "exact.npy").string()).bytes;
  const auto frost = textures();
  std::ifstream file(fixtures() / "exact.json");
  int64_t next = 0;
  for (const auto& row : nlohmann::json::parse(file)) {
    const Difference found = compare(row, frost, expected.data() + next);
    next += found.values;
    const std::string name = row["name"];
    const int side = row["side"];
    const Allowed most = allowed(name, side);
    EXPECT_TRUE(found.share() <= most.share && found.worst <= most.worst)
        << name << " at severity " << row["severity"] << ", side " << side << ": " << found.other
        << " of " << found.values << " bytes differ, by up to " << found.worst;
  }
  EXPECT_EQ(next, static_cast<int64_t>(expected.size()));
}

}  // namespace
}  // namespace qact::corrupt
