#include "qact/train/validation.h"

#include <torch/torch.h>

#include "qact/metrics/retrieval.h"

namespace qact::train {

std::optional<Validation> validate(
    const std::function<models::NetworkOutput(const torch::Tensor& images)>& forward,
    const losses::Loss& loss, const TrainConfig& config, TrainingData& data,
    const std::function<bool()>& should_continue) {
  const torch::NoGradGuard no_grad;
  // Sums stay on the device, so that the host waits for none of them before the last batch.
  const auto number = torch::dtype(torch::kDouble).device(torch::Device(config.device));
  torch::Tensor loss_sum = torch::zeros({}, number), correct = torch::zeros({}, number);
  std::vector<torch::Tensor> embeddings, labels;
  PrefetchingLoader& loader = data.evaluation_loader(TrainingData::Subset::validation);
  for (int64_t i = 0; const std::optional<Batch> batch = loader.next(); ++i) {
    const models::NetworkOutput output = forward(batch->images);
    base::Random random(config.seed, base::Stream::validation_loss, i);
    const torch::Tensor value =
        loss.value({output.embedding, output.logits, batch->labels}, random);
    loss_sum += value.to(number) * batch->labels.size(0);
    if (loss.balanced) {
      embeddings.push_back(output.embedding.to(torch::kFloat));
      labels.push_back(batch->labels.clone());
    } else {
      correct += (output.logits.argmax(1) == batch->labels).sum();
    }
    if (!should_continue()) return std::nullopt;
  }
  const auto images = static_cast<double>(data.validation_images());
  const double accuracy =
      loss.balanced
          ? metrics::map_at_k(torch::cat(embeddings).cpu(), torch::cat(labels).cpu(), 1).map
          : correct.item<double>() / images;
  return Validation{accuracy, loss_sum.item<double>() / images};
}

}  // namespace qact::train
