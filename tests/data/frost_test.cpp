#include "qact/data/frost.h"

#include <gtest/gtest.h>

#include "tests/data/test_files.h"

namespace qact::data {
namespace {

using namespace test;

TEST(Frost, SaysHowToGetTheOfficialTextures) {
  ScratchFolder folder;
  EXPECT_TRUE(contains(message_of([&] { official_frost_folder(folder.path); }),
                       "got nothing there: `qact data fetch frost` gets them"));
  for (const char* name : {"frost1.png", "frost2.png", "frost3.png", "frost4.jpg", "frost5.jpg"}) {
    put(folder / ("frost/" + std::string(name)), name);
  }
  EXPECT_TRUE(contains(message_of([&] { official_frost_folder(folder.path); }), "got others"));
  const std::string identity = frost_identity(folder / "frost");
  EXPECT_TRUE(identity.starts_with("sha256:")) << identity;
  put(folder / "frost/frost3.png", "another");
  EXPECT_NE(frost_identity(folder / "frost"), identity);
  // An archive with other textures is not taken for them.
  EXPECT_NE(message_of([&] { frost_request().expect_complete(folder / "frost"); }), kNothingThrown);
}

}  // namespace
}  // namespace qact::data
