#include "qact/results/row.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <limits>

#include "qact/base/atomic_file.h"
#include "tests/base/message.h"
#include "tests/base/scratch_folder.h"

namespace qact::results {
namespace {

std::string refusal(const std::string& text) {
  return message_of([&] { parse_rows(text, "results.jsonl"); });
}

TEST(Rows, RoundTrip) {
  const ScratchFolder scratch;
  const Rows rows = {{{"kind", "score"},
                      {"accuracy", 0.1 + 0.2},
                      {"seed", std::numeric_limits<int64_t>::max()},
                      {"name", "a \"quoted\"\nname, é"},
                      {"list", {1, 2.5, nullptr, false}}},
                     {{"kind", "empty"}}};
  write_rows(scratch.path / "results.jsonl", rows);
  EXPECT_EQ(read_rows(scratch.path / "results.jsonl"), rows);
}

TEST(Rows, KeepTheOrderOfKeys) {
  EXPECT_EQ(format_rows({{{"kind", "x"}, {"b", 1}, {"a", 2}}}),
            "{\"kind\":\"x\",\"b\":1,\"a\":2}\n");
}

TEST(Rows, WhatIsNoNumberBecomesNull) {
  EXPECT_EQ(format_rows({{{"kind", "x"}, {"v", std::numeric_limits<double>::quiet_NaN()}}}),
            "{\"kind\":\"x\",\"v\":null}\n");
}

TEST(Rows, SkipBlankLinesAndNeedNoLastNewline) {
  EXPECT_EQ(parse_rows("", "f").size(), 0u);
  EXPECT_EQ(parse_rows("\n \r\n{\"kind\":\"a\"}\n\n{\"kind\":\"b\"}", "f").size(), 2u);
}

// Opened, it would wait for a writer that may never come.
TEST(Rows, AreNotReadFromAFifo) {
  const ScratchFolder scratch;
  const std::filesystem::path fifo = scratch.path / "results.jsonl";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_EQ(message_of([&] { read_rows(fifo); }),
            "[file] expected a regular file, got a FIFO: " + fifo.string());
}

TEST(Rows, NameADamagedLine) {
  const std::string good = "{\"kind\":\"a\"}\n";
  const std::vector<std::string> damaged = {"{\"kind\":\"a\"",
                                            "[1, 2]",
                                            "{\"type\":\"a\"}",
                                            "{\"kind\":1}",
                                            "null",
                                            "\xff\xfe",
                                            "{\"kind\":\"a\"} {\"kind\":\"a\"}"};
  for (const std::string& line : damaged) {
    const std::string message = refusal(good + "\n" + good + line + "\n" + good);
    EXPECT_EQ(message.substr(0, 40), "[results] results.jsonl:4: expected a JS") << message;
    EXPECT_NE(message.find(line), std::string::npos) << message;
  }
  EXPECT_LT(refusal("{" + std::string(10000, 'x')).size(), 200u);
}

TEST(Rows, NameAMissingFile) {
  expect_in("/nowhere/results.jsonl", message_of([] { read_rows("/nowhere/results.jsonl"); }));
}

TEST(Rows, SoFarSkipsAnIncompleteLastLine) {
  const ScratchFolder scratch;
  const auto file = scratch.path / "results.jsonl";
  const auto read = [&](const std::string& text, size_t& incomplete) {
    base::write_atomically(file, text);
    return read_rows_so_far(file, incomplete).size();
  };
  size_t incomplete = 7;
  EXPECT_EQ(read("{\"kind\":\"a\"}\n{\"kind\":\"b\"}", incomplete), 2u);
  EXPECT_EQ(incomplete, 0u);
  EXPECT_EQ(read("{\"kind\":\"a\"}\n{\"kind\":", incomplete), 1u);
  EXPECT_EQ(incomplete, 2u);
  EXPECT_EQ(read("", incomplete), 0u);
  EXPECT_EQ(incomplete, 0u);
  EXPECT_THROW(read("{\"kind\":\n{\"kind\":\"a\"}\n", incomplete), std::runtime_error);
  EXPECT_THROW(read_rows_so_far(scratch.path, incomplete), std::runtime_error);  // a folder
}

TEST(Rows, NameAFieldThatDoesNotFit) {
  const Row row = {{"kind", "scores"}, {"accuracy", "high"}};
  EXPECT_EQ(field<std::string>(row, "accuracy"), "high");
  for (const char* key : {"accuracy", "missing"}) {
    const std::string message = message_of([&] { field<double>(row, key); });
    EXPECT_EQ(message.find("[results] expected a row with a fitting \"" + std::string(key) +
                           "\", got {\"kind\""),
              0u)
        << message;
  }
}

TEST(Rows, AreNotWrittenWithoutAKind) {
  const ScratchFolder scratch;
  EXPECT_THROW(write_rows(scratch.path / "rows", {{{"kind", "a"}}, {{"b", 1}}}),
               std::invalid_argument);
  EXPECT_FALSE(std::filesystem::exists(scratch.path / "rows"));
}

TEST(Rows, OfKind) {
  const Rows rows = {{{"kind", "a"}, {"i", 0}}, {{"kind", "b"}}, {{"kind", "a"}, {"i", 1}}};
  EXPECT_EQ(of_kind(rows, "a"), (Rows{rows[0], rows[2]}));
  EXPECT_TRUE(of_kind(rows, "c").empty());
}

}  // namespace
}  // namespace qact::results
