#include "qact/train/cuda_graph.h"

#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDACachingAllocator.h>

namespace qact::train {

struct CudaGraph::Graph {
  at::cuda::CUDAGraph graph;
};

bool CudaGraph::available() { return true; }

CudaGraph::CudaGraph(const std::function<void()>& work, const CudaGraph* previous)
    : graph_(std::make_unique<Graph>()) {
  at::cuda::CUDAGraph& graph = graph_->graph;
  // The graph gets a memory pool of its own: free what earlier steps left in torch's cache.
  if (!previous) c10::cuda::CUDACachingAllocator::emptyCache();
  const auto pool = previous ? previous->graph_->graph.pool() : at::cuda::graph_pool_handle();
  // Thread-local: autograd and the loaders go on in other threads, and only this thread's calls
  // could invalidate the capture.
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
