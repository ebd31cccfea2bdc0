#include "qact/ops/describe.h"

#include <c10/core/ScalarType.h>

#include <sstream>

namespace qact::ops {

std::string describe(c10::SymIntArrayRef numbers) {
  std::ostringstream out;
  out << '(';
  for (size_t i = 0; i < numbers.size(); ++i) out << (i ? "," : "") << numbers[i];
  out << ')';
  return out.str();
}

std::string describe(const at::Tensor& tensor) {
  return std::string(c10::getDtypeNames(tensor.scalar_type()).first) + " of shape " +
         describe(tensor.sym_sizes());
}

}  // namespace qact::ops
