#include <c10/util/Exception.h>

#include <cstdio>
#include <exception>
#include <filesystem>

#include "cli/commands.h"

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
}
