#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstring>

#include "qact/safetensors/encode.h"
#include "qact/safetensors/file.h"
#include "qact/safetensors/parse.h"
#include "tests/base/message.h"
#include "tests/base/scratch_folder.h"

namespace qact::safetensors {
namespace {

std::vector<uint8_t> file_of(const std::string& header, const std::string& data = "") {
  std::vector<uint8_t> bytes;
  for (int i = 0; i < 8; ++i) bytes.push_back(static_cast<uint8_t>(header.size() >> 8 * i));
  bytes.insert(bytes.end(), header.begin(), header.end());
  bytes.insert(bytes.end(), data.begin(), data.end());
  return bytes;
}

std::string refusal(const std::vector<uint8_t>& bytes) {
  return message_of([&] { parse(bytes, "w.safetensors"); });
}

base::Bytes bytes_of(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

TEST(Safetensors, ReadsWhatTheFormatAllows) {
  const auto bytes =
      file_of(R"({"b":{"dtype":"I16","shape":[2,1],"data_offsets":[1,5]},"__metadata__":{"k":"v"},)"
              R"("a":{"dtype":"BOOL","shape":[],"data_offsets":[0,1]},)"
              R"("none":{"dtype":"F32","shape":[3,0],"data_offsets":[1,1]}}   )",
              std::string("\1\2\0\3\0", 5));
  const Contents contents = parse(bytes, "w.safetensors");
  ASSERT_EQ(contents.tensors.size(), 3u);
  EXPECT_EQ(contents.metadata, (Metadata{{"k", "v"}}));
  EXPECT_EQ(contents.tensors.at("b").dtype, Dtype::i16);
  EXPECT_EQ(contents.tensors.at("b").shape, (std::vector<int64_t>{2, 1}));
  EXPECT_EQ(contents.tensors.at("b").bytes[2], 3);
  EXPECT_TRUE(contents.tensors.at("a").shape.empty());
  EXPECT_EQ(contents.tensors.at("none").bytes.size(), 0u);
  EXPECT_TRUE(parse(file_of("{}"), "w.safetensors").tensors.empty());
}

TEST(Safetensors, RefusesTheRestAndSaysWhy) {
  struct Case {
    std::vector<uint8_t> bytes;
    const char* message;
  };
  const auto one = [](const std::string& entry, const std::string& data = "0123") {
    return file_of("{\"a\":" + entry + "}", data);
  };
  const auto two = [](const std::string& a, const std::string& b) {
    const std::string head = R"({"dtype":"U8","shape":[2],"data_offsets":)";
    return file_of("{\"a\":" + head + a + "},\"b\":" + head + b + "}}", "0123");
  };
  std::vector<uint8_t> long_header = file_of("{}");
  long_header[7] = 0xff;
  const Case cases[] = {
      {{}, "w.safetensors: expected 8 bytes of header length, got 0 bytes"},
      {long_header, "a header of at most 2 bytes, got 18374686479671623682"},
      {file_of(""), "begins with {, got \"\""},
      {file_of(" {}"), "begins with {, got \" {}\""},
      {file_of("{\"a\":"), "a header of JSON"},
      {file_of("{} {}"), "a header of JSON"},
      {file_of("{\"a\xff\":1}"), "a header of JSON"},
      {file_of(R"({"a":1,"a":2})"), "each name once, got 'a' twice"},
      {file_of(R"({"a":[[[[[1]]]]]})"), "nested at most 3 deep"},
      {file_of(R"({"__metadata__":[]})"), "an object as __metadata__, got []"},
      {file_of(R"({"__metadata__":{"k":1}})"), "a string as metadata 'k', got 1"},
      {one("1"), "tensor 'a': expected dtype, shape and data_offsets, got 1"},
      {one(R"({"dtype":"F32","shape":[1]})"), "expected dtype, shape and data_offsets"},
      {one(R"({"dtype":"F4","shape":[1],"data_offsets":[0,4]})"), "U8, BOOL, got \"F4\""},
      {one(R"({"dtype":"F32","shape":[-1],"data_offsets":[0,4]})"), "as shape, got [-1]"},
      {one(R"({"dtype":"F32","shape":[1.0],"data_offsets":[0,4]})"), "as shape, got [1.0]"},
      {one(R"({"dtype":"F32","shape":[18446744073709551615],"data_offsets":[0,4]})"), "as shape"},
      {one(R"({"dtype":"F32","shape":1,"data_offsets":[0,4]})"), "as shape, got 1"},
      {one(R"({"dtype":"F32","shape":[1],"data_offsets":[0]})"), "within 4 bytes, got [0]"},
      {one(R"({"dtype":"F32","shape":[1],"data_offsets":[4,0]})"), "within 4 bytes, got [4,0]"},
      {one(R"({"dtype":"F32","shape":[1],"data_offsets":[1,5]})"), "within 4 bytes, got [1,5]"},
      {one(R"({"dtype":"F32","shape":[2],"data_offsets":[0,4]})"),
       "tensor 'a': expected 8 bytes for F32 of shape [2], got 4 bytes"},
      {one(R"({"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,4]})"),
       "expected a shape that fits in memory"},
      {one(R"({"dtype":"BOOL","shape":[4],"data_offsets":[0,4]})"), "bytes 0 and 1 in a BOOL"},
      {one(R"({"dtype":"U8","shape":[3],"data_offsets":[0,3]})"), "3 bytes of data, got 4"},
      {one(R"({"dtype":"U8","shape":[3],"data_offsets":[1,4]})"), "at offset 0"},
      {two("[0,2]", "[1,3]"), "tensor 'b': expected its data at offset 2, without gap or overlap"},
      {two("[0,2]", "[0,2]"), "tensor 'b': expected its data at offset 2, without gap or overlap"},
  };
  for (const Case& test : cases) {
    const std::string message = refusal(test.bytes);
    EXPECT_NE(message.find(test.message), std::string::npos) << message << "\n" << test.message;
    EXPECT_EQ(message.find("[safetensors] w.safetensors: "), 0u) << message;
  }
}

TEST(Safetensors, CutsOfAFileAreAllRefused) {
  const std::string data = "01234567";
  const auto whole = encode({{{"a", {Dtype::f32, {2}, bytes_of(data)}}}, {}});
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_NE(refusal({whole.begin(), whole.begin() + size}), kNothingThrown) << size;
  }
  EXPECT_EQ(refusal(whole), kNothingThrown);
}

TEST(Safetensors, WritesSortedAndAligned) {
  const std::string data = "0123456789abcdef";
  const Contents contents{{{"u", {Dtype::u8, {3}, bytes_of(data).first(3)}},
                           {"z", {Dtype::f64, {1}, bytes_of(data).first(8)}},
                           {"h", {Dtype::bf16, {1, 2}, bytes_of(data).first(4)}},
                           {"a", {Dtype::i64, {2}, bytes_of(data)}}},
                          {{"made", "by \"qact\""}}};
  const auto bytes = encode(contents);
  EXPECT_EQ(bytes, encode(contents));
  const std::string text(bytes.begin(), bytes.end());
  const size_t data_at = text.size() - 31;
  EXPECT_EQ(data_at % 8, 0u);
  EXPECT_EQ(text.substr(data_at), data + "01234567" + "0123" + "012");
  EXPECT_LT(text.find("\"a\""), text.find("\"h\""));

  const Contents again = parse(bytes, "w.safetensors");
  EXPECT_EQ(again.metadata, contents.metadata);
  ASSERT_EQ(again.tensors.size(), contents.tensors.size());
  for (const auto& [name, view] : contents.tensors) {
    const TensorView& read = again.tensors.at(name);
    EXPECT_EQ(read.dtype, view.dtype);
    EXPECT_EQ(read.shape, view.shape);
    EXPECT_TRUE(
        std::equal(read.bytes.begin(), read.bytes.end(), view.bytes.begin(), view.bytes.end()));
  }
}

TEST(Safetensors, RefusesToWriteWhatCouldNotBeRead) {
  const std::string data = "01234567";
  EXPECT_THROW(encode({{{"a", {Dtype::f32, {3}, bytes_of(data)}}}, {}}), std::runtime_error);
  EXPECT_THROW(encode({{{"__metadata__", {Dtype::f32, {2}, bytes_of(data)}}}, {}}),
               std::runtime_error);
  EXPECT_THROW(encode({{{"\xff", {Dtype::f32, {2}, bytes_of(data)}}}, {}}), std::runtime_error);
}

// Opened, it would wait for a writer that may never come.
TEST(Safetensors, AreNotReadFromAFifo) {
  const ScratchFolder scratch;
  const auto fifo = scratch.path / "w.safetensors";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_EQ(message_of([&] { File{fifo}; }),
            "[file] expected a regular file, got a FIFO: " + fifo.string());
}

TEST(Safetensors, KeepsTheOldFileWhenANewOneFails) {
  const ScratchFolder scratch;
  const auto path = scratch.path / "w.safetensors";
  const std::string data = "01234567";
  write(path, {{{"a", {Dtype::u8, {8}, bytes_of(data)}}}, {}});
  EXPECT_THROW(write(path, {{{"a", {Dtype::u8, {9}, bytes_of(data)}}}, {}}), std::runtime_error);
  EXPECT_EQ(File(path).contents.tensors.at("a").bytes[7], '7');
  EXPECT_THROW(File(scratch.path / "missing"), std::runtime_error);
  EXPECT_THROW(File{scratch.path}, std::runtime_error);
}

}  // namespace
}  // namespace qact::safetensors
