// The fields of evaluations as text, by name: for labels, and for choosing rows.
#pragma once

#include <string>
#include <vector>

#include "qact/results/evaluation.h"

namespace qact::results {

struct Field {
  std::string name, value;  // numbers as in JSON, lists separated by blanks; "none" for null
  bool training = false;    // an option of training

  bool operator==(const Field&) const = default;
};

// An option of training is called "train.NAME" where a field of the row has its name.
std::vector<Field> fields_of(const Setting& setting);
std::vector<Field> fields_of(const Evaluation& evaluation);
std::vector<Field> fields_of(const Training& training);

// A field's name with "_" for "-": options and fields differ in it, and count as the same.
std::string key_of(std::string name);

}  // namespace qact::results
