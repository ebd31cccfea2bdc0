#include "cli/error_message.h"

#include <c10/util/Exception.h>

#include <filesystem>
#include <new>
#include <system_error>

namespace qact::cli {
namespace {

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

// Torch's allocator on the CPU throws an error of no type of its own.
bool is_out_of_memory(const c10::Error& error) {
  const std::string text = error.what_without_backtrace();
  return dynamic_cast<const c10::OutOfMemoryError*>(&error) != nullptr ||
         text.find("can't allocate memory") != std::string::npos ||
         text.find("out of memory") != std::string::npos;
}

// "[enforce fail at FILE:LINE] CONDITION. WHAT" is WHAT.
std::string without_origin(const std::string& text) {
  const size_t what = text.find("DefaultCPUAllocator");
  return what == std::string::npos ? text : text.substr(what);
}

std::string out_of_memory(const std::string& what, const CLI::App& app) {
  std::string text = "[" + command_name(app) + "] out of memory: " + what;
  for (const CLI::App* command : app.get_subcommands()) {
    for (const char* option : {"--batch-size", "--limit"}) {
      if (command->get_option_no_throw(option) == nullptr) continue;
      return text + "; a smaller " + option + " needs less";
    }
  }
  return text;
}

}  // namespace

const CLI::App& parsed_command(const CLI::App& app) {
  const auto commands = app.get_subcommands();
  return commands.empty() ? app : parsed_command(*commands.front());
}

std::string command_path(const CLI::App& app) {
  const auto commands = app.get_subcommands();
  return app.get_name() + (commands.empty() ? "" : " " + command_path(*commands.front()));
}

std::string command_name(const CLI::App& app) {
  const auto commands = app.get_subcommands();
  return commands.empty() ? "help" : commands.front()->get_name();
}

std::string message_of(const std::exception& error, const CLI::App& app) {
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) {
    return out_of_memory("the system has no more", app);
  }
  if (const auto* system = dynamic_cast<const std::system_error*>(&error);
      system != nullptr && system->code() == std::errc::resource_unavailable_try_again) {
    return out_of_memory("the system starts no more threads", app);
  }
  if (const auto* torch = dynamic_cast<const c10::Error*>(&error)) {
    if (!is_out_of_memory(*torch)) return torch->what_without_backtrace();
    return out_of_memory(first_line(without_origin(torch->what_without_backtrace())), app);
  }
  if (const auto* file = dynamic_cast<const std::filesystem::filesystem_error*>(&error)) {
    const std::string path = file->path1().string();
    return "[file] cannot use " + (path.empty() ? "''" : path) + ": " + file->code().message();
  }
  return error.what();
}

}  // namespace qact::cli
