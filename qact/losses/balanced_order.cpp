#include "qact/losses/balanced_order.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <stdexcept>
#include <string>
namespace qact::losses {
namespace {

// Deals items in random order, `count` distinct ones at a time; shuffles again when fewer are
// left.
class Deck {
 public:
  explicit Deck(std::vector<int64_t> items) : items_(std::move(items)), next_(items_.size()) {}

  std::span<const int64_t> deal(size_t count, base::Random& random) {
    if (next_ + count > items_.size()) shuffle(random);
    next_ += count;
    return std::span(items_).subspan(next_ - count, count);
  }

 private:
  void shuffle(base::Random& random) {
    for (size_t i = items_.size(); i > 1; --i) {
      std::swap(items_[i - 1], items_[static_cast<size_t>(random.uniform() * i)]);
    }
    next_ = 0;
  }

  std::vector<int64_t> items_;
  size_t next_;
};

[[noreturn]] void fail(const std::string& expected, size_t got) {
  throw std::invalid_argument("[balanced_order] expected " + expected + ", got " +
                              std::to_string(got));
}

std::vector<Deck> decks_by_class(std::span<const int64_t> labels, int64_t least) {
  std::map<int64_t, std::vector<int64_t>> members;
  for (size_t i = 0; i < labels.size(); ++i) {
    members[labels[i]].push_back(static_cast<int64_t>(i));
  }
  std::vector<Deck> decks;
  for (auto& [label, indices] : members) {
    if (indices.size() < static_cast<size_t>(least)) {
      fail("at least " + std::to_string(least) + " samples of class " + std::to_string(label),
           indices.size());
    }
    decks.emplace_back(std::move(indices));
  }
  return decks;
}

}  // namespace

std::vector<int64_t> balanced_order(std::span<const int64_t> labels, int64_t classes_per_batch,
                                    int64_t samples_per_class, base::Random random) {
  if (classes_per_batch < 1 || samples_per_class < 1) {
    throw std::invalid_argument("[balanced_order] expected at least 1 class and 1 sample, got " +
                                std::to_string(classes_per_batch) + " and " +
                                std::to_string(samples_per_class));
  }
  std::vector<Deck> samples = decks_by_class(labels, samples_per_class);
  if (samples.size() < static_cast<size_t>(classes_per_batch)) {
    fail("at least " + std::to_string(classes_per_batch) + " classes", samples.size());
  }

  std::vector<int64_t> positions(samples.size());
  std::iota(positions.begin(), positions.end(), 0);
  Deck classes(std::move(positions));
  const size_t batch = static_cast<size_t>(classes_per_batch * samples_per_class);
  const size_t batches = std::max<size_t>(1, labels.size() / batch);
  std::vector<int64_t> order;
  order.reserve(batches * batch);
  for (size_t b = 0; b < batches; ++b) {
    for (const int64_t c : classes.deal(classes_per_batch, random)) {
      const auto dealt = samples[c].deal(samples_per_class, random);
      order.insert(order.end(), dealt.begin(), dealt.end());
    }
  }
  return order;
}

}  // namespace qact::losses
