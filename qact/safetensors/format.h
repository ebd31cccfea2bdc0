// The safetensors format: named tensors behind a header of JSON, and nothing to execute.
//
//   u64 little-endian   length of the header
//   header              {"name": {"dtype", "shape", "data_offsets": [begin, end]}, ...} and
//                       "__metadata__", strings by name; spaces may follow
//   data                the tensors' bytes, without gaps or overlaps
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace qact::safetensors {

using Bytes = std::span<const uint8_t>;
using Metadata = std::map<std::string, std::string>;

// A longer header is refused before it is read.
inline constexpr uint64_t kMostHeaderBytes = 100'000'000;
inline constexpr uint64_t kLengthBytes = sizeof(uint64_t);
inline constexpr const char* kMetadataName = "__metadata__";

enum class Type { f64, f32, f16, bf16, i64, i32, i16, i8, u8, boolean };
struct TypeEntry {
  const char* name;  // in the header
  int64_t bytes;     // of one element
};
// In the order of Type.
inline constexpr TypeEntry kTypes[] = {{"F64", 8}, {"F32", 4}, {"F16", 2}, {"BF16", 2},
                                       {"I64", 8}, {"I32", 4}, {"I16", 2}, {"I8", 1},
                                       {"U8", 1},  {"BOOL", 1}};
inline const char* name_of(Type type) { return kTypes[static_cast<int>(type)].name; }
inline int64_t bytes_of(Type type) { return kTypes[static_cast<int>(type)].bytes; }

// A tensor in bytes that are kept elsewhere, in C order.
struct View {
  Type type;
  std::vector<int64_t> shape;
  Bytes bytes;
};

struct Contents {
  std::map<std::string, View> tensors;
  Metadata metadata;
};

// The tensors of a whole file, as views into it. Throws std::runtime_error for all that the
// format forbids; `file` is the name for the message.
Contents parse(Bytes bytes, std::string_view file);

// The same bytes for the same contents: names sorted in the header; the data of wider types
// first, then by name, from a multiple of 8 on, so that every tensor is aligned to its type
// though the format allows no gaps.
std::vector<uint8_t> encode(const Contents& contents);

// Throws the runtime_error of this folder: "[safetensors] WHERE: expected X, got Y".
[[noreturn]] void fail(std::string_view where, std::string_view expected, std::string_view got);

// bytes_of(type) times the sizes; -1 where a size is negative or the product overflows.
int64_t byte_count(Type type, const std::vector<int64_t>& shape);

}  // namespace qact::safetensors
