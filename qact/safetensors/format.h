// The safetensors format: named tensors after a JSON header, with no code to execute.
//
//   u64 little-endian   length of the header
//   header              {"name": {"dtype", "shape", "data_offsets": [begin, end]}, ...} and
//                       "__metadata__", a map of strings; spaces may follow
//   data                the tensors' bytes, without gaps or overlaps
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "qact/base/bytes.h"

namespace qact::safetensors {

using Metadata = std::map<std::string, std::string>;

// A longer header is refused before it is read.
inline constexpr uint64_t kMaxHeaderBytes = 100'000'000;
inline constexpr uint64_t kLengthBytes = sizeof(uint64_t);
inline constexpr const char* kMetadataName = "__metadata__";

enum class Dtype { f64, f32, f16, bf16, i64, i32, i16, i8, u8, boolean };
struct DtypeEntry {
  const char* name;  // in the header
  int64_t bytes;     // of one element
};
// In the order of Dtype.
inline constexpr DtypeEntry kDtypes[] = {{"F64", 8}, {"F32", 4}, {"F16", 2}, {"BF16", 2},
                                         {"I64", 8}, {"I32", 4}, {"I16", 2}, {"I8", 1},
                                         {"U8", 1},  {"BOOL", 1}};
inline const char* name_of(Dtype dtype) { return kDtypes[static_cast<int>(dtype)].name; }
inline int64_t item_bytes(Dtype dtype) { return kDtypes[static_cast<int>(dtype)].bytes; }

// A contiguous tensor whose bytes are owned elsewhere.
struct TensorView {
  Dtype dtype;
  std::vector<int64_t> shape;
  base::Bytes bytes;
};

struct Contents {
  std::map<std::string, TensorView> tensors;
  Metadata metadata;
};

// Throws std::runtime_error: "[safetensors] WHERE: expected X, got Y".
[[noreturn]] void fail(std::string_view where, std::string_view expected, std::string_view got);

// The bytes of a tensor; -1 where a size is negative or the product overflows.
int64_t byte_count(Dtype dtype, const std::vector<int64_t>& shape);

}  // namespace qact::safetensors
