// The filter --where KEY=VALUE of rows.
#pragma once

#include <string>
#include <vector>

#include "qact/results/row.h"

namespace qact::results {

// A row fits where the field `key` has one of the values. Rows must fit all conditions.
struct Condition {
  std::string key;
  std::vector<std::string> values;
};

// Parses words KEY=VALUE; a word without a key is another value for the previous one. Throws
// std::invalid_argument.
std::vector<Condition> parse_where(const std::vector<std::string>& words);

// The evaluations that fit, the configurations of their models, and all rows of other kinds. Throws
// where a key is unknown or no evaluation is left.
Rows where(const Rows& rows, const std::vector<Condition>& conditions);

}  // namespace qact::results
