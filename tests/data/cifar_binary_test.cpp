#include "qact/data/cifar_binary.h"

#include <gtest/gtest.h>

#include "tests/data/test_files.h"

namespace qact::data {
namespace {

using namespace test;

TEST(CifarBinary, ConvertsToChannelsLast) {
  for (const int label_bytes : {1, 2}) {
    ScratchFolder folder;
    const Buffer planes[] = {pattern(3072, 1), pattern(3072, 2)};
    Buffer file;
    for (int i = 0; i < 2; ++i) {
      if (label_bytes == 2) file.push_back(200);  // the coarse class, unused
      file.push_back(static_cast<uint8_t>(7 + i));
      file = joined(file, planes[i]);
    }
    put(folder / "a.bin", file);
    const Split split = read_cifar({folder / "a.bin", folder / "a.bin"},
                                   {.label_bytes = label_bytes, .classes = 9});
    EXPECT_EQ(split.labels, (std::vector<int64_t>{7, 8, 7, 8}));
    for (int i = 0; i < 4; ++i) {
      for (int p = 0; p < 1024; ++p) {
        for (int c = 0; c < 3; ++c) {
          ASSERT_EQ(split.image(i)[3 * p + c], planes[i % 2][1024 * c + p]);
        }
      }
    }
    if (label_bytes == 1) {
      EXPECT_EQ(encode_cifar(split.slice(0, 2)), file);
    }
  }
}

TEST(CifarBinary, Refuses) {
  ScratchFolder folder;
  const Buffer record = joined({3}, pattern(3072));
  const std::pair<Buffer, const char*> cases[] = {
      {Buffer(record.begin(), record.end() - 1), "got 3072 bytes"},
      {joined(record, {1}), "got 3074 bytes"},
      {{}, "got 0 bytes"},
      {joined({10}, pattern(3072)), "got 10 at record 0"},
  };
  for (const auto& [bytes, reason] : cases) {
    put(folder / "bad.bin", bytes);
    const std::string message = message_of([&] { read_cifar({folder / "bad.bin"}, {}); });
    EXPECT_TRUE(contains(message, reason) && contains(message, "bad.bin")) << message;
  }
}

}  // namespace
}  // namespace qact::data
