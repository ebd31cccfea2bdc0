#include "qact/train/model_file.h"

#include <nlohmann/json.hpp>

#include "qact/safetensors/torch/tensors.h"

namespace qact::train {
namespace {

using Json = nlohmann::ordered_json;
// safetensors' metadata are strings by name: the card is one of them.
constexpr const char* kCard = "qact.model";

// Calls visit(name, field) for each field of the card.
template <class Card, class Visit>
void visit_card(Card& c, Visit visit) {
  visit("model", c.model);
  visit("activation", c.options.activation);
  visit("placement", c.options.placement);
  visit("early_stages", c.options.early_stages);
  visit("norm", c.options.norm);
  visit("classes", c.options.classes);
  visit("channels", c.options.channels);
  visit("image_size", c.options.image_size);
  visit("mean", c.normalisation.mean);
  visit("std", c.normalisation.std);
  visit("data", c.data);
  visit("data_hash", c.data_hash);
  visit("loss", c.loss);
  visit("class_names", c.class_names);
  visit("epoch", c.epoch);
}

ModelCard parse_card(const std::string& text, const std::string& file) {
  ModelCard card;
  try {
    const Json json = Json::parse(text);
    visit_card(card, [&](const char* name, auto& field) { json.at(name).get_to(field); });
  } catch (const nlohmann::json::exception& error) {
    safetensors::fail(file, std::string("a description in ") + kCard, error.what());
  }
  return card;
}

// A network with such weights would name some class for any image, without a word.
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
                const ModelCard& card, const FittedClassifiers& classifiers) {
  Json json;
  visit_card(card, [&](const char* name, const auto& field) { json[name] = field; });
  safetensors::Tensors tensors = safetensors::state_dict(network);
  tensors.merge(classifier_tensors(classifiers));
  safetensors::write_tensors(path, tensors, {{kCard, json.dump()}});
}

Model load_model(const std::filesystem::path& path) {
  safetensors::TensorFile file = safetensors::read_tensors(path);
  const auto found = file.metadata.find(kCard);
  if (found == file.metadata.end()) {
    safetensors::fail(path.string(), std::string("metadata with ") + kCard, "none");
  }
  check_finite_tensors(file.tensors, path.string());
  Model model{parse_card(found->second, path.string()), nullptr,
              take_classifiers(&file.tensors, path.string())};
  model.network = models::make(model.card.model, model.card.options);
  safetensors::load_state_dict(*model.network, file.tensors, path.string());
  return model;
}

}  // namespace qact::train
