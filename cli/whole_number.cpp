#include "cli/whole_number.h"

#include <limits>

namespace qact::cli {
namespace {

CLI::Validator whole_number(int64_t low, int64_t high, const std::string& range) {
  const auto check = [=](const std::string& text) {
    int64_t number = 0;
    const bool good = CLI::detail::lexical_cast(text, number) && number >= low && number <= high;
    return good ? std::string() : "expected a whole number " + range + ", got " + text;
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

CLI::Validator thread_count() { return between(0, 4096); }

}  // namespace qact::cli
