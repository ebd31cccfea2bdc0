// No adaptation beyond what the layers do in their context mode.
#include "qact/adapt/factories.h"

namespace qact::adapt {
namespace {

class None : public Method {
 public:
  explicit None(models::Network& network) : network_(network) {}

  void prepare(const Images&) override {}
  models::NetworkOutput predict(const Images& images, int64_t first, int64_t last) override {
    const torch::NoGradGuard no_grad;
    return network_.forward(images.batch(first, last));
  }
  void reset() override {}

 private:
  models::Network& network_;
};

}  // namespace

std::unique_ptr<Method> make_none(models::Network& network) {
  return std::make_unique<None>(network);
}

}  // namespace qact::adapt
