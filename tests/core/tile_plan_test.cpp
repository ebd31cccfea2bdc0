// Which way a tensor is walked through, and that every value lies in one tile.
#include "qact/core/cpu/tile_plan.h"

#include <gtest/gtest.h>

namespace qact::core::cpu {
namespace {

View nchw(const Shape& s, DType dtype = DType::f32) {
  return {nullptr, dtype, s.channels * s.spatial, s.spatial, 1};
}
View channels_last(const Shape& s, DType dtype = DType::f32) {
  return {nullptr, dtype, s.channels * s.spatial, 1, s.channels};
}

TEST(TilePlan, PacksOnceWhatStaysInTheCache) {
  const Shape resnet[] = {{128, 64, 1024}, {128, 128, 256}, {128, 256, 64}, {128, 512, 16}};
  for (const Shape& shape : resnet) {
    for (const DType dtype : {DType::f32, DType::bf16}) {
      EXPECT_EQ(TilePlan(shape, nchw(shape, dtype), true).strategy, TileStrategy::packed);
      EXPECT_EQ(TilePlan(shape, channels_last(shape, dtype), true).strategy, TileStrategy::packed);
    }
  }
}

TEST(TilePlan, ReadsLongImagesWhereTheyLie) {
  const Shape large{512, 64, 1024}, once{128, 64, 1024};
  for (const DType dtype : {DType::f32, DType::bf16}) {
    EXPECT_EQ(TilePlan(large, nchw(large, dtype), true).strategy, TileStrategy::in_place);
    EXPECT_EQ(TilePlan(once, nchw(once, dtype), false).strategy, TileStrategy::in_place);
  }
}

TEST(TilePlan, PacksAgainWhatNoCacheHolds) {
  const Shape small_images{4096, 8, 128};
  EXPECT_EQ(TilePlan(small_images, nchw(small_images), true).strategy, TileStrategy::repacked);
  const Shape last{1024, 64, 3136};
  EXPECT_EQ(TilePlan(last, channels_last(last), true).strategy, TileStrategy::repacked);
  const Shape once{128, 256, 64};
  EXPECT_EQ(TilePlan(once, nchw(once), false).strategy, TileStrategy::repacked);
}

TEST(TilePlan, TakesMoreNeighboursOfShortContexts) {
  const Shape shape{128, 512, 16};
  EXPECT_EQ(TilePlan(shape, channels_last(shape), true).group, TilePlan::kWideGroup);
  EXPECT_EQ(TilePlan(shape, channels_last(shape), false).group, TilePlan::kGroup);
  const Shape few{128, 128, 16};
  EXPECT_EQ(TilePlan(few, channels_last(few), true).group, TilePlan::kGroup);
}

TEST(TilePlan, SharesALoneGroup) {
  const Shape lone{512, 1, 1024};
  EXPECT_EQ(TilePlan(lone, nchw(lone), true).blocks, TilePlan::kBlocks);
  const Shape two{512, 2, 1024};
  EXPECT_EQ(TilePlan(two, nchw(two), true).blocks, 1);
}

TEST(TilePlan, CoversEveryValueOnce) {
  for (const Shape& shape : {Shape{3, 5, 1},
                             {7, 33, 9},
                             {2, 1, 40000},
                             {300, 100, 49},
                             {5000, 3, 1},
                             {1, 2, 300},
                             {64, 20, 2000}}) {
    for (const bool last : {false, true}) {
      for (const bool reread : {false, true}) {
        const TilePlan plan(shape, last ? channels_last(shape) : nchw(shape), reread);
        int64_t channels = 0, next = 0;
        for (int64_t g = 0; g < plan.groups; ++g) {
          EXPECT_EQ(plan.first_channel(g), channels);
          channels += plan.channels_of(g);
        }
        EXPECT_EQ(channels, shape.channels);
        for (int64_t tile = 0; tile < plan.tiles; ++tile) {
          EXPECT_EQ(plan.start(tile), next);
          EXPECT_GT(plan.size(tile), 0);
          EXPECT_LE(plan.size(tile), plan.length);
          next += plan.size(tile);
        }
        EXPECT_EQ(next, shape.context_size());
      }
    }
  }
}

}  // namespace
}  // namespace qact::core::cpu
