#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <sstream>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/did_you_mean.h"
#include "cli/error_message.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "cli/validators.h"
#include "cli/world.h"

namespace {

constexpr int kWrongUse = 2;

int wrong_use(const CLI::ParseError& error, const CLI::App& app) {
  const std::string option = qact::cli::unknown_option(app);
  if (!qact::cli::may_speak()) return kWrongUse;
  std::fprintf(stderr, "qact: %s%s\n`%s --help` says more\n", qact::cli::rank_prefix().c_str(),
               option.empty() ? error.what() : option.c_str(),
               qact::cli::command_path(app).c_str());
  return kWrongUse;
}

// Commands whose work several ranks share; the others are done by the first one.
bool is_shared(int argc, char** argv) {
  const std::string command = argc > 1 ? argv[1] : "";
  return command == "train" || command == "eval" || command == "corrupt";
}

int parse_and_run(CLI::App& app, int argc, char** argv) {
  if (!is_shared(argc, argv) && qact::cli::this_rank().rank > 0) return 0;
  const std::string unknown = qact::cli::unknown_command(app, {argv + 1, argv + argc});
  if (!unknown.empty()) {
    std::fputs(unknown.c_str(), stderr);
    return kWrongUse;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help) {
    std::ostringstream text, errors;
    const int status = app.exit(help, text, errors);
    qact::cli::print(text.str());
    std::fputs(errors.str().c_str(), stderr);
    return status;
  } catch (const CLI::ParseError& error) {
    return wrong_use(error, app);
  } catch (const std::exception& error) {
    if (qact::cli::may_speak()) {
      std::fprintf(stderr, "qact: %s%s\n", qact::cli::rank_prefix().c_str(),
                   qact::cli::message_of(error, app).c_str());
    }
    return qact::cli::failure_status();
  }
  return 0;
}

// Whether all that was printed arrived; says so where it did not.
bool output_arrived(const CLI::App& app) {
  const qact::cli::Delivery delivery = qact::cli::deliver_output();
  if (delivery.complete) return true;
  std::fprintf(stderr, "qact: [%s] expected to write to the standard output, could not: %s\n",
               qact::cli::command_name(app).c_str(), delivery.reason.c_str());
  return false;
}

}  // namespace

// Exit status: 0 on success, 1 on a failed run, 2 on wrong use, 130 and 143 after SIGINT and
// SIGTERM.
int main(int argc, char** argv) {
  CLI::App app("qact: networks that adapt to the distribution they are shown", "qact");
  app.set_version_flag("--version", "qact " QACT_VERSION);
  app.require_subcommand(1);
  qact::cli::setup_corrupt(app);
  qact::cli::setup_data(app);
  qact::cli::setup_eval(app);
  qact::cli::setup_predict(app);
  qact::cli::setup_report(app);
  qact::cli::setup_toy(app);
  qact::cli::setup_train(app);
  qact::cli::end_on_signals();
  // A file that grows beyond the limit is then an error of its write, told as any other.
  std::signal(SIGXFSZ, SIG_IGN);
  const qact::dist::Environment rank = qact::cli::this_rank();
  if (rank.size > 1) qact::cli::end_soon_after_signals(rank.rank == 0);
  qact::cli::check_numbers(app);
  int status = parse_and_run(app, argc, argv);
  if (!output_arrived(app) && status == 0) status = 1;
  // Without waiting for threads that wait for ranks which no longer answer.
  if (rank.size > 1) std::_Exit(status);
  return status;
}
