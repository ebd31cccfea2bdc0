# Sets QACT_HAS_NVCC: whether core/cuda is compiled. Without a CUDA build of torch its kernels
# are compiled all the same, to PTX, and linked nowhere, so that they never rot.
set(QACT_HAS_NVCC OFF)
if(QACT_SANITIZE OR QACT_CUDA STREQUAL "OFF")
  return()
endif()
include(CheckLanguage)
check_language(CUDA)
if(CMAKE_CUDA_COMPILER)
  if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES 80-real 90)  # 90: machine code and PTX for what comes after
    if(QACT_WHEEL)
      set(CMAKE_CUDA_ARCHITECTURES 80-real 86-real 89-real 90)
    endif()
  endif()
  enable_language(CUDA)
  # CMake 3.25 does not know of newer compilers that they take C++20.
  if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
    set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
  endif()
  set(QACT_HAS_NVCC ON)
elseif(QACT_CUDA STREQUAL "ON")
  message(FATAL_ERROR "QACT_CUDA is ON, but no nvcc was found. Put the CUDA toolkit's bin folder on "
    "the PATH, or set CMAKE_CUDA_COMPILER.")
endif()
