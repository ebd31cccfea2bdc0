#include "qact/losses/balanced_order.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <stdexcept>
#include <string>

#include "qact/base/shuffle.h"

namespace qact::losses {
namespace {

// Draws `count` distinct items at a time without replacement. When fewer are left, all of them are
// shuffled again.
class Sampler {
 public:
  explicit Sampler(std::vector<int64_t> items) : items_(std::move(items)), next_(items_.size()) {}

  std::span<const int64_t> draw(size_t count, base::Random& random) {
    if (next_ + count > items_.size()) {
      base::shuffle(items_, random);
      next_ = 0;
    }
    next_ += count;
    return std::span(items_).subspan(next_ - count, count);
  }

 private:
  std::vector<int64_t> items_;
  size_t next_;
};

[[noreturn]] void fail(const std::string& expected, size_t got) {
  throw std::invalid_argument("[balanced_order] expected " + expected + ", got " +
                              std::to_string(got));
}

std::vector<Sampler> samplers_by_class(std::span<const int64_t> labels, int64_t least) {
  std::map<int64_t, std::vector<int64_t>> members;
  for (size_t i = 0; i < labels.size(); ++i) {
    members[labels[i]].push_back(static_cast<int64_t>(i));
  }
  std::vector<Sampler> samplers;
  for (auto& [label, indices] : members) {
    if (indices.size() < static_cast<size_t>(least)) {
      fail("at least " + std::to_string(least) + " samples of class " + std::to_string(label),
           indices.size());
    }
    samplers.emplace_back(std::move(indices));
  }
  return samplers;
}

}  // namespace

std::vector<int64_t> balanced_order(std::span<const int64_t> labels, int64_t classes_per_batch,
                                    int64_t samples_per_class, base::Random random) {
  if (classes_per_batch < 1 || samples_per_class < 1) {
    throw std::invalid_argument("[balanced_order] expected at least 1 class and 1 sample, got " +
                                std::to_string(classes_per_batch) + " and " +
                                std::to_string(samples_per_class));
  }
  std::vector<Sampler> samples = samplers_by_class(labels, samples_per_class);
  if (samples.size() < static_cast<size_t>(classes_per_batch)) {
    fail("at least " + std::to_string(classes_per_batch) + " classes", samples.size());
  }

  std::vector<int64_t> positions(samples.size());
  std::iota(positions.begin(), positions.end(), 0);
  Sampler classes(std::move(positions));
  const size_t batch = static_cast<size_t>(classes_per_batch * samples_per_class);
  const size_t batches = std::max<size_t>(1, labels.size() / batch);
  std::vector<int64_t> order(batches * batch);
  for (size_t b = 0; b < batches; ++b) {
    int64_t* next = order.data() + b * batch;
    for (const int64_t c : classes.draw(classes_per_batch, random)) {
      const auto drawn = samples[c].draw(samples_per_class, random);
      for (int64_t i = 0; i < samples_per_class; ++i) next[i * classes_per_batch] = drawn[i];
      ++next;
    }
  }
  return order;
}

}  // namespace qact::losses
