// A CUDA graph: work on a GPU that is captured once and replayed often. The host then launches all
// of it in one call, where small kernels would each wait for a launch of their own.
#pragma once

#include <functional>
#include <memory>

namespace qact::train {

class CudaGraph {
 public:
  // Whether this build has CUDA.
  static bool available();

  // Captures what `work` launches on the current stream, which must not be the default one; nothing
  // is computed yet. Memory that `work` allocates belongs to the graph and stays in place between
  // replays. A graph that is always replayed after `previous` may share its memory pool.
  explicit CudaGraph(const std::function<void()>& work, const CudaGraph* previous = nullptr);
  ~CudaGraph();

  // Launches the graph on the current stream.
  void replay();

 private:
  struct Graph;
  std::unique_ptr<Graph> graph_;
};

}  // namespace qact::train
