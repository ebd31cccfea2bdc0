#include "qact/losses/loss.h"

#include <ATen/ATen.h>

#include "qact/losses/triplet.h"
#include "qact/losses/watershed.h"
#include "qact/ops/checks.h"

namespace qact::losses {
namespace {

struct Entry {
  const char* name;
  bool balanced;
  at::Tensor (*value)(const LossInput& input, const LossOptions& options, base::Random& random);
};

const Entry kLosses[] = {
    {"cross-entropy", false,
     [](const LossInput& input, const LossOptions&, base::Random&) {
       return at::cross_entropy_loss(input.logits, input.labels);
     }},
    {"triplet", true,
     [](const LossInput& input, const LossOptions& options, base::Random& random) {
       return random_triplet(input.embedding, input.labels, options.margin, random);
     }},
    {"triplet-hard", true,
     [](const LossInput& input, const LossOptions& options, base::Random&) {
       return hard_triplet(input.embedding, input.labels, options.margin);
     }},
    {"watershed", true,
     [](const LossInput& input, const LossOptions& options, base::Random& random) {
       return watershed(input.embedding, input.labels, options.seeds, random);
     }},
};

void check(const LossInput& input, const char* name) {
  const at::Tensor& e = input.embedding;
  const at::Tensor& z = input.logits;
  const at::Tensor& y = input.labels;
  TORCH_CHECK(e.dim() == 2 && z.dim() == 2 && y.dim() == 1 && y.scalar_type() == at::kLong &&
                  y.size(0) > 0 && e.size(0) == y.size(0) && z.size(0) == y.size(0),
              "[", name, "] expected embeddings (B,F), logits (B,K) and int64 labels (B), got ",
              ops::describe(e), ", ", ops::describe(z), " and ", ops::describe(y));
}

at::Tensor at_least_float(const at::Tensor& x) {
  return x.scalar_type() == at::kDouble ? x : x.to(at::kFloat);
}

}  // namespace

Loss make(const std::string& name, const LossOptions& options) {
  TORCH_CHECK(options.margin >= 0, "[losses] expected a margin >= 0, got ", options.margin);
  TORCH_CHECK(options.seeds >= 1, "[losses] expected at least 1 seed, got ", options.seeds);
  std::string known;
  for (const Entry& entry : kLosses) {
    if (name == entry.name) {
      return {[entry, options](const LossInput& input, base::Random& random) {
                check(input, entry.name);
                return entry.value(
                    {at_least_float(input.embedding), at_least_float(input.logits), input.labels},
                    options, random);
              },
              entry.balanced};
    }
    known += (known.empty() ? "" : ", ") + std::string(entry.name);
  }
  TORCH_CHECK(false, "[losses] expected one of ", known, ", got '", name, "'");
}

std::vector<std::string> names() {
  std::vector<std::string> result;
  for (const Entry& entry : kLosses) result.emplace_back(entry.name);
  return result;
}

}  // namespace qact::losses
