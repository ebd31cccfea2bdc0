#include "qact/eval/image_stream.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "tests/eval/evaluation_fixture.h"

namespace qact::eval {
namespace {

using Order = std::vector<int64_t>;

// Each of 0 to count - 1 once.
bool is_permutation_of(const Order& order, int64_t count) {
  Order sorted = order;
  std::sort(sorted.begin(), sorted.end());
  for (int64_t i = 0; i < count; ++i) {
    if (i >= static_cast<int64_t>(sorted.size()) || sorted[i] != i) return false;
  }
  return static_cast<int64_t>(sorted.size()) == count;
}

TEST(ImageStream, MixedHasEachImageOncePerCorruption) {
  constexpr int64_t kCorruptions = 5, kImages = 200, kBatch = 50;
  const Order order = mixed_order(kCorruptions, kImages, 3);
  EXPECT_TRUE(is_permutation_of(order, kCorruptions * kImages));
  EXPECT_EQ(mixed_order(kCorruptions, kImages, 3), order);
  EXPECT_NE(mixed_order(kCorruptions, kImages, 4), order);
  for (int64_t first = 0; first < kCorruptions * kImages; first += kBatch) {
    std::vector<int64_t> counts(kCorruptions);
    for (int64_t i = first; i < first + kBatch; ++i) counts[order[i] / kImages] += 1;
    // 10 of each on average, and a deviation of 2.8.
    for (const int64_t count : counts) EXPECT_NEAR(count, kBatch / kCorruptions, 10) << first;
  }
}

Order cyclic_labels(int64_t images, int64_t classes) {
  Order labels;
  for (int64_t i = 0; i < images; ++i) labels.push_back(i % classes);
  return labels;
}

// The share of images whose successor has the same label.
double alike(const Order& order, const Order& labels) {
  double same = 0;
  for (size_t i = 1; i < order.size(); ++i) same += labels[order[i]] == labels[order[i - 1]];
  return same / static_cast<double>(order.size() - 1);
}

TEST(ImageStream, CorrelatedNeighboursHaveTheSameLabel) {
  const Order labels = cyclic_labels(2000, 10);
  const Order order = correlated_order(labels, 3);
  EXPECT_TRUE(is_permutation_of(order, 2000));
  EXPECT_EQ(correlated_order(labels, 3), order);
  EXPECT_NE(correlated_order(labels, 4), order);
  EXPECT_GT(alike(order, labels), 0.95);
  // At most 10 x 10 chunks, but more than one for some class: it is no sorting by class.
  EXPECT_LT(alike(order, labels), 1 - 10.0 / 2000);
  // In batches of 100, an image in random order meets all the 10 classes.
  double classes = 0;
  for (size_t first = 0; first < order.size(); first += 100) {
    std::set<int64_t> found;
    for (size_t i = first; i < first + 100; ++i) found.insert(labels[order[i]]);
    classes += static_cast<double>(found.size()) / 20;
  }
  EXPECT_LT(classes, 5);
  // Within a class, images are not in the order of the dataset.
  const auto third =
      std::find_if(order.begin(), order.end(), [&](auto i) { return labels[i] == 3; });
  EXPECT_FALSE(std::is_sorted(third, third + 20));
}

// Shares of one class in a slot vary as Dirichlet(0.1) does: most slots have nearly none of it.
TEST(ImageStream, CorrelatedSharesAreFarFromEven) {
  const Order labels = cyclic_labels(1000, 10);
  int64_t tenths = 0, with_class = 0;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const Order order = correlated_order(labels, seed);
    for (int64_t tenth = 0; tenth < 10; ++tenth) {
      int64_t count = 0;
      for (int64_t i = 100 * tenth; i < 100 * (tenth + 1); ++i) count += labels[order[i]] == 0;
      tenths += 1;
      with_class += count > 2;
    }
  }
  EXPECT_LT(static_cast<double>(with_class) / static_cast<double>(tenths), 0.5);
}

TEST(ImageStream, CorrelatedTakesAwkwardLabels) {
  EXPECT_EQ(correlated_order({}, 1), Order{});
  EXPECT_EQ(correlated_order({7}, 1), Order{0});
  EXPECT_TRUE(is_permutation_of(correlated_order(Order(30, 2), 1), 30));  // one class
  Order rare(30, 4);
  rare[11] = 9;  // one image of its class, and no images of the others
  for (uint64_t seed = 0; seed < 20; ++seed) {
    EXPECT_TRUE(is_permutation_of(correlated_order(rare, seed), 30)) << seed;
    EXPECT_TRUE(is_permutation_of(correlated_order(cyclic_labels(7, 7), seed), 7)) << seed;
  }
}

class OpenStream : public ::testing::Test {
 protected:
  OpenStream() {
    train::write_bands(scratch_.path / "data", "train", 9);
    train::write_bands(scratch_.path / "data", "t10k", kTestImages);
  }

  TestImages images() const {
    TestImagesOptions options;
    options.data = (scratch_.path / "data").string();
    options.seed = 5;
    options.classes = {3, {}};
    return TestImages(options);
  }

  ScratchFolder scratch_;
};

// Every part has the images and labels of its corruption, wherever they are in the stream.
TEST_F(OpenStream, HasTheImagesOfEveryCorruption) {
  const TestImages images = this->images();
  for (const std::string& name : stream_names()) {
    const std::vector<std::string> corruptions =
        name == "mixed" ? std::vector<std::string>{"brightness", "contrast", "tone"}
                        : std::vector<std::string>{"contrast"};
    const ImageStream stream = open_stream(images, name, corruptions, 4, 8);
    ASSERT_EQ(stream.parts.size(), corruptions.size());
    Order places;
    for (size_t c = 0; c < corruptions.size(); ++c) {
      const ImageStream::Part& part = stream.parts[c];
      const data::Split expected = images.read(corruptions[c], 4);
      EXPECT_EQ(part.corruption, corruptions[c]);
      EXPECT_EQ(stream.labels_of(part), expected.labels);
      for (int64_t i = 0; i < expected.count(); ++i) {
        const uint8_t* const found = stream.images.image(part.positions[i]);
        ASSERT_TRUE(std::equal(found, found + expected.size.values(), expected.image(i))) << i;
      }
      places.insert(places.end(), part.positions.begin(), part.positions.end());
    }
    EXPECT_TRUE(is_permutation_of(places, stream.images.count()));
    EXPECT_EQ(std::is_sorted(places.begin(), places.end()), name == "single");
    EXPECT_EQ(stream.images.classes, images.read("none", 0).classes);
  }
}

// So that what differs between two cells is not the order.
TEST_F(OpenStream, HasTheSameOrderForEverySeverityAndCorruption) {
  const TestImages images = this->images();
  const auto positions = [&](const char* stream, const char* corruption, int severity,
                             uint64_t seed) {
    return open_stream(images, stream, {corruption}, severity, seed).parts[0].positions;
  };
  for (const char* stream : {"mixed", "correlated"}) {
    EXPECT_EQ(positions(stream, "none", 0, 8), positions(stream, "contrast", 5, 8));
    EXPECT_EQ(positions(stream, "brightness", 1, 8), positions(stream, "contrast", 5, 8));
    EXPECT_NE(positions(stream, "none", 0, 8), positions(stream, "none", 0, 9));
  }
}

}  // namespace
}  // namespace qact::eval
