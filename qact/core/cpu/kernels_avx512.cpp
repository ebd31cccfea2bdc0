#define QACT_SIMD_NAMESPACE avx512
#include "qact/core/cpu/kernel_tables.h"
