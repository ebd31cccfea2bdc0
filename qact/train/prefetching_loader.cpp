#include "qact/train/prefetching_loader.h"

#include <torch/torch.h>

namespace qact::train {

PrefetchingLoader::PrefetchingLoader(const data::Split& split, data::LoaderOptions options,
                                     torch::Device device)
    : size_(split.size),
      views_(options.augmentation.views()),
      device_(device),
      copied_(device),
      loader_(split, options, slots(split, options)) {}

std::vector<data::BatchSlot> PrefetchingLoader::slots(const data::Split& split,
                                                      const data::LoaderOptions& options) {
  std::vector<data::BatchSlot> result;
  for (int i = 0; i < options.workers + 1; ++i) {
    const auto memory = torch::TensorOptions().pinned_memory(device_.is_cuda());
    const int64_t images = data::largest_share(options);
    memory_.push_back(torch::empty({views_ * images * split.size.values()}, memory));
    memory_.push_back(torch::empty({images}, memory.dtype(torch::kLong)));
    result.push_back({memory_[2 * i].data_ptr<float>(), memory_[2 * i + 1].data_ptr<int64_t>()});
  }
  return result;
}

void PrefetchingLoader::start(int64_t epoch, std::vector<int64_t> order, int64_t first) {
  copied_.synchronize();
  loader_.start(epoch, std::move(order), first);
}

std::optional<Batch> PrefetchingLoader::next() {
  copied_.synchronize();  // the workers may now overwrite the batch before
  const data::BatchSlot* batch = loader_.next();
  if (!batch) return std::nullopt;
  const auto images = torch::from_blob(
      batch->images, {views_, batch->count, size_.channels, size_.height, size_.width},
      torch::kFloat);
  const auto labels = torch::from_blob(batch->labels, {batch->count}, torch::kLong);
  const std::vector<torch::Tensor> views = images.to(device_, /*non_blocking=*/true).unbind(0);
  const Batch on_device{views[0],
                        labels.to(device_, /*non_blocking=*/true),
                        {views.begin() + 1, views.end()},
                        batch->total};
  copied_.record();
  return on_device;
}

}  // namespace qact::train
