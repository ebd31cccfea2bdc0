// Downloads from a server that misbehaves.
#include "qact/data/download.h"

#include <gtest/gtest.h>

#include "qact/data/digest.h"
#include "tests/data/http_server.h"
#include "tests/data/test_files.h"

namespace qact::data {
namespace {

using namespace test;

const std::string kBody = text_of(pattern(300000));

std::string md5_of(const std::string& text) {
  ScratchFolder folder;
  put(folder / "x", text);
  return "md5:" + digest_of(folder / "x", "md5");
}

TEST(Download, ResumesWhatWasBegun) {
  HttpServer server({{"a", {kBody}}});
  ScratchFolder folder;
  put(folder / "a.part", kBody.substr(0, 100000));
  int64_t last = 0, total = 0;
  download({server.url("a"), md5_of(kBody)}, folder / "a", [&](int64_t done, int64_t all) {
    last = done;
    total = all;
    return true;
  });
  EXPECT_EQ(text_of(folder / "a"), kBody);
  EXPECT_EQ(server.bytes_sent(), 200000);
  EXPECT_EQ(last, 300000);
  EXPECT_EQ(total, 300000);
  EXPECT_FALSE(fs::exists(folder / "a.part"));
}

TEST(Download, StartsAgainWhereRangesAreIgnored) {
  HttpServer server({{"a", {.body = kBody, .ranges = false}}});
  ScratchFolder folder;
  put(folder / "a.part", "something else");
  download({server.url("a"), md5_of(kBody)}, folder / "a");
  EXPECT_EQ(text_of(folder / "a"), kBody);
}

TEST(Download, TakesACompletePartialFile) {
  HttpServer server({{"a", {kBody}}});
  ScratchFolder folder;
  put(folder / "a.part", kBody);
  download({server.url("a"), md5_of(kBody)}, folder / "a");
  EXPECT_EQ(server.bytes_sent(), 0);
  EXPECT_EQ(text_of(folder / "a"), kBody);
}

TEST(Download, ResumesAfterABrokenConnection) {
  HttpServer server({{"a", {.body = kBody, .cut_after = 120000}}});
  ScratchFolder folder;
  download({server.url("a"), md5_of(kBody)}, folder / "a");
  EXPECT_EQ(text_of(folder / "a"), kBody);
  EXPECT_EQ(server.requests(), 3);
}

TEST(Download, KeepsThePartialFileWhenTheConnectionBreaksTooOften) {
  HttpServer server({{"a", {.body = kBody, .cut_after = 1000}}});
  ScratchFolder folder;
  const std::string message = message_of([&] { download({server.url("a"), ""}, folder / "a"); });
  EXPECT_TRUE(contains(message, "got 3000 bytes in 3 attempts")) << message;
  EXPECT_FALSE(fs::exists(folder / "a"));
  EXPECT_EQ(fs::file_size(folder / "a.part"), 3000u);
}

TEST(Download, RefusesWhatIsWrong) {
  HttpServer server({{"sum", {kBody}},
                     {"page", {"\n <!DOCTYPE html><html><body>Log in</body></html>"}},
                     {"busy", {"wait", 503}}});
  const std::tuple<std::string, std::string, const char*> cases[] = {
      {"sum", "md5:0123", "expected md5:0123, got md5:"},
      {"page", "", "got a web page"},
      {"busy", "", "status 503"},
      {"missing", "", "status 404"},
  };
  for (const auto& [name, digest, reason] : cases) {
    ScratchFolder folder;
    const std::string message = message_of([&, &name = name, &digest = digest] {
      download({server.url(name), digest}, folder / "x");
    });
    EXPECT_TRUE(contains(message, reason)) << message;
    EXPECT_TRUE(fs::is_empty(folder.path)) << name;
  }
  ScratchFolder folder;
  EXPECT_NE(message_of([&] { download({"http://127.0.0.1:1/x", ""}, folder / "x"); }),
            kNothingThrown);
  EXPECT_NE(message_of([&] { download({"file:///etc/hostname", ""}, folder / "x"); }),
            kNothingThrown);
}

TEST(Download, StopsWhenTold) {
  HttpServer server({{"a", {kBody}}});
  ScratchFolder folder;
  const std::string message = message_of([&] {
    download({server.url("a"), ""}, folder / "a", [](int64_t, int64_t) { return false; });
  });
  EXPECT_TRUE(contains(message, "stopped")) << message;
  EXPECT_FALSE(fs::exists(folder / "a"));
}

}  // namespace
}  // namespace qact::data
