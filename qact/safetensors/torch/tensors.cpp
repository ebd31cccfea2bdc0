#include "qact/safetensors/torch/tensors.h"

#include <bit>
#include <cstring>

#include "qact/ops/checks.h"
#include "qact/safetensors/file.h"

namespace qact::safetensors {
namespace {

static_assert(std::endian::native == std::endian::little, "the files are little-endian");

// In the order of Dtype.
constexpr at::ScalarType kTorchDtypes[] = {at::kDouble, at::kFloat, at::kHalf,  at::kBFloat16,
                                           at::kLong,   at::kInt,   at::kShort, at::kChar,
                                           at::kByte,   at::kBool};
static_assert(std::size(kTorchDtypes) == std::size(kDtypes));

Dtype dtype_of(const torch::Tensor& tensor, const std::string& name) {
  for (size_t i = 0; i < std::size(kTorchDtypes); ++i) {
    if (tensor.scalar_type() == kTorchDtypes[i]) return static_cast<Dtype>(i);
  }
  fail("tensor '" + name + "'", "a dtype that the format has", ops::describe(tensor));
}

}  // namespace

TensorFile read_tensors(const std::filesystem::path& path) {
  File file(path);
  TensorFile result{{}, std::move(file.contents.metadata)};
  for (const auto& [name, view] : file.contents.tensors) {
    torch::Tensor tensor = torch::empty(view.shape, kTorchDtypes[static_cast<int>(view.dtype)]);
    if (!view.bytes.empty()) {
      std::memcpy(tensor.mutable_data_ptr(), view.bytes.data(), view.bytes.size());
    }
    result.tensors.emplace(name, std::move(tensor));
  }
  return result;
}

void write_tensors(const std::filesystem::path& path, const Tensors& tensors,
                   const Metadata& metadata) {
  std::vector<torch::Tensor> copies;  // the views point into them
  Contents contents{{}, metadata};
  for (const auto& [name, tensor] : tensors) {
    copies.push_back(tensor.detach().cpu().contiguous());
    const torch::Tensor& plain = copies.back();
    contents.tensors[name] = {
        dtype_of(plain, name),
        plain.sizes().vec(),
        {static_cast<const uint8_t*>(plain.const_data_ptr()), static_cast<size_t>(plain.nbytes())}};
  }
  write(path, contents);
}

Tensors state_dict(const torch::nn::Module& module) {
  Tensors state;
  for (const auto& item : module.named_parameters()) state[item.key()] = item.value();
  for (const auto& item : module.named_buffers()) state[item.key()] = item.value();
  return state;
}

void load_state_dict(torch::nn::Module& module, const Tensors& state, const std::string& source) {
  const Tensors target = state_dict(module);
  for (const auto& [name, tensor] : target) {
    const std::string where = source + ": tensor '" + name + "'";
    const auto found = state.find(name);
    if (found == state.end()) fail(where, ops::describe(tensor), "none");
    if (found->second.sizes() != tensor.sizes() ||
        found->second.scalar_type() != tensor.scalar_type()) {
      fail(where, ops::describe(tensor), ops::describe(found->second));
    }
  }
  for (const auto& [name, tensor] : state) {
    if (!target.contains(name)) {
      fail(source, "only tensors that the module has", "'" + name + "' too");
    }
  }
  torch::NoGradGuard no_grad;
  for (const auto& [name, tensor] : target) torch::Tensor(tensor).copy_(state.at(name));
}

}  // namespace qact::safetensors
