#include "qact/report/section.h"

namespace qact::report {

std::span<const Section> sections() {
  static const Section all[] = {
      {"circle", "Circle: only the context tells", toy_circle},
      {"monotone", "Monotone: only ranks survive", toy_monotone},
      {"provenance", "How this was made", provenance},
  };
  return all;
}

}  // namespace qact::report
