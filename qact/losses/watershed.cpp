#include "qact/losses/watershed.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "qact/losses/distances.h"
#include "qact/losses/watershed_labels.h"

namespace qact::losses {
namespace {

// Labels as positions among the classes that the batch has.
struct PresentClasses {
  std::vector<int64_t> labels;
  int64_t count;
};

PresentClasses present_classes(const at::Tensor& labels) {
  const at::Tensor on_cpu = labels.cpu().contiguous();
  const int64_t* begin = on_cpu.const_data_ptr<int64_t>();
  std::vector<int64_t> mapped(begin, begin + on_cpu.numel());
  std::vector<int64_t> found = mapped;
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  for (int64_t& label : mapped) {
    label = std::lower_bound(found.begin(), found.end(), label) - found.begin();
  }
  return {std::move(mapped), static_cast<int64_t>(found.size())};
}

// (B, classes) on the CPU: the nearest correct sample of each class, -1 where there is none.
at::Tensor nearest_by_class(const at::Tensor& embedding, const PresentClasses& present,
                            int64_t seeds, base::Random& random) {
  const at::Tensor matrix = pairwise_distances(embedding).to(at::kFloat).cpu().contiguous();
  const Distances distances{matrix.const_data_ptr<float>(), matrix.size(0)};
  const auto flooded = flood(distances, present.labels, draw_seeds(present.labels, seeds, random));
  const auto nearest = nearest_correct(distances, present.labels, flooded, present.count);
  return at::tensor(nearest, at::kLong).view({matrix.size(0), present.count});
}

}  // namespace

at::Tensor watershed(const at::Tensor& embedding, const at::Tensor& labels, int64_t seeds,
                     base::Random& random) {
  const PresentClasses present = present_classes(labels);
  const at::Tensor nearest =
      nearest_by_class(embedding, present, seeds, random).to(embedding.device());
  const at::Tensor target = at::tensor(present.labels, at::kLong).to(embedding.device());

  const at::Tensor nearest_embedding = embedding.index_select(0, nearest.clamp_min(0).flatten())
                                           .view({-1, present.count, embedding.size(1)});
  const at::Tensor distance =
      ((embedding.unsqueeze(1) - nearest_embedding).square().sum(2) + 1e-12).sqrt();

  const at::Tensor absent = nearest < 0;
  const at::Tensor logits =
      (-distance).masked_fill(absent, -std::numeric_limits<double>::infinity());
  const at::Tensor own = target.unsqueeze(1);
  const at::Tensor skipped = absent.gather(1, own).squeeze(1);
  // A skipped row may be all -inf: give it finite logits before it is masked out.
  const at::Tensor rows = logits.masked_fill(skipped.unsqueeze(1), 0).log_softmax(1);
  const at::Tensor loss = -rows.gather(1, own).squeeze(1).masked_fill(skipped, 0);
  return loss.sum() / skipped.logical_not().sum().clamp_min(1);
}

}  // namespace qact::losses
