// The entry points that take bytes from outside. Each may refuse with std::runtime_error and
// do nothing else: no crash, no other exception, no memory beyond what the bytes justify.
#pragma once

#include <span>
#include <string>

#include "qact/base/bytes.h"

namespace qact::fuzz {

struct Target {
  std::string name;
  void (*run)(base::Bytes bytes);
};

std::span<const Target> targets();

}  // namespace qact::fuzz
