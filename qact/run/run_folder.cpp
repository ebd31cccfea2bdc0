#include "qact/run/run_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <vector>

namespace qact::run {
namespace {

namespace fs = std::filesystem;

// NAME.XXXXXX, as AtomicFile calls a file that is yet to be finished.
bool is_leftover_of(const std::string& name, const std::string& of) {
  return name.size() == of.size() + 7 && name.starts_with(of + ".");
}

}  // namespace

void RunFolder::check_free(const TrainConfig& config, bool resume) const {
  if (!exists()) return;
  if (!resume) {
    throw std::runtime_error("[train] expected a folder without a run, got " + folder.string() +
                             ", which has one: --resume goes on with it");
  }
  check_same_run(read_config(this->config()), config);
}

void RunFolder::prepare(const TrainConfig& config) const {
  fs::create_directories(folder);
  std::vector<fs::path> leftovers;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    for (const fs::path& file : {this->config(), model(), best(), state(), rows()}) {
      if (is_leftover_of(name, file.filename().string())) leftovers.push_back(entry.path());
    }
  }
  for (const fs::path& path : leftovers) fs::remove(path);
  write_config(this->config(), config);
}

void refuse_run(const fs::path& folder, const std::string& found) {
  throw std::runtime_error(
      "[run] expected a run's folder, as `qact train --output` writes it, got " + folder.string() +
      ", " + found);
}

fs::path expect_in_run(const fs::path& file) {
  if (fs::exists(file)) return file;
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

}  // namespace qact::run
