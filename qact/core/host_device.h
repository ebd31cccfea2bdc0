// What both the CPU and the GPU compute is written once, and marked for both compilers.
#pragma once

#ifdef __CUDACC__
#define QACT_HD __host__ __device__
#else
#define QACT_HD
#endif
