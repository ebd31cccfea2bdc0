#include "qact/train/cuda_graph.h"

#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDACachingAllocator.h>

namespace qact::train {

struct CudaGraph::Graph {
  at::cuda::CUDAGraph graph;
};

bool CudaGraph::available() { return true; }

CudaGraph::CudaGraph(const std::function<void()>& work, const CudaGraph* before)
    : graph_(std::make_unique<Graph>()) {
  at::cuda::CUDAGraph& graph = graph_->graph;
  // A recording's memory is its own: what steps before it left in torch's cache is given back.
  if (!before) c10::cuda::CUDACachingAllocator::emptyCache();
  const auto pool = before ? before->graph_->graph.pool() : at::cuda::graph_pool_handle();
  // Autograd works on threads of its own, and loaders go on beside them: only what this thread
  // does could spoil the recording.
  graph.capture_begin(pool, cudaStreamCaptureModeThreadLocal);
  try {
    work();
  } catch (...) {
    try {
      graph.capture_end();  // the stream is usable again
    } catch (const std::exception&) {
    }
    throw;
  }
  graph.capture_end();
}

CudaGraph::~CudaGraph() = default;

void CudaGraph::replay() { graph_->graph.replay(); }

}  // namespace qact::train
