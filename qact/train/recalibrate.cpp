#include "qact/train/recalibrate.h"

#include <torch/torch.h>

#include <optional>

#include "qact/nn/context_mode.h"
#include "qact/train/model_file.h"

namespace qact::train {

bool recalibrate(models::Network& network, PrefetchingLoader& loader,
                 const std::function<bool()>& should_continue) {
  const torch::NoGradGuard no_grad;
  nn::reset_contexts(network);
  nn::set_context_momentum(network, std::nullopt);
  network.train();
  while (const std::optional<Batch> batch = loader.next()) {
    network.forward(batch->images);
    if (!should_continue()) return false;
  }
  return true;
}

bool recalibrate_models(const RunFolder& folder, const TrainConfig& config, TrainingData& data,
                        const std::function<bool()>& should_continue) {
  std::optional<Model> last;
  for (const std::filesystem::path& path : {folder.model(), folder.best()}) {
    if (config.recalibrate == "off" || !std::filesystem::exists(path)) continue;
    Model model = load_model(path);
    if (!model.card.recalibrated) {
      // Where the last epoch is the best one, its weights have been recalibrated.
      if (last && last->card.epoch == model.card.epoch) {
        model.network = last->network;
      } else {
        model.network->to(torch::Device(config.device));
        if (config.channels_last) model.network->use_channels_last();
        if (!recalibrate(*model.network, data.lone_training_loader(), should_continue)) {
          return false;
        }
      }
      model.card.recalibrated = true;
      save_model(path, *model.network, model.card);
    }
    last = std::move(model);
  }
  return true;
}

}  // namespace qact::train
