// Which SIMD levels this CPU has, and which one to use.
#pragma once

#include <string>

#include "qact/core/view.h"

namespace qact::core::cpu {

bool supported(Simd level);
const char* name(Simd level);

// The best level of this CPU, or the one that QACT_SIMD names: scalar, avx2 or avx512.
// Throws std::runtime_error if that is unknown or beyond this CPU.
Simd choose_simd();
// The same of a CPU that `has` certain levels; nothing wanted: the best of them.
Simd choose_simd(const char* wanted, bool (*has)(Simd));

}  // namespace qact::core::cpu
