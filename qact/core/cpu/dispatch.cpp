#include "qact/core/cpu/dispatch.h"

#include <cstdlib>
#include <stdexcept>

#include "qact/core/cpu/kernels.h"

namespace qact::core::cpu {
namespace {

constexpr Simd kLevels[] = {Simd::scalar, Simd::avx2, Simd::avx512};  // ascending

}  // namespace

// One per kernels_*.cpp.
#define QACT_LEVEL(level)                            \
  namespace level {                                  \
  extern const TensorKernels<float> float_kernels;   \
  extern const TensorKernels<double> double_kernels; \
  extern const TableKernels table_kernels;           \
  }
QACT_LEVEL(scalar)
#if defined(__x86_64__)
QACT_LEVEL(avx2)
QACT_LEVEL(avx512)
#endif
#undef QACT_LEVEL

bool supported(Simd level) {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (level == Simd::avx2) return __builtin_cpu_supports("avx2");
  if (level == Simd::avx512) {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  }
#endif
  return level == Simd::scalar;
}

const char* name(Simd level) {
  switch (level) {
    case Simd::avx512:
      return "avx512";
    case Simd::avx2:
      return "avx2";
    default:
      return "scalar";
  }
}

Simd choose_simd() { return choose_simd(std::getenv("QACT_SIMD"), supported); }

Simd choose_simd(const char* wanted, bool (*has)(Simd)) {
  Simd best = Simd::scalar;
  for (const Simd level : kLevels) {
    if (has(level)) best = level;
  }
  if (!wanted || !*wanted) return best;
  for (const Simd level : kLevels) {
    if (std::string(wanted) != name(level)) continue;
    if (has(level)) return level;
    throw std::runtime_error("[QACT_SIMD] expected a level that this CPU has, at most " +
                             std::string(name(best)) + ", got " + wanted);
  }
  throw std::runtime_error("[QACT_SIMD] expected scalar, avx2 or avx512, got '" +
                           std::string(wanted) + "'");
}

#if defined(__x86_64__)
#define QACT_CHOOSE(level, table) \
  ((level) == Simd::avx512 ? avx512::table : (level) == Simd::avx2 ? avx2::table : scalar::table)
#else
#define QACT_CHOOSE(level, table) ((void)(level), scalar::table)
#endif

template <>
const TensorKernels<float>& tensor_kernels(Simd level) {
  return QACT_CHOOSE(level, float_kernels);
}
template <>
const TensorKernels<double>& tensor_kernels(Simd level) {
  return QACT_CHOOSE(level, double_kernels);
}
const TableKernels& table_kernels(Simd level) { return QACT_CHOOSE(level, table_kernels); }

}  // namespace qact::core::cpu
