// Headers of .npy files: what numpy writes, and what must be refused.
#include "qact/image/npy.h"

#include <gtest/gtest.h>

#include "tests/base/message.h"

namespace qact::image {
namespace {

std::vector<uint8_t> file_with(const std::string& header, int64_t data_bytes, int version = 1) {
  std::string text = "\x93NUMPY";
  text += static_cast<char>(version);
  text += '\0';
  for (int i = 0; i < (version == 1 ? 2 : 4); ++i) {
    text += static_cast<char>(header.size() >> (8 * i));
  }
  text += header;
  std::vector<uint8_t> out(text.begin(), text.end());
  out.resize(out.size() + data_bytes);
  return out;
}

NpyHeader parse(const std::vector<uint8_t>& file) {
  return parse_npy_header(file, static_cast<int64_t>(file.size()));
}

TEST(Npy, ReadsBackWhatItWrites) {
  const std::vector<std::vector<int64_t>> shapes = {{}, {0}, {7}, {2, 3}, {4, 5, 6, 3}};
  for (const auto& shape : shapes) {
    for (const std::string dtype : {"|u1", "<i8", "<f4"}) {
      std::vector<uint8_t> file = make_npy_header(dtype, shape);
      EXPECT_EQ(file.size() % 64, 0u);
      int64_t count = 1;
      for (const int64_t size : shape) count *= size;
      file.resize(file.size() + count * (dtype[2] - '0'));
      const NpyHeader header = parse(file);
      EXPECT_EQ(header.dtype, dtype);
      EXPECT_EQ(header.shape, shape);
      EXPECT_EQ(header.count(), count);
    }
  }
}

TEST(Npy, ReadsEveryVersion) {
  for (const int version : {1, 2, 3}) {
    const auto file =
        file_with("{'descr': '<u2', 'fortran_order': False, 'shape': (3, 2), }  \n", 12, version);
    const NpyHeader header = parse(file);
    EXPECT_EQ(header.count(), 6);
    EXPECT_EQ(header.item_bytes(), 2);
    EXPECT_EQ(header.data_offset, static_cast<int64_t>(file.size()) - 12);
  }
}

TEST(Npy, RefusesWithAReason) {
  const std::string tail = "'fortran_order': False, 'shape': (2,), }";
  const std::pair<std::vector<uint8_t>, const char*> cases[] = {
      {file_with("{'descr': '|O', " + tail, 16), "pickled"},
      {file_with("{'descr': '>i4', " + tail, 8), "big-endian"},
      {file_with("{'descr': [('a', '<i4')], " + tail, 8), "records"},
      {file_with("{'descr': '<U4', " + tail, 8), "dtype <U4"},
      {file_with("{'descr': '<i4', 'fortran_order': True, 'shape': (2, 1), }", 8), "Fortran"},
      {file_with("{'descr': '<i4', 'fortran_order': Maybe, 'shape': (2,), }", 8), "True or False"},
      {file_with("{'descr': '<i4', " + tail, 7), "got 7 bytes"},
      {file_with("{'descr': '<i4', " + tail, 9), "got 9 bytes"},
      {file_with("{'descr': '<i4', 'fortran_order': False, 'shape': (-2,), }", 8), "a size"},
      {file_with("{'descr': '<i4', 'fortran_order': False, 'shape': "
                 "(4611686018427387904, 4611686018427387904), }",
                 8),
       "got 8 bytes"},
      {file_with("{'descr': '<i4', 'fortran_order': False, 'shape': "
                 "(99999999999999999999,), }",
                 8),
       "a size"},
      {file_with("{'descr': '<i4', 'fortran_order': False, }", 8), "without one"},
      {file_with("{'descr': '<i4', 'descr': '<i4', }", 8), "once each"},
      {file_with("{'descr", 8), "closing quote"},
      {file_with("[1, 2]", 8), "expected '{'"},
      {file_with("{'descr': '<i4', " + tail, 8, 4), "version 1 to 3, got 4"},
      {{'P', 'K', 3, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0}, "NUMPY"},
      {{}, "0 bytes"},
  };
  for (const auto& [file, reason] : cases) {
    const std::string message = message_of([&file = file] { parse(file); });
    EXPECT_NE(message.find(reason), message.npos) << "expected " << reason << ", got " << message;
  }
  std::vector<uint8_t> long_header = file_with("{}", 4, 2);
  long_header[11] = 0xff;
  EXPECT_NE(message_of([&] { parse(long_header); }).find("expected a header of"),
            std::string::npos);
}

}  // namespace
}  // namespace qact::image
