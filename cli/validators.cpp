#include "cli/validators.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <system_error>

#include "cli/text.h"
#include "qact/data/dataset.h"

namespace qact::cli {
namespace {

// All of the text, in plain digits: CLI11 takes 010 for 8, wraps -1 around where no sign fits, and
// clips what does not fit 64 bits.
template <class Number>
bool parse(const std::string& text, Number& number) {
  const size_t digits = text.find_first_not_of('-');
  if (digits != std::string::npos && text[digits] == '0' && digits + 1 < text.size()) return false;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

template <class Number>
CLI::Validator whole_number(Number low, Number high, const std::string& range) {
  const auto check = [=](const std::string& text) {
    Number number = 0;
    const bool good = parse(text, number) && number >= low && number <= high;
    return good ? std::string() : "expected a whole number " + range + ", got " + text;
  };
  return CLI::Validator(check, /*validator_desc=*/"");
}

CLI::Validator any_number() {
  const auto check = [](const std::string& text) {
    double number = 0;
    const bool good = CLI::detail::lexical_cast(text, number);
    return good ? std::string() : "expected a number, got " + text;
  };
  return CLI::Validator(check, /*validator_desc=*/"");
}

}  // namespace

CLI::Validator at_least(int64_t low) {
  return whole_number(low, std::numeric_limits<int64_t>::max(),
                      "of " + std::to_string(low) + " or more");
}

CLI::Validator between(int64_t low, int64_t high) {
  return whole_number(low, high, "from " + std::to_string(low) + " to " + std::to_string(high));
}

CLI::Validator one_of(const std::vector<std::string>& words) {
  const auto check = [=](const std::string& text) {
    const bool good = std::find(words.begin(), words.end(), text) != words.end();
    return good ? std::string() : "expected one of " + joined(words, ", ") + ", got " + text;
  };
  return CLI::Validator(check, /*validator_desc=*/"");
}

CLI::Validator thread_count() { return between(0, 4096); }

void check_numbers(CLI::App& app) {
  using Signed = std::numeric_limits<int64_t>;
  for (CLI::Option* option : app.get_options()) {
    const std::string type = option->get_type_name();
    if (type == "INT") option->check(whole_number(Signed::min(), Signed::max(), "of 64 bits"));
    if (type == "UINT") {
      option->check(whole_number<uint64_t>(0, ~uint64_t{0}, "of 0 or more, of 64 bits"));
    }
    if (type == "FLOAT") option->check(any_number());
  }
  for (CLI::App* command : app.get_subcommands({})) check_numbers(*command);
}

void check_dataset_name(const std::string& name_or_path) {
  if (name_or_path.find('/') != std::string::npos) return;
  check_use([&] { data::find_dataset(name_or_path); });
}

}  // namespace qact::cli
