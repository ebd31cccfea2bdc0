#include "qact/eval/image_stream.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "qact/base/dirichlet.h"
#include "qact/base/shuffle.h"

namespace qact::eval {
namespace {

constexpr double kConcentration = 0.1;

std::vector<int64_t> counted(int64_t count) {
  std::vector<int64_t> all(count);
  std::iota(all.begin(), all.end(), 0);
  return all;
}

// The images of one class that fall into one slot of time.
using Chunk = std::vector<int64_t>;
struct Slot {
  std::vector<Chunk> chunks;
  size_t images = 0;
};

// Deals the images to those slots that have fewer than `most`.
void deal(const std::vector<int64_t>& images, double most, std::vector<Slot>& slots,
          base::Random& random) {
  std::vector<double> shares = base::dirichlet(kConcentration, slots.size(), random);
  double total = 0;
  for (size_t s = 0; s < slots.size(); ++s) {
    if (static_cast<double>(slots[s].images) >= most) shares[s] = 0;
    total += shares[s];
  }
  double sum = 0;
  auto next = images.begin();
  for (size_t s = 0; s < slots.size(); ++s) {
    sum += shares[s];
    // Rounding must not leave an image over.
    const auto end = s + 1 == slots.size()
                         ? images.end()
                         : images.begin() + static_cast<std::ptrdiff_t>(
                                                sum / total * static_cast<double>(images.size()));
    if (end > next) slots[s].chunks.emplace_back(next, end);
    slots[s].images += static_cast<size_t>(end - next);
    next = end;
  }
}

// Images in the order in which they arrive: one corruption's are in memory at a time, beside these.
class Arranged {
 public:
  Arranged(image::Size size, std::vector<int64_t> positions)
      : size_(size),
        positions_(std::move(positions)),
        pixels_(positions_.size() * size.values()),
        labels_(positions_.size()) {}

  void add(const std::string& corruption, const data::Split& images) {
    const auto first = positions_.begin() + added_;
    parts_.push_back({corruption, {first, first + images.count()}});
    added_ += images.count();
    classes_ = images.classes;
    for (int64_t i = 0; i < images.count(); ++i) {
      std::copy_n(images.image(i), size_.values(), &pixels_[first[i] * size_.values()]);
      labels_[first[i]] = images.labels[i];
    }
  }

  ImageStream finish() {
    return {data::make_split(size_, classes_, std::move(pixels_), std::move(labels_)), parts_};
  }

 private:
  const image::Size size_;
  const std::vector<int64_t> positions_;
  std::vector<uint8_t> pixels_;
  std::vector<int64_t> labels_;
  std::vector<ImageStream::Part> parts_;
  int64_t added_ = 0;
  int classes_ = 0;
};

std::vector<int64_t> inverse(const std::vector<int64_t>& order) {
  std::vector<int64_t> positions(order.size());
  for (size_t i = 0; i < order.size(); ++i) positions[order[i]] = static_cast<int64_t>(i);
  return positions;
}

}  // namespace

std::vector<std::string> stream_names() { return {"single", "mixed", "correlated"}; }

std::vector<int64_t> mixed_order(int64_t corruptions, int64_t images, uint64_t seed) {
  std::vector<int64_t> order = counted(corruptions * images);
  base::Random random(seed, base::Stream::mixed_order);
  base::shuffle(order, random);
  return order;
}

std::vector<int64_t> correlated_order(const std::vector<int64_t>& labels, uint64_t seed) {
  std::map<int64_t, std::vector<int64_t>> classes;
  for (size_t i = 0; i < labels.size(); ++i) classes[labels[i]].push_back(static_cast<int64_t>(i));
  base::Random random(seed, base::Stream::label_order);
  std::vector<Slot> slots(classes.size());
  const double most = static_cast<double>(labels.size()) / static_cast<double>(slots.size());
  for (auto& [label, images] : classes) {
    base::shuffle(images, random);
    deal(images, most, slots, random);
  }
  std::vector<int64_t> order;
  for (Slot& slot : slots) {
    base::shuffle(slot.chunks, random);
    for (const Chunk& chunk : slot.chunks) order.insert(order.end(), chunk.begin(), chunk.end());
  }
  return order;
}

std::vector<int64_t> ImageStream::labels_of(const Part& part) const {
  std::vector<int64_t> labels;
  for (const int64_t position : part.positions) labels.push_back(images.labels[position]);
  return labels;
}

ImageStream open_stream(const TestImages& images, const std::string& stream,
                        const std::vector<std::string>& corruptions, int severity, uint64_t seed) {
  if (stream == "mixed") {
    const auto count = static_cast<int64_t>(corruptions.size());
    Arranged mixed(images.size(), inverse(mixed_order(count, images.count(), seed)));
    for (const std::string& each : corruptions) mixed.add(each, images.read(each, severity));
    return mixed.finish();
  }
  const std::string& corruption = corruptions.front();
  const data::Split split = images.read(corruption, severity);
  if (stream == "single") return {split, {{corruption, counted(split.count())}}};
  Arranged correlated(images.size(), inverse(correlated_order(split.labels, seed)));
  correlated.add(corruption, split);
  return correlated.finish();
}

}  // namespace qact::eval
