#include "qact/train/training_state.h"

#include <torch/torch.h>

#include "qact/safetensors/torch/tensors.h"
#include "qact/train/checksum.h"

namespace qact::train {
namespace {

using safetensors::Tensors;

constexpr const char* kProgress = "qact.progress";
const std::string kModel = "model/";
const std::string kOptimiser = "optimiser/";

Tensors with_prefix(const Tensors& tensors, const std::string& prefix) {
  Tensors result;
  for (const auto& [name, tensor] : tensors) {
    if (name.starts_with(prefix)) result[name.substr(prefix.size())] = tensor;
  }
  return result;
}

std::string metadata(const safetensors::TensorFile& file, const char* name,
                     const std::filesystem::path& path) {
  const auto found = file.metadata.find(name);
  if (found == file.metadata.end()) {
    safetensors::fail(path.string(), std::string("metadata with ") + name, "none");
  }
  return found->second;
}

}  // namespace

void save_training_state(const std::filesystem::path& path, const models::Network& network,
                         const Optimiser& optimiser, const nlohmann::ordered_json& progress) {
  Tensors all;
  const auto add = [&](const std::string& prefix, const Tensors& tensors) {
    for (const auto& [name, tensor] : tensors) {
      all[prefix + name] = tensor.detach().cpu().contiguous();
    }
  };
  add(kModel, safetensors::state_dict(network));
  add(kOptimiser, optimiser.state_dict());
  const std::string text = progress.dump();
  safetensors::write_tensors(path, all, {{kProgress, text}, {kChecksum, checksum(all, text)}});
}

nlohmann::ordered_json load_training_state(
    const std::filesystem::path& path, models::Network& network, Optimiser& optimiser,
    const std::function<void(const nlohmann::ordered_json& progress)>& check) {
  const safetensors::TensorFile file = safetensors::read_tensors(path);
  const std::string text = metadata(file, kProgress, path);
  metadata(file, kChecksum, path);
  check_checksum(file, text, path.string());
  const auto progress = nlohmann::ordered_json::parse(text);
  check(progress);
  safetensors::load_state_dict(network, with_prefix(file.tensors, kModel), path.string());
  optimiser.load_state_dict(with_prefix(file.tensors, kOptimiser), path.string());
  return progress;
}

}  // namespace qact::train
