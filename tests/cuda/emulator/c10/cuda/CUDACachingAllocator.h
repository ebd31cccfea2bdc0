#pragma once

#include <c10/core/Allocator.h>

namespace c10::cuda::CUDACachingAllocator {
Allocator* get();
}  // namespace c10::cuda::CUDACachingAllocator
