// Fields of evaluations by their names, as text: what labels name and what rows are chosen by.
#pragma once

#include <string>
#include <vector>

#include "qact/results/evaluation.h"

namespace qact::results {

struct Field {
  std::string name, value;  // numbers as in JSON, lists with blanks; "none" for null
  bool training = false;
};
// Options of training have their own names, "train.NAME" where a field of the row has it already.
std::vector<Field> fields_of(const Setting& setting);
std::vector<Field> fields_of(const Evaluation& evaluation);
std::vector<Field> fields_of(const Training& training);

// A choice of rows: all keys, and of each key one of its values.
struct Condition {
  std::string key;
  std::vector<std::string> values;
};

// Of words KEY=VALUE; a word without a key is another value of the one before. Throws
// std::invalid_argument.
std::vector<Condition> parse_where(const std::vector<std::string>& words);

// The evaluations that fit, the configurations of their models, and rows of all other kinds. Throws
// where a key is unknown, or nothing is left.
Rows where(const Rows& rows, const std::vector<Condition>& conditions);

}  // namespace qact::results
