#include "qact/report/base64.h"

#include <gtest/gtest.h>

namespace qact::report {
namespace {

TEST(Base64, OfEveryLength) {
  const auto text = [](std::string_view s) {
    return base64({reinterpret_cast<const uint8_t*>(s.data()), s.size()});
  };
  EXPECT_EQ(text(""), "");
  EXPECT_EQ(text("f"), "Zg==");
  EXPECT_EQ(text("fo"), "Zm8=");
  EXPECT_EQ(text("foo"), "Zm9v");
  EXPECT_EQ(text("\xff\xfe\xfd"), "//79");
}

}  // namespace
}  // namespace qact::report
