#include "qact/data/package.h"

#include <gtest/gtest.h>

#include <chrono>
#include <fstream>

#include "tests/data/test_files.h"

namespace qact::data {
namespace {

using namespace test;

TEST(Package, QuotesTheClientsErrors) {
  ScratchFolder folder;
  run_program({"true"}, folder.path);
  const std::string message = message_of(
      [&] { run_program({"sh", "-c", "echo first; echo no such package; exit 3"}, folder.path); });
  EXPECT_TRUE(contains(message, "sh failed: no such package")) << message;
  const std::string disk = "printf 'npm warn old\nnpm error code ENOSPC\nnpm error write\n";
  EXPECT_TRUE(contains(message_of([&] {
                         run_program(
                             {"sh", "-c", disk + "npm error A complete log of this run'; false"},
                             folder.path);
                       }),
                       "sh failed: npm error code ENOSPC; npm error write"));
  EXPECT_TRUE(contains(message_of([&] { run_program({"no-such-program"}, folder.path); }),
                       "cannot run no-such-program"));
}

// A child of the client, too: npm starts some.
TEST(Package, EndsTheClientWhenTold) {
  ScratchFolder folder;
  const auto start = std::chrono::steady_clock::now();
  const std::string message = message_of([&] {
    run_program({"sh", "-c", "echo $$ > it; sleep 60 & echo $! > child; wait"}, folder.path,
                [&](int64_t, int64_t) {  // until both run
                  return !fs::exists(folder / "child") || text_of(folder / "child").empty();
                });
  });
  EXPECT_TRUE(contains(message, "stopped: sh")) << message;
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
  for (const char* name : {"it", "child"}) {
    const pid_t id = std::stoi(text_of(folder / name));
    // What has ended may wait for init to collect it.
    std::ifstream about("/proc/" + std::to_string(id) + "/stat");
    std::string number, program, state = "gone";
    about >> number >> program >> state;
    EXPECT_TRUE(state == "gone" || state == "Z" || state == "X") << name << ": " << state;
  }
}

}  // namespace
}  // namespace qact::data
