#include "qact/adapt/method.h"

#include <algorithm>
#include <stdexcept>

#include "qact/adapt/factories.h"
#include "qact/base/joined.h"

namespace qact::adapt {

const std::vector<MethodInfo>& methods() {
  static const std::vector<MethodInfo> all = {
      {"none", {}, false, make_none},
      {"tent", {"batch"}, true, make_tent},
  };
  return all;
}

std::vector<std::string> method_names() {
  std::vector<std::string> names;
  for (const MethodInfo& method : methods()) names.emplace_back(method.name);
  return names;
}

bool MethodInfo::works_in(const std::string& mode) const {
  return modes.empty() || std::find(modes.begin(), modes.end(), mode) != modes.end();
}

const MethodInfo& find_method(const std::string& name) {
  for (const MethodInfo& method : methods()) {
    if (name == method.name) return method;
  }
  throw std::invalid_argument("[adapt] expected one of " + base::joined(method_names(), ", ") +
                              ", got '" + name + "'");
}

}  // namespace qact::adapt
