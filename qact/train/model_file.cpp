#include "qact/train/model_file.h"

#include "qact/safetensors/torch/tensors.h"
#include "qact/train/checksum.h"
#include "qact/train/json_fields.h"

namespace qact::train {
namespace {

// The metadata of a safetensors file are named strings: the card is one of them.
constexpr const char* kCard = "qact.model";

ModelCard parse_card(const std::string& text, const std::string& file) {
  ModelCard card;
  try {
    fields_from_json(nlohmann::ordered_json::parse(text), &card);
  } catch (const nlohmann::json::exception& error) {
    safetensors::fail(file, std::string("a description in ") + kCard, error.what());
  }
  return card;
}

// A network with such weights would predict some class for any image, without a warning.
void check_finite_tensors(const safetensors::Tensors& tensors, const std::string& file) {
  for (const auto& [name, tensor] : tensors) {
    if (!tensor.is_floating_point()) continue;
    const int64_t wrong = tensor.isfinite().logical_not().sum().item<int64_t>();
    if (wrong == 0) continue;
    safetensors::fail(file + ": tensor '" + name + "'", "finite numbers",
                      std::to_string(wrong) + " of " + std::to_string(tensor.numel()) +
                          " that are nan or infinite");
  }
}

}  // namespace

void save_model(const std::filesystem::path& path, const models::Network& network,
                const ModelCard& card, const ClassifiersByContext& classifiers) {
  safetensors::Tensors tensors = safetensors::state_dict(network);
  tensors.merge(classifier_tensors(classifiers));
  for (auto& [name, tensor] : tensors) tensor = tensor.detach().cpu().contiguous();
  const std::string text = fields_to_json(card).dump();
  safetensors::write_tensors(path, tensors, {{kCard, text}, {kChecksum, checksum(tensors, text)}});
}

Model load_model(const std::filesystem::path& path) {
  safetensors::TensorFile file = safetensors::read_tensors(path);
  const auto found = file.metadata.find(kCard);
  if (found == file.metadata.end()) {
    safetensors::fail(path.string(), std::string("metadata with ") + kCard, "none");
  }
  check_finite_tensors(file.tensors, path.string());
  // Models of earlier snapshots, and those that were put together elsewhere, have none.
  if (file.metadata.contains(kChecksum)) check_checksum(file, found->second, path.string());
  Model model{parse_card(found->second, path.string()), nullptr,
              extract_classifiers(&file.tensors, path.string())};
  model.network = models::make(model.card.model, model.card.options);
  safetensors::load_state_dict(*model.network, file.tensors, path.string());
  return model;
}

}  // namespace qact::train
