#include <c10/util/Exception.h>

#include <cerrno>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <system_error>

#include "cli/commands.h"

namespace {

int parse_and_run(CLI::App& app, int argc, char** argv) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  } catch (const c10::Error& error) {
    std::fprintf(stderr, "qact: %s\n", error.what_without_backtrace());
    return 1;
  } catch (const std::filesystem::filesystem_error& error) {
    std::fprintf(stderr, "qact: [file] cannot use %s: %s\n", error.path1().c_str(),
                 error.code().message().c_str());
    return 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "qact: %s\n", error.what());
    return 1;
  }
  return 0;
}

// Whether all that was printed arrived; says so where it did not.
bool output_arrived(const CLI::App& app) {
  errno = 0;
  const bool flushed = std::fflush(stdout) == 0;
  const int reason = errno;
  if (flushed && !std::ferror(stdout)) return true;
  const auto commands = app.get_subcommands();
  std::fprintf(
      stderr, "qact: [%s] expected to write to the standard output, could not: %s\n",
      commands.empty() ? "help" : commands.front()->get_name().c_str(),
      flushed ? "an earlier write failed" : std::generic_category().message(reason).c_str());
  return false;
}

}  // namespace

// Exit status: 0 on success, 1 on a failed run, 2 on wrong use.
int main(int argc, char** argv) {
  CLI::App app("qact: networks that adapt to the distribution they are shown", "qact");
  app.require_subcommand(1);
  qact::cli::setup_corrupt(app);
  qact::cli::setup_data(app);
  qact::cli::setup_eval(app);
  qact::cli::setup_predict(app);
  qact::cli::setup_report(app);
  qact::cli::setup_toy(app);
  qact::cli::setup_train(app);
  const int status = parse_and_run(app, argc, argv);
  return output_arrived(app) || status != 0 ? status : 1;
}
