// The fused layer over a batch that is spread over several processes, called ranks: every channel's
// context is all of its values on all ranks.
//
// Core does not communicate. The passes are cut into rounds: each rank computes some numbers from
// its own images, the caller reduces them over all ranks, and the pass goes on from the sums. Which
// rounds there are follows from reduced numbers alone, so that all ranks make the same ones, those
// without any image, too.
//
// Forward, results do not depend, to the last bit, on how the images are spread: what is reduced
// are extremes, counts and sums of whole numbers, all exact.
//   summary   a channel's smallest and largest value, the sums of x and x^2 (exact_moments.h), and
//             the values of every rank. Up to kGatherLimit values in all, the contexts are gathered
//             next and that is all
//   bins      histograms over the bins planned from those
//   search    only where bins are too heavy: their levels (cpu/level_search.h), as often as needed
//   gather    only where channels cannot be binned: their contexts, which each rank then ranks
// Backward, one round of four sums a channel, whose order depends on the ranks.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "qact/core/quantile.h"

namespace qact::core {

// To be reduced in place over all ranks.
struct Reduction {
  enum class Kind { max_f64, sum_f64, sum_i64, sum_i32 };
  Kind kind;
  void* data;
  int64_t count;
};
// Reductions that do not wait for each other.
using Round = std::vector<Reduction>;

struct Rank {
  int64_t rank = 0, ranks = 1;
};

// Contexts this short are gathered: that takes no more bytes than a histogram. Levels are then
// those of layer_forward, to the last bit.
inline constexpr int64_t kGatherLimit = 1024;

//   while (!forward->done()) {
//     forward->count();
//     reduce(forward->round());
//     forward->next();
//   }
//   forward->write();
class WorldForward {
 public:
  virtual ~WorldForward() = default;
  // Whether no round is left.
  virtual bool done() const = 0;
  virtual Round round() = 0;
  // Fills the round with this rank's own numbers,
  virtual void count() = 0;
  // and goes on from the reduced ones. Throws std::invalid_argument where there are fewer than two
  // values per channel on all ranks, or 2^30 and more: on every rank alike.
  virtual void next() = 0;
  // Of each channel on all ranks, once the first round is reduced.
  virtual int64_t values() const = 0;
  // y, code, table, stats and context, which are those of all ranks' images.
  virtual void write() = 0;
};

// `call` has this rank's images, which may be none, and the scope of the whole batch. Codes and
// tables of all channels are kept, however short they are.
std::unique_ptr<WorldForward> world_forward(const LayerForward& call, const Rank& rank,
                                            const Execution& execution);

// The sums of every channel, to be reduced by addition together with the values per channel.
inline constexpr int kWorldSums = 4;
void world_backward_sums(const LayerBackward& call, double* sums, const Execution& execution);
// grad_x is the gradient of the sum of all ranks' losses. grad_affine is that of this rank's own
// loss: the sum over all ranks is the whole one. `own` are this rank's sums, `all` the reduced ones
// over `values` per channel.
void world_backward_write(const LayerBackward& call, double values, const double* own,
                          const double* all, const Execution& execution);

}  // namespace qact::core
