#include "qact/safetensors/encode.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace qact::safetensors {

using nlohmann::json;

std::vector<uint8_t> encode(const Contents& contents) {
  std::vector<std::pair<const std::string*, const TensorView*>> order;
  for (const auto& [name, view] : contents.tensors) {
    if (name == kMetadataName) {
      fail("tensor '" + name + "'", "another name", "the one for metadata");
    }
    if (byte_count(view.dtype, view.shape) != static_cast<int64_t>(view.bytes.size())) {
      fail("tensor '" + name + "'", std::to_string(byte_count(view.dtype, view.shape)) + " bytes",
           std::to_string(view.bytes.size()));
    }
    order.emplace_back(&name, &view);
  }
  std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
    return item_bytes(a.second->dtype) > item_bytes(b.second->dtype);
  });

  json header = json::object();
  if (!contents.metadata.empty()) header[kMetadataName] = contents.metadata;
  uint64_t offset = 0;
  for (const auto& [name, view] : order) {
    const uint64_t end = offset + view->bytes.size();
    header[*name] = {
        {"dtype", name_of(view->dtype)}, {"shape", view->shape}, {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text;
  try {
    text = header.dump();
  } catch (const json::exception& error) {
    fail("header", "names and metadata in UTF-8", error.what());
  }
  text.resize((text.size() + 7) / 8 * 8, ' ');

  std::vector<uint8_t> file;
  file.reserve(kLengthBytes + text.size() + offset);
  for (uint64_t i = 0; i < kLengthBytes; ++i) {
    file.push_back(static_cast<uint8_t>(text.size() >> 8 * i));
  }
  file.insert(file.end(), text.begin(), text.end());
  for (const auto& [name, view] : order) {
    file.insert(file.end(), view->bytes.begin(), view->bytes.end());
  }
  return file;
}

}  // namespace qact::safetensors
