#define QACT_SIMD_NAMESPACE scalar
#include "qact/core/cpu/kernel_tables.h"
