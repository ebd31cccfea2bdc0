// Test-time adaptation: methods that change a network while it classifies a stream of images
// without labels. One file per method, declared in factories.h; one table of names, in method.cpp.
//
// What the methods need of this interface, those that are here and others of the literature:
//
//   none      a forward pass of each batch
//   tent      gradients of some parameters; an optimiser that lives from prepare() to reset()
//   BN-adapt  nothing of its own: the context modes batch (N = 0) and prior (N > 0), which the
//             caller sets before prepare()
//   DUA       prepare(): copies() of the first 80 images, 64 of each, which it rotates itself, in
//             the context mode stream with a falling momentum; then tracked. predict() as none
//   MEMO      predict(): for each image of the batch 32 copies() by AugMix, one step of SGD on all
//             parameters, the forward pass of batch(i, i + 1), and a StateGuard around the three
#pragma once

#include <torch/types.h>

#include <memory>
#include <string>
#include <vector>

#include "qact/data/augment.h"
#include "qact/models/network.h"

namespace qact::adapt {

// The images of a stream in the order in which they arrive: normalised (NCHW), on the network's
// device, without labels.
class Images {
 public:
  virtual ~Images() = default;

  virtual int64_t count() const = 0;
  virtual torch::Tensor batch(int64_t first, int64_t last) const = 0;  // [first, last)
  // `count` augmented copies of one image. They depend on the seed of the stream and on `index`
  // alone.
  virtual torch::Tensor copies(int64_t index, int64_t count,
                               const data::Augmentation& augmentation) const = 0;
};

// A method at work on one network, which must outlive it and which nobody else uses meanwhile.
class Method {
 public:
  virtual ~Method() = default;  // as reset()

  // Before the first batch of a stream. The network is in eval(), its context mode is set.
  virtual void prepare(const Images& images) = 0;

  // The outputs of the batch [first, last), without gradients. Every batch of the stream once, in
  // their order.
  virtual models::NetworkOutput predict(const Images& images, int64_t first, int64_t last) = 0;

  // Leaves the network as it was before prepare(), and forgets the stream.
  virtual void reset() = 0;
};

struct MethodInfo {
  const char* name;
  // The modes of inference in which it can be used; none: all of them.
  std::vector<std::string> modes;
  // Whether it learns from the logits, which the network's loss must then have trained.
  bool uses_head;
  // Throws where it cannot adapt this network.
  std::unique_ptr<Method> (*make)(models::Network& network);

  bool works_in(const std::string& mode) const;
};

const std::vector<MethodInfo>& methods();
std::vector<std::string> method_names();
// Throws std::invalid_argument for an unknown name.
const MethodInfo& find_method(const std::string& name);

}  // namespace qact::adapt
