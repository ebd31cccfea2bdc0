#include "qact/train/train.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>

#include <filesystem>
#include <optional>

#include "qact/train/context_scope.h"
#include "qact/train/device.h"
#include "qact/train/trainer.h"

namespace qact::train {
namespace {

// Torch's settings are global: a run changes them, and restores them at its end.
class TorchSettingsGuard {
 public:
  explicit TorchSettingsGuard(const TrainConfig& config)
      : threads_(at::get_num_threads()),
        deterministic_(context().deterministicAlgorithms()),
        fill_(context().deterministicFillUninitializedMemory()),
        benchmark_(context().benchmarkCuDNN()),
        tf32_products_(context().allowTF32CuBLAS()),
        tf32_convolutions_(context().allowTF32CuDNN()) {
    at::set_num_threads(config.threads > 0 ? static_cast<int>(config.threads) : threads_);
    if (torch::Device(config.device).is_cpu()) {
      // Sums have the same order in each run.
      context().setDeterministicAlgorithms(true, /*warn_only=*/false);
      context().setDeterministicFillUninitializedMemory(false);
    } else {
      set_gpu_options(true, true, true);
    }
  }
  ~TorchSettingsGuard() {
    at::set_num_threads(threads_);
    context().setDeterministicAlgorithms(deterministic_, /*warn_only=*/false);
    context().setDeterministicFillUninitializedMemory(fill_);
    set_gpu_options(benchmark_, tf32_products_, tf32_convolutions_);
  }
  TorchSettingsGuard(const TorchSettingsGuard&) = delete;
  TorchSettingsGuard& operator=(const TorchSettingsGuard&) = delete;

 private:
  static at::Context& context() { return at::globalContext(); }
  static void set_gpu_options(bool benchmark, bool tf32_products, bool tf32_convolutions) {
    context().setBenchmarkCuDNN(benchmark);
    context().setAllowTF32CuBLAS(tf32_products);
    context().setAllowTF32CuDNN(tf32_convolutions);
  }

  int threads_;
  bool deterministic_, fill_, benchmark_, tf32_products_, tf32_convolutions_;
};

}  // namespace

TrainResult train(TrainConfig config, const RunFolder& folder, bool resume,
                  const TrainEvents& events, const dist::World& world) {
  check(config);
  config = resolved(config);
  check_device("train", config.device);
  if (resume) folder.expect_resumable();
  if (resume && config.context_scope == "auto") {
    config.context_scope = read_config(folder.config()).context_scope;
  }
  config.context_scope = resolved_context_scope(config.context_scope);
  const TorchSettingsGuard settings(config);
  config.threads = at::get_num_threads();
  std::optional<RunLock> lock;
  if (world.is_first()) {
    if (std::filesystem::exists(folder.folder)) lock.emplace(folder);
    folder.check_free(config, resume);
  }
  world.barrier();  // other ranks read what the first one has locked
  Trainer trainer(config, folder, events, world);
  if (world.is_first() && !lock) {
    lock.emplace(folder);
    folder.check_free(config, resume);  // another process may have written here meanwhile
  }
  resume ? trainer.restore() : trainer.begin();
  // Last: a folder with a configuration always has a state to resume from.
  if (world.is_first()) write_config(folder.config(), config);
  return trainer.run();
}

}  // namespace qact::train
