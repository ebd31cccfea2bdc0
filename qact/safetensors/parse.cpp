#include "qact/safetensors/parse.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

namespace qact::safetensors {
namespace {

using base::Bytes;
using nlohmann::json;

std::string tensor_named(const std::string& name) { return "tensor '" + name + "'"; }

// The value, shortened for a message.
std::string shortened(const json& value) {
  std::string text = value.dump(-1, ' ', false, json::error_handler_t::replace);
  if (text.size() > 60) text.replace(57, std::string::npos, "...");
  return text;
}

// The header's text, once its length is known to lie inside the file.
std::string_view header_of(Bytes bytes, const std::string& file) {
  if (bytes.size() < kLengthBytes) {
    fail(file, "8 bytes of header length", std::to_string(bytes.size()) + " bytes");
  }
  uint64_t length = 0;
  for (int i = 7; i >= 0; --i) length = length << 8 | bytes[i];
  const uint64_t max_length = std::min(kMaxHeaderBytes, bytes.size() - kLengthBytes);
  if (length > max_length) {
    fail(file, "a header of at most " + std::to_string(max_length) + " bytes",
         std::to_string(length));
  }
  const char* text = reinterpret_cast<const char*>(bytes.data()) + kLengthBytes;
  return {text, static_cast<size_t>(length)};
}

// Rejects what a JSON parser accepts: duplicate names and unlimited nesting.
json parse_header(std::string_view text, const std::string& file) {
  if (text.empty() || text.front() != '{') {
    fail(file, "a header that begins with {", shortened(std::string(text.substr(0, 20))));
  }
  std::vector<std::set<std::string>> keys;
  const auto check = [&](int depth, json::parse_event_t event, json& value) {
    if (depth > 3) fail(file, "a header nested at most 3 deep", "more");
    if (event == json::parse_event_t::object_start) keys.emplace_back();
    if (event == json::parse_event_t::object_end) keys.pop_back();
    if (event == json::parse_event_t::key) {
      const std::string key = value.get<std::string>();
      if (!keys.back().insert(key).second) fail(file, "each name once", "'" + key + "' twice");
    }
    return true;
  };
  try {
    return json::parse(text, check);
  } catch (const json::exception& error) {
    fail(file, "a header of JSON", error.what());
  }
}

Metadata parse_metadata(const json& entries, const std::string& file) {
  Metadata metadata;
  if (!entries.is_object()) fail(file, "an object as __metadata__", shortened(entries));
  for (const auto& [key, value] : entries.items()) {
    if (!value.is_string()) fail(file, "a string as metadata '" + key + "'", shortened(value));
    metadata[key] = value.get<std::string>();
  }
  return metadata;
}

Dtype parse_dtype(const json& name, const std::string& where) {
  std::string known;
  for (size_t i = 0; i < std::size(kDtypes); ++i) {
    if (name == kDtypes[i].name) return static_cast<Dtype>(i);
    known += (i == 0 ? "" : ", ") + std::string(kDtypes[i].name);
  }
  fail(where, "a dtype out of " + known, shortened(name));
}

std::vector<int64_t> parse_sizes(const json& list, const char* what, const std::string& where) {
  const auto is_size = [](const json& value) {
    return value.is_number_unsigned() && value.get<uint64_t>() <= INT64_MAX;
  };
  if (!list.is_array() || !std::all_of(list.begin(), list.end(), is_size)) {
    fail(where, std::string("a list of whole numbers as ") + what, shortened(list));
  }
  return list.get<std::vector<int64_t>>();
}

TensorView parse_tensor(const json& entry, Bytes data, const std::string& where) {
  if (!entry.is_object() || entry.size() != 3 || !entry.contains("dtype") ||
      !entry.contains("shape") || !entry.contains("data_offsets")) {
    fail(where, "dtype, shape and data_offsets", shortened(entry));
  }
  TensorView view{
      parse_dtype(entry["dtype"], where), parse_sizes(entry["shape"], "shape", where), {}};
  const auto offsets = parse_sizes(entry["data_offsets"], "data_offsets", where);
  if (offsets.size() != 2 || offsets[0] > offsets[1] ||
      offsets[1] > static_cast<int64_t>(data.size())) {
    fail(where, "data_offsets [begin, end] within " + std::to_string(data.size()) + " bytes",
         shortened(entry["data_offsets"]));
  }
  const int64_t bytes = byte_count(view.dtype, view.shape);
  if (bytes != offsets[1] - offsets[0]) {
    fail(where,
         (bytes < 0 ? "a shape that fits in memory" : std::to_string(bytes) + " bytes") + " for " +
             name_of(view.dtype) + " of shape " + shortened(entry["shape"]),
         std::to_string(offsets[1] - offsets[0]) + " bytes");
  }
  view.bytes = data.subspan(offsets[0], bytes);
  // Reading any other byte as a bool is undefined behaviour.
  if (view.dtype == Dtype::boolean &&
      std::any_of(view.bytes.begin(), view.bytes.end(), [](uint8_t b) { return b > 1; })) {
    fail(where, "bytes 0 and 1 in a BOOL", "others");
  }
  return view;
}

// The tensors must cover the data without gaps and overlaps.
void check_cover(const Contents& contents, Bytes data, const std::string& file) {
  struct Range {
    const uint8_t* begin;
    const uint8_t* end;
    const std::string* name;
  };
  std::vector<Range> ranges;
  for (const auto& [name, view] : contents.tensors) {
    ranges.push_back({view.bytes.data(), view.bytes.data() + view.bytes.size(), &name});
  }
  std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
  });
  const uint8_t* end = data.data();
  for (const Range& range : ranges) {
    if (range.begin != end) {
      fail(file + ": " + tensor_named(*range.name),
           "its data at offset " + std::to_string(end - data.data()) + ", without gap or overlap",
           std::to_string(range.begin - data.data()));
    }
    end = range.end;
  }
  if (end != data.data() + data.size()) {
    fail(file, std::to_string(end - data.data()) + " bytes of data", std::to_string(data.size()));
  }
}

}  // namespace

Contents parse(Bytes bytes, std::string_view file_name) {
  const std::string file(file_name);
  const std::string_view text = header_of(bytes, file);
  const Bytes data = bytes.subspan(kLengthBytes + text.size());
  const json header = parse_header(text, file);
  Contents contents;
  for (const auto& [name, entry] : header.items()) {
    if (name == kMetadataName) {
      contents.metadata = parse_metadata(entry, file);
    } else {
      contents.tensors[name] = parse_tensor(entry, data, file + ": " + tensor_named(name));
    }
  }
  check_cover(contents, data, file);
  return contents;
}

}  // namespace qact::safetensors
