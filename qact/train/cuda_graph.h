// Work on a GPU that is recorded once and replayed often: the host then queues all of it in one
// call, where small kernels would wait for the host to launch them one by one.
#pragma once

#include <functional>
#include <memory>

namespace qact::train {

class CudaGraph {
 public:
  // Whether this build can, at all.
  static bool available();

  // What `work` queues on the current stream, which is not the default one; nothing is computed
  // yet. Memory that it takes stays as it is from replay to replay. A recording that is always
  // replayed after `before` may use the memory that `before` has done with.
  explicit CudaGraph(const std::function<void()>& work, const CudaGraph* before = nullptr);
  ~CudaGraph();

  // Queues it on the current stream.
  void replay();

 private:
  struct Graph;
  std::unique_ptr<Graph> graph_;
};

}  // namespace qact::train
