#include "qact/eval/row_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/base/message.h"
#include "tests/base/scratch_folder.h"

namespace qact::eval {
namespace {

TEST(RowFile, HasOneWriter) {
  const ScratchFolder scratch;
  const RowFile file(scratch.path / "results.jsonl");
  expect_in("only writer", message_of([&] { RowFile(scratch.path / "results.jsonl"); }));
}

TEST(RowFile, IsNoFifo) {
  const ScratchFolder scratch;
  const std::filesystem::path fifo = scratch.path / "results.jsonl";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  for (const auto access : {RowFile::Access::write, RowFile::Access::read}) {
    EXPECT_EQ(message_of([&] { RowFile(fifo, access); }),
              "[file] expected a regular file, got a FIFO: " + fifo.string());
  }
}

}  // namespace
}  // namespace qact::eval
