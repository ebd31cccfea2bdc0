#include "qact/train/run_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>

namespace qact::train {

namespace fs = std::filesystem;

void RunFolder::expect_resumable() const {
  const auto refuse = [&](const std::string& found) {
    throw std::runtime_error("[train] expected a run to resume in " + folder.string() + ", got " +
                             found);
  };
  if (!fs::exists(folder)) refuse("no such folder: without --resume a run begins there");
  if (!exists()) {
    const bool empty = !fs::exists(model()) && !fs::exists(best());
    refuse(std::string("no config.json there") +
           (empty ? ": without --resume a run begins there" : ", which says what it is"));
  }
  if (!fs::is_regular_file(state())) {
    refuse("no state.safetensors there, which says how far it is");
  }
}

void RunFolder::check_free(const TrainConfig& config, bool resume) const {
  if (resume) {
    check_same_run(run_identity(read_config(this->config())), config);
    return;
  }
  if (exists()) {
    throw std::runtime_error(
        "[train] expected a folder without a run, got " + folder.string() +
        ", which has one: --resume goes on with it; remove the folder to begin anew");
  }
  for (const fs::path& weights : {model(), best()}) {
    if (!fs::exists(weights)) continue;
    throw std::runtime_error("[train] expected a folder without a run, got " + folder.string() +
                             ", which has " + weights.filename().string() +
                             ", but no config.json to resume with");
  }
}

void refuse_run(const fs::path& folder, const std::string& found) {
  throw std::runtime_error(
      "[run] expected a run's folder, as `qact train --output` writes it, got " + folder.string() +
      ", " + found);
}

fs::path expect_in_run(const fs::path& file) {
  if (fs::is_regular_file(file)) return file;
  const fs::path folder = file.parent_path();
  if (!fs::exists(folder)) refuse_run(folder, "which is not there");
  if (!fs::is_directory(folder)) refuse_run(folder, "which is no folder");
  refuse_run(folder, "which has no " + file.filename().string());
}

RunLock::RunLock(const RunFolder& folder) {
  fs::create_directories(folder.folder);
  const fs::path path = folder.folder / ".lock";
  file_ = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (file_ < 0) {
    throw std::runtime_error("[train] expected to write in " + folder.folder.string() +
                             ", could not: " + std::strerror(errno));
  }
  if (flock(file_, LOCK_EX | LOCK_NB) == 0) return;
  const int error = errno;
  close(file_);
  throw std::runtime_error(
      "[train] expected to have " + folder.folder.string() + " alone, got " +
      (error == EWOULDBLOCK ? "another process that is training in it" : std::strerror(error)));
}

RunLock::~RunLock() { close(file_); }

}  // namespace qact::train
