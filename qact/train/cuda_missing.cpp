// In a build without CUDA: there are no CUDA graphs.
#include <c10/util/Exception.h>

#include "qact/train/cuda_graph.h"

namespace qact::train {

struct CudaGraph::Graph {};

bool CudaGraph::available() { return false; }

CudaGraph::CudaGraph(const std::function<void()>&, const CudaGraph*) {
  TORCH_CHECK(false, "[cuda_graph] expected a build of qact with CUDA, got one without");
}

CudaGraph::~CudaGraph() = default;

void CudaGraph::replay() {}

}  // namespace qact::train
