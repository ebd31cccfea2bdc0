#include "qact/train/train.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>

#include <filesystem>
#include <optional>

#include "qact/train/device.h"
#include "qact/train/trainer.h"

namespace qact::train {
namespace {

// Torch's settings are the program's, so they are put back.
class Settings {
 public:
  explicit Settings(const TrainConfig& config)
      : threads_(at::get_num_threads()),
        deterministic_(context().deterministicAlgorithms()),
        fill_(context().deterministicFillUninitializedMemory()),
        benchmark_(context().benchmarkCuDNN()),
        tf32_products_(context().allowTF32CuBLAS()),
        tf32_convolutions_(context().allowTF32CuDNN()) {
    at::set_num_threads(config.threads > 0 ? static_cast<int>(config.threads) : threads_);
    if (torch::Device(config.device).is_cpu()) {
      // Sums in an order that repeats.
      context().setDeterministicAlgorithms(true, /*warn_only=*/false);
      context().setDeterministicFillUninitializedMemory(false);
    } else {
      set_fast(true, true, true);
    }
  }
  ~Settings() {
    at::set_num_threads(threads_);
    context().setDeterministicAlgorithms(deterministic_, /*warn_only=*/false);
    context().setDeterministicFillUninitializedMemory(fill_);
    set_fast(benchmark_, tf32_products_, tf32_convolutions_);
  }
  Settings(const Settings&) = delete;
  Settings& operator=(const Settings&) = delete;

 private:
  static at::Context& context() { return at::globalContext(); }
  static void set_fast(bool benchmark, bool tf32_products, bool tf32_convolutions) {
    context().setBenchmarkCuDNN(benchmark);
    context().setAllowTF32CuBLAS(tf32_products);
    context().setAllowTF32CuDNN(tf32_convolutions);
  }

  int threads_;
  bool deterministic_, fill_, benchmark_, tf32_products_, tf32_convolutions_;
};

}  // namespace

TrainResult train(TrainConfig config, const RunFolder& folder, bool resume,
                  const TrainEvents& events) {
  check(config);
  check_device("train", config.device);
  if (resume) folder.expect_resumable();
  const Settings settings(config);
  config.threads = at::get_num_threads();
  std::optional<RunLock> lock;
  if (std::filesystem::exists(folder.folder)) lock.emplace(folder);
  folder.check_free(config, resume);
  Trainer trainer(config, folder, events);
  if (!lock) {
    lock.emplace(folder);
    folder.check_free(config, resume);  // someone may have been here in between
  }
  resume ? trainer.restore() : trainer.begin();
  // Last: a folder with a configuration has a state to resume from.
  write_config(folder.config(), config);
  return trainer.run();
}

}  // namespace qact::train
