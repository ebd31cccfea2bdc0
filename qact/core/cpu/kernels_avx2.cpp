#define QACT_SIMD_NAMESPACE avx2
#include "qact/core/cpu/kernel_tables.h"
