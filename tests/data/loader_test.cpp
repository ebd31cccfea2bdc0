// Batches against plain loops, and the same ones for any number of workers.
#include "qact/data/loader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "tests/data/test_files.h"

namespace qact::data {
namespace {

using namespace test;

Split some_images(int64_t count, image::Size size) {
  std::vector<int64_t> labels(count);
  for (int64_t i = 0; i < count; ++i) labels[i] = i % 7;
  return make_split(size, 7, pattern(count * size.values()), labels);
}

struct Epochs {
  std::vector<float> images;
  std::vector<int64_t> labels, counts;
};

Epochs run_epochs(const Split& split, const LoaderOptions& options, int slots, int epochs = 2) {
  const int64_t values = options.batch_size * split.size.values();
  std::vector<float> images(slots * values);
  std::vector<int64_t> labels(slots * options.batch_size);
  std::vector<BatchSlot> memory;
  for (int i = 0; i < slots; ++i) {
    memory.push_back({&images[i * values], &labels[i * options.batch_size]});
  }
  Loader loader(split, options, memory);
  Epochs out;
  for (int epoch = 0; epoch < epochs; ++epoch) {
    loader.start(epoch);
    int64_t batches = 0;
    while (const BatchSlot* batch = loader.next()) {
      out.counts.push_back(batch->count);
      out.images.insert(out.images.end(), batch->images,
                        batch->images + batch->count * split.size.values());
      out.labels.insert(out.labels.end(), batch->labels, batch->labels + batch->count);
      ++batches;
    }
    EXPECT_EQ(batches, loader.batches());
  }
  return out;
}

TEST(Loader, NormalisesToNchw) {
  const Split split = some_images(5, {3, 4, 3});
  LoaderOptions options;
  options.batch_size = 2;
  options.normalisation = {{0.1, 0.2, 0.3}, {0.5, 0.6, 0.7}};
  const Epochs run = run_epochs(split, options, 1, 1);
  EXPECT_EQ(run.counts, (std::vector<int64_t>{2, 2, 1}));
  EXPECT_EQ(run.labels, split.labels);
  for (int i = 0; i < 5; ++i) {
    for (int c = 0; c < 3; ++c) {
      for (int p = 0; p < 12; ++p) {
        const double mean = options.normalisation.mean[c], std = options.normalisation.std[c];
        ASSERT_FLOAT_EQ(run.images[i * 36 + c * 12 + p],
                        (split.image(i)[3 * p + c] / 255.0 - mean) / std);
      }
    }
  }
}

TEST(Loader, GivesTheSameBatchesForAnyNumberOfWorkers) {
  const Split split = some_images(53, {8, 8, 3});
  LoaderOptions options;
  options.batch_size = 6;
  options.shuffle = true;
  options.seed = 5;
  for (const bool mix : {false, true}) {
    options.augmentation = {.pad = 2, .flip = true, .mix = mix};
    options.dither = mix;
    options.workers = 0;
    const Epochs expected = run_epochs(split, options, 1);
    for (const int workers : {1, 2, 5}) {
      for (const int slots : {1, 2, 6}) {
        options.workers = workers;
        const Epochs found = run_epochs(split, options, slots);
        EXPECT_EQ(found.labels, expected.labels) << workers << " workers, " << slots << " slots";
        EXPECT_EQ(found.images, expected.images) << workers << " workers, " << slots << " slots";
      }
    }
  }
}

// What else is drawn stays.
TEST(Loader, DithersEachImageInEachEpochAnew) {
  const Split split = some_images(6, {4, 4, 3});
  LoaderOptions options;
  options.batch_size = 3;
  options.augmentation = {.pad = 2, .flip = true};
  const Epochs plain = run_epochs(split, options, 1);
  options.dither = true;
  const Epochs dithered = run_epochs(split, options, 1);
  std::set<float> noise;
  for (size_t i = 0; i < plain.images.size(); ++i) {
    EXPECT_LE(std::abs(dithered.images[i] - plain.images[i]) * 255, 0.5001);
    if (i % 48 == 0) noise.insert(std::round(4096 * 255 * (dithered.images[i] - plain.images[i])));
  }
  EXPECT_GT(noise.size(), 10u);  // the first values of 12 images
}

// The labels are the images' numbers. A batch of 4 leaves some of 5 ranks without images.
TEST(Loader, SharesEachBatchOverRanks) {
  std::vector<int64_t> numbers(23);
  std::iota(numbers.begin(), numbers.end(), 0);
  const Split split = make_split({2, 2, 1}, 23, pattern(23 * 4), numbers);
  for (const bool even : {false, true}) {
    for (int ranks = 1; ranks <= 5; ++ranks) {
      LoaderOptions options;
      options.batch_size = 4;
      options.even = even;
      const Epochs whole = run_epochs(split, options, 1, 1);
      std::vector<Epochs> shares;
      options.ranks = ranks;
      for (options.rank = 0; options.rank < ranks; ++options.rank) {
        shares.push_back(run_epochs(split, options, 1, 1));
      }
      std::vector<int64_t> together, taken(ranks, 0);
      for (size_t batch = 0; batch < whole.counts.size(); ++batch) {
        for (int rank = 0; rank < ranks; ++rank) {
          const int64_t count = shares[rank].counts.at(batch);
          EXPECT_LE(count, largest_share(options));
          const auto first = shares[rank].labels.begin() + taken[rank];
          together.insert(together.end(), first, first + count);
          taken[rank] += count;
        }
      }
      EXPECT_EQ(together, whole.labels) << ranks << " ranks";
    }
  }
}

TEST(Loader, ShufflesEachEpochAnew) {
  std::vector<int64_t> labels(100);
  for (int i = 0; i < 100; ++i) labels[i] = i;
  const Split split = make_split({1, 1, 1}, 100, pattern(100), labels);
  LoaderOptions options;
  options.batch_size = 100;
  options.shuffle = true;
  const Epochs run = run_epochs(split, options, 1);
  const std::vector<int64_t> first(run.labels.begin(), run.labels.begin() + 100);
  const std::vector<int64_t> second(run.labels.begin() + 100, run.labels.end());
  EXPECT_NE(first, second);
  EXPECT_NE(first, labels);
  EXPECT_EQ(std::set(first.begin(), first.end()).size(), 100u);
  EXPECT_EQ(std::set(second.begin(), second.end()).size(), 100u);
}

// Of 1 to 40 images, in batches of 1 to 9: as few as can be, each image once, in order.
TEST(Loader, EvenBatchesDifferByOneImage) {
  for (int64_t images = 1; images <= 40; ++images) {
    for (int64_t most = 1; most <= 9; ++most) {
      LoaderOptions options;
      options.batch_size = most;
      options.even = true;
      const Split split = some_images(images, {1, 1, 1});
      const Epochs run = run_epochs(split, options, 1, 1);
      EXPECT_EQ(static_cast<int64_t>(run.counts.size()), (images + most - 1) / most);
      EXPECT_EQ(run.labels, split.labels);
      const auto [least, largest] = std::minmax_element(run.counts.begin(), run.counts.end());
      EXPECT_LE(*largest, most);
      EXPECT_LE(*largest - *least, 1) << images << " in batches of " << most;
      if (most >= 3 && images >= 2) {
        EXPECT_GE(*least, 2) << images << " in batches of " << most;
      }
    }
  }
}

TEST(Loader, GivesAnOrderFromAnyBatchOn) {
  const Split split = some_images(20, {2, 2, 1});
  const std::vector<int64_t> order = {3, 17, 3, 0, 9, 12, 4};
  for (const int workers : {0, 2}) {
    std::vector<float> images(2 * 3 * 4);
    std::vector<int64_t> labels(2 * 3);
    LoaderOptions options;
    options.batch_size = 3;
    options.workers = workers;
    Loader loader(split, options, {{&images[0], &labels[0]}, {&images[12], &labels[3]}});
    for (int64_t first = 0; first <= 3; ++first) {
      loader.start(0, order, first);
      EXPECT_EQ(loader.batches(), 3);
      std::vector<int64_t> given;
      while (const BatchSlot* batch = loader.next()) {
        given.insert(given.end(), batch->labels, batch->labels + batch->count);
      }
      std::vector<int64_t> expected;
      for (size_t i = 3 * first; i < order.size(); ++i) expected.push_back(order[i] % 7);
      EXPECT_EQ(given, expected) << "from batch " << first << " with " << workers << " workers";
    }
    EXPECT_TRUE(contains(message_of([&] { loader.start(0, {20}); }), "0 to 19, got 20"));
  }
}

TEST(Loader, DropsAnEpochUnderWay) {
  const Split split = some_images(40, {4, 4, 1});
  std::vector<float> images(3 * 4 * 16);
  std::vector<int64_t> labels(3 * 4);
  LoaderOptions options;
  options.batch_size = 4;
  options.workers = 2;
  Loader loader(split, options,
                {{&images[0], &labels[0]}, {&images[64], &labels[4]}, {&images[128], &labels[8]}});
  for (int epoch = 0; epoch < 20; ++epoch) {
    loader.start(epoch);
    for (int i = 0; i < epoch % 5; ++i) ASSERT_NE(loader.next(), nullptr);
  }
}

TEST(Loader, Refuses) {
  const Split split = some_images(4, {2, 2, 3});
  float images[64];
  int64_t labels[4];
  const std::vector<BatchSlot> slots = {{images, labels}};
  const auto message = [&](const LoaderOptions& options, const std::vector<BatchSlot>& memory) {
    return message_of([&] { Loader(split, options, memory); });
  };
  EXPECT_TRUE(contains(message({.batch_size = 0}, slots), "1 or more, got 0"));
  EXPECT_TRUE(contains(message({}, {}), "got none"));
  EXPECT_TRUE(contains(message({.drop_last = true, .even = true}, slots), "got both"));
  EXPECT_TRUE(contains(message({.normalisation = {{0.5}, {0.5}}}, slots), "3 channels, got 1"));
}

// The draws depend on the epoch and the image's index alone.
TEST(Loader, AugmentsFromItsStream) {
  const Split split = some_images(4, {6, 6, 1});
  LoaderOptions options;
  options.batch_size = 4;
  options.seed = 9;
  options.augmentation = {.pad = 3, .flip = true};
  const Epochs run = run_epochs(split, options, 1);
  const std::vector<float> table = normalisation_table({}, 1);
  for (int64_t epoch = 0; epoch < 2; ++epoch) {
    for (int64_t i = 0; i < 4; ++i) {
      base::Random random(9, base::Stream::augmentation, epoch, i);
      const CropFlip at = draw_crop_flip(options.augmentation, &random);
      std::vector<float> expected(36);
      write_normalised(split.image(i), split.size, at, table, expected.data());
      const float* found = &run.images[(4 * epoch + i) * 36];
      EXPECT_TRUE(std::equal(expected.begin(), expected.end(), found)) << epoch << ", " << i;
    }
  }
}

}  // namespace
}  // namespace qact::data
