#include "qact/run/recorded.h"

#include <ATen/cuda/CUDAGraph.h>

namespace qact::run {

struct Recorded::Graph {
  at::cuda::CUDAGraph graph;
};

bool Recorded::available() { return true; }

Recorded::Recorded(const std::function<void()>& work, const Recorded* before)
    : graph_(std::make_unique<Graph>()) {
  // Autograd works on threads of its own, and loaders go on beside them: only what this thread
  // does could spoil the recording.
  const auto pool = before ? before->graph_->graph.pool() : at::cuda::graph_pool_handle();
  graph_->graph.capture_begin(pool, cudaStreamCaptureModeThreadLocal);
  work();
  graph_->graph.capture_end();
}

Recorded::~Recorded() = default;
Recorded::Recorded(Recorded&&) noexcept = default;

void Recorded::replay() { graph_->graph.replay(); }

}  // namespace qact::run
