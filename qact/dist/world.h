// The processes that compute together, and what they tell each other. One process alone is a world
// of one: every operation is then free.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <string>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <utility>
#include <vector>

namespace qact::dist {

// Every operation is collective: all ranks call it, in the same order. It throws where another rank
// has ended.
class World {
 public:
  World() = default;  // one process
  // No group is one process. `restarted`: torchrun has started the same processes before.
  explicit World(c10::intrusive_ptr<c10d::ProcessGroup> group, bool restarted = false);

  int rank() const { return rank_; }
  int size() const { return size_; }
  bool alone() const { return size_ == 1; }
  bool is_first() const { return rank_ == 0; }
  bool restarted() const { return restarted_; }  // the same on all ranks

  // In place. Returns at once: what it returns waits for the sum; null where alone.
  c10::intrusive_ptr<c10d::Work> start_sum(at::Tensor tensor) const;
  std::vector<double> sum(std::vector<double> values) const;
  bool any(bool value) const;
  // The first rank's values, in place.
  void broadcast(const std::vector<at::Tensor>& tensors) const;
  // The rows of all ranks, those of rank 0 first; ranks may have different numbers of rows, or
  // none.
  at::Tensor gather_rows(const at::Tensor& rows) const;
  std::vector<std::string> gather_texts(const std::string& text) const;
  void barrier() const;
  // barrier() that returns at once: asked later, whether all ranks have come. Throws where one
  // ended.
  c10::intrusive_ptr<c10d::Work> start_barrier() const;

  // A message from any rank to any other, not collective: what was put under a name is taken once.
  void put(const std::string& name, const std::string& text) const;
  std::optional<std::string> take(const std::string& name) const;

 private:
  c10::intrusive_ptr<c10d::ProcessGroup> group_;
  int rank_ = 0, size_ = 1;
  bool restarted_ = false;
};

// The rows of all ranks, differentiable: every rank computes the same function of them, and its
// gradient goes to the rows that the rank gave.
at::Tensor gather_rows_with_gradient(const World& world, const at::Tensor& rows);

// Throws on all ranks where `text` differs between them: `what` names it.
void expect_same(const World& world, const std::string& what, const std::string& text);
// The same for several, the names of which are the same on all ranks: one exchange where all agree.
void expect_same(const World& world, const std::vector<std::pair<std::string, std::string>>& named);

}  // namespace qact::dist
