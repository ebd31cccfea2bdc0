#include "qact/train/checksum.h"

#include <zlib.h>

namespace qact::train {

std::string checksum(const safetensors::Tensors& tensors, const std::string& text) {
  uLong sum = crc32(0, nullptr, 0);
  const auto add = [&](const void* bytes, size_t count) {
    sum = crc32_z(sum, static_cast<const Bytef*>(bytes), count);
  };
  add(text.data(), text.size());
  for (const auto& [name, tensor] : tensors) {
    add(name.data(), name.size());
    add(tensor.const_data_ptr(), tensor.nbytes());
  }
  return std::to_string(sum);
}

void check_checksum(const safetensors::TensorFile& file, const std::string& text,
                    const std::string& source) {
  const std::string& expected = file.metadata.at(kChecksum);
  if (const std::string got = checksum(file.tensors, text); got != expected) {
    safetensors::fail(source, "the checksum " + expected + " (the file is damaged)", got);
  }
}

}  // namespace qact::train
