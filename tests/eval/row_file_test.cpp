#include "qact/eval/row_file.h"

#include <gtest/gtest.h>

#include "tests/base/message.h"
#include "tests/base/scratch_folder.h"

namespace qact::eval {
namespace {

TEST(RowFile, HasOneWriter) {
  const ScratchFolder scratch;
  const RowFile file(scratch.path / "results.jsonl");
  expect_in("only writer", message_of([&] { RowFile(scratch.path / "results.jsonl"); }));
}

}  // namespace
}  // namespace qact::eval
