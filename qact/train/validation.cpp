#include "qact/train/validation.h"

#include <torch/torch.h>

#include "qact/metrics/retrieval.h"

namespace qact::train {

losses::LossInput loss_input(const models::NetworkOutput& output, const torch::Tensor& labels,
                             const losses::Loss& loss, const dist::World& world) {
  if (!loss.balanced || world.alone()) return {output.embedding, output.logits, labels};
  return {dist::gather_rows_with_gradient(world, output.embedding),
          dist::gather_rows_with_gradient(world, output.logits), world.gather_rows(labels)};
}

std::optional<Validation> validate(
    const std::function<models::NetworkOutput(const torch::Tensor& images)>& forward,
    const losses::Loss& loss, const TrainConfig& config, TrainingData& data,
    const dist::World& world, const std::function<bool()>& should_continue) {
  const torch::NoGradGuard no_grad;
  // Sums stay on the device, so that the host waits for none of them before the last batch.
  const auto number = torch::dtype(torch::kDouble).device(torch::Device(config.device));
  torch::Tensor loss_sum = torch::zeros({}, number), correct = torch::zeros({}, number);
  std::vector<torch::Tensor> embeddings, labels;
  PrefetchingLoader& loader = data.evaluation_loader(TrainingData::Subset::validation);
  for (int64_t i = 0; const std::optional<Batch> batch = loader.next(); ++i) {
    base::Random random(config.seed, base::Stream::validation_loss, i);
    const losses::LossInput input = loss_input(forward(batch->images), batch->labels, loss, world);
    const int64_t count = input.labels.size(0);
    // All ranks have all images of a loss that compares them: the first one counts them.
    if (count > 0 && (!loss.balanced || world.is_first())) {
      loss_sum += loss.value(input, random).to(number) * count;
    }
    if (loss.balanced) {
      embeddings.push_back(input.embedding.to(torch::kFloat));
      labels.push_back(input.labels.clone());
    } else {
      correct += (input.logits.argmax(1) == input.labels).sum();
    }
    if (!should_continue()) return std::nullopt;
  }
  const std::vector<double> sums = world.sum({loss_sum.item<double>(), correct.item<double>()});
  const auto images = static_cast<double>(data.validation_images());
  const double accuracy =
      loss.balanced
          ? metrics::map_at_k(torch::cat(embeddings).cpu(), torch::cat(labels).cpu(), 1).map
          : sums[1] / images;
  return Validation{accuracy, sums[0] / images};
}

}  // namespace qact::train
