// Faults on purpose: `make mutants` compiles them in, switches one on at a time by the environment
// variable QACT_MUTANT, and shows that a test notices it. In any other build QACT_MUTANT(name) is
// the constant false, and nothing of them is left.
#pragma once

#ifndef QACT_MUTANTS

#define QACT_MUTANT(name) false
namespace qact::core {
inline void set_device_mutant() {}
}  // namespace qact::core

#else

#include <cstdint>
#include <type_traits>

namespace qact::core {

// FNV-1a. 0 stands for no mutant.
constexpr uint64_t mutant_id(const char* name) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char* at = name; *at; ++at) hash = (hash ^ static_cast<uint8_t>(*at)) * 0x100000001b3;
  return hash;
}

extern const uint64_t active_mutant;

// Notes that the active mutant's place was reached. If it never is, the program says so at its end:
// what no test reaches, no test can catch.
bool reach_mutant();

// Kernels read a constant of their own in every file; before the first launch of all, each is set
// by the function that its file has listed, which returns 0 or the runtime's error.
bool list_device_mutant(int (*set)());
void set_device_mutant();

}  // namespace qact::core

#define QACT_MUTANT_ID(name) \
  (std::integral_constant<uint64_t, ::qact::core::mutant_id(name)>::value)

#if defined(__CUDACC__)
static __constant__ uint64_t device_mutant;
static const bool device_mutant_listed = qact::core::list_device_mutant([]() -> int {
  const auto error =
      cudaMemcpyToSymbol(device_mutant, &qact::core::active_mutant, sizeof(uint64_t));
  return error ? error : cudaDeviceSynchronize();
});
#endif
#if defined(__CUDACC__) && defined(__CUDA_ARCH__)
#define QACT_MUTANT(name) (device_mutant == QACT_MUTANT_ID(name))
#else
#define QACT_MUTANT(name) \
  (::qact::core::active_mutant == QACT_MUTANT_ID(name) && ::qact::core::reach_mutant())
#endif

#endif
