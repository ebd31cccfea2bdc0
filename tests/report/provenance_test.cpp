#include <gtest/gtest.h>

#include "qact/report/sections.h"

namespace qact::report {
namespace {

TEST(Provenance, NamesTheFrostTextures) {
  const results::Rows rows = {{{"kind", "scores"}, {"frost", "official"}},
                              {{"kind", "scores"}, {"frost", nullptr}},
                              {{"kind", "scores"}, {"frost", "official"}},
                              {{"kind", "scores"}, {"frost", "procedural"}}};
  const std::vector<Block> blocks = provenance(rows);
  ASSERT_EQ(blocks.size(), 2u);
  EXPECT_EQ(std::get<Text>(blocks[0]).text, "Frost was made with these textures: official.");
  EXPECT_EQ(std::get<Text>(blocks[1]).text, "Frost was made with these textures: procedural.");
}

}  // namespace
}  // namespace qact::report
