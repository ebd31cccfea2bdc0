#include "qact/eval/predict.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <numeric>

#include "qact/image/codec.h"
#include "qact/image/resize.h"
#include "tests/base/message.h"
#include "tests/eval/evaluation_fixture.h"

namespace qact::eval {
namespace {

namespace fs = std::filesystem;

void write_png(const fs::path& path, const image::Image& image) {
  const std::vector<uint8_t> bytes = image::encode_png(image);
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<long>(bytes.size()));
}

image::Image image_of(const data::Split& split, int64_t index) {
  image::Image image(split.size);
  std::copy_n(split.image(index), split.size.values(), image.pixels.begin());
  return image;
}

// Test images as files: the same classes as from the dataset, whatever else is there.
TEST(Predict, ClassifiesFilesAsTheDatasetsImages) {
  EvaluationFixture folder;
  const data::Split split = folder.test_images();
  const fs::path images = folder.path / "images" / "inner";
  fs::create_directories(images);
  for (const int64_t i : {0, 1, 2, 3}) {
    write_png(images / (std::to_string(i) + ".png"), image_of(split, i));
  }
  std::ofstream(images / "1b.png") << "not an image";
  std::ofstream(images / "notes.txt") << "left alone";

  const train::Model model = folder.model();
  PredictOptions options;
  options.top = 2;
  const auto paths = list_images({(folder.path / "images").string(), "missing.png"});
  ASSERT_EQ(paths.size(), 6u);
  const PredictResult result = predict(model, paths, options);
  ASSERT_EQ(result.predictions.size(), 4u);
  ASSERT_EQ(result.unreadable.size(), 2u);
  EXPECT_EQ(result.unreadable[0].image, images / "1b.png");
  EXPECT_EQ(result.unreadable[1].image, "missing.png");

  const torch::Tensor table =
      infer(model, split.slice(0, 4), options.inference, {"head"}).probabilities[0];
  for (int64_t i = 0; i < 4; ++i) {
    const auto& top = result.predictions[i].top;
    ASSERT_EQ(top.size(), 2u);
    EXPECT_EQ(top[0].label, table[i].argmax().item<int64_t>());
    EXPECT_EQ(top[0].name, std::to_string(top[0].label));
    EXPECT_FLOAT_EQ(static_cast<float>(top[0].probability), table[i].max().item<float>());
    EXPECT_GE(top[0].probability, top[1].probability);
  }
}

// Circular and broken links are named; links to folders are not followed.
TEST(Predict, NamesWhatCannotBeRead) {
  const EvaluationFixture folder;
  const fs::path images = folder.path / "images";
  fs::create_directories(images / "inner");
  write_png(images / "inner" / "good.png", image_of(folder.test_images(), 0));
  std::ofstream(images / "empty.png");
  fs::create_symlink("loop.png", images / "loop.png");
  fs::create_symlink("nowhere.png", images / "lost.png");
  fs::create_symlink("..", images / "inner" / "up");
  fs::create_symlink("inner", images / "folder.png");
  fs::create_symlink("good.png", images / "inner" / "same.png");
  const auto paths = list_images({images.string()});
  const std::vector<fs::path> expected = {images / "empty.png", images / "inner" / "good.png",
                                          images / "inner" / "same.png", images / "loop.png",
                                          images / "lost.png"};
  EXPECT_EQ(paths, expected);

  const PredictResult result = predict(folder.model(), paths, {});
  ASSERT_EQ(result.predictions.size(), 2u);
  EXPECT_EQ(result.predictions[0].top[0].probability, result.predictions[1].top[0].probability);
  ASSERT_EQ(result.unreadable.size(), 3u);
  for (const Unreadable& each : result.unreadable) {
    expect_in(each.image.string(), each.reason);
  }
  expect_in("Too many levels of symbolic links", result.unreadable[1].reason);
  expect_in("No such file", result.unreadable[2].reason);
  // Given by name, too.
  EXPECT_EQ(list_images({(images / "loop.png").string()}).size(), 1u);
}

// The shorter side is resized and the centre cropped.
TEST(Predict, TakesOtherSizesAndColours) {
  EvaluationFixture folder;
  const train::Model model = folder.model();
  image::Image wide({40, 100, 3}), tall({64, 16, 1});
  std::iota(wide.pixels.begin(), wide.pixels.end(), 0);
  const data::Split split = folder.test_images();
  for (int part = 0; part < 4; ++part) {  // four test images below each other: two are cut
    std::copy_n(split.image(part), 256, tall.pixels.begin() + part * 256);
  }
  write_png(folder.path / "wide.png", wide);
  write_png(folder.path / "tall.png", tall);
  PredictOptions options;
  options.top = 99;
  const PredictResult result =
      predict(model, {folder.path / "wide.png", folder.path / "tall.png"}, options);
  ASSERT_EQ(result.predictions.size(), 2u);

  const auto fitted = [&](const image::Image& image) {
    const auto bytes = image::encode_png(image);
    return image::centre_crop(image::resize_shorter(image::decode_image(bytes, 1), 16), 16, 16)
        .pixels;
  };
  std::vector<uint8_t> pixels = fitted(wide);
  for (const uint8_t v : fitted(tall)) pixels.push_back(v);
  EXPECT_TRUE(std::equal(pixels.begin() + 256, pixels.end(), tall.pixels.begin() + 24 * 16));
  const torch::Tensor table =
      infer(model, data::make_split({16, 16, 1}, 3, pixels, {0, 0}), {}, {"head"}).probabilities[0];
  for (int64_t i = 0; i < 2; ++i) {
    const auto& top = result.predictions[i].top;
    ASSERT_EQ(top.size(), 3u);
    for (const ClassProbability& each : top) {
      EXPECT_EQ(static_cast<float>(each.probability), table[i][each.label].item<float>());
    }
    EXPECT_EQ(top[0].label + top[1].label + top[2].label, 3);
  }
}

}  // namespace
}  // namespace qact::eval
