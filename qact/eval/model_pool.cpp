#include "qact/eval/model_pool.h"

namespace qact::eval {
namespace {

train::Model copy_of(const train::Model& model) {
  constexpr const char* kSource = "a model in memory";
  safetensors::Tensors tensors = train::classifier_tensors(model.classifiers);
  train::Model copy{model.card, models::make(model.card.model, model.card.options),
                    train::extract_classifiers(&tensors, kSource)};
  safetensors::load_state_dict(*copy.network, safetensors::state_dict(*model.network), kSource);
  return copy;
}

}  // namespace

std::unique_ptr<train::Model> ModelPool::acquire() {
  std::unique_lock lock(lock_);
  changed_.wait(lock, [&] { return !free_.empty() || left_ > 0; });
  if (free_.empty()) {
    left_ -= 1;
    lock.unlock();
    return copy();
  }
  auto model = std::move(free_.back());
  free_.pop_back();
  return model;
}

// After a failure another thread may try: it must not wait for a model that never comes.
std::unique_ptr<train::Model> ModelPool::copy() try {
  auto model = std::make_unique<train::Model>(copy_of(original_));
  model->network->to(device_);
  if (!device_.is_cpu()) model->network->use_channels_last();
  model->classifiers.to(device_);
  return model;
} catch (...) {
  const std::scoped_lock lock(lock_);
  left_ += 1;
  changed_.notify_one();
  throw;
}

void ModelPool::release(std::unique_ptr<train::Model> model) {
  const std::scoped_lock lock(lock_);
  free_.push_back(std::move(model));
  changed_.notify_one();
}

}  // namespace qact::eval
