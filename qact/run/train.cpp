#include "qact/run/train.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>

#include "qact/run/trainer.h"

namespace qact::run {
namespace {

// Torch's settings that decide the order of sums are the program's, so they are put back.
class Repeatable {
 public:
  explicit Repeatable(const TrainConfig& config)
      : threads_(at::get_num_threads()),
        before_(context().deterministicAlgorithms()),
        fill_(context().deterministicFillUninitializedMemory()) {
    at::set_num_threads(config.threads > 0 ? static_cast<int>(config.threads) : threads_);
    if (config.device != "cpu") return;
    context().setDeterministicAlgorithms(true, /*warn_only=*/false);
    context().setDeterministicFillUninitializedMemory(false);
  }
  ~Repeatable() {
    at::set_num_threads(threads_);
    context().setDeterministicAlgorithms(before_, /*warn_only=*/false);
    context().setDeterministicFillUninitializedMemory(fill_);
  }
  Repeatable(const Repeatable&) = delete;
  Repeatable& operator=(const Repeatable&) = delete;

 private:
  static at::Context& context() { return at::globalContext(); }

  int threads_;
  bool before_, fill_;
};

}  // namespace

TrainResult train(TrainConfig config, const RunFolder& folder, bool resume,
                  const TrainEvents& events) {
  check(config);
  const Repeatable repeatable(config);
  config.threads = at::get_num_threads();
  folder.check_free(config, resume);
  Trainer trainer(config, folder, events);
  if (resume && std::filesystem::exists(folder.state())) trainer.restore();
  folder.prepare(config);
  return trainer.run();
}

}  // namespace qact::run
