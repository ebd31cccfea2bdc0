# Finds LibTorch and makes the target QactTorch::torch from its headers and libraries.
#
# Torch's own package file insists on the CUDA toolkit whenever torch was built with
# CUDA; linking directly works with and without it. The folder is taken from QACT_TORCH_DIR,
# else from CMAKE_PREFIX_PATH (an unpacked libtorch, or what torch.utils.cmake_prefix_path
# prints), else from the Python that QACT_PYTHON names (default python3).
#
# Sets QactTorch_VERSION, QactTorch_DIR and QactTorch_CUDA (torch was built with CUDA).

set(_candidates ${QACT_TORCH_DIR})
foreach(_prefix IN LISTS CMAKE_PREFIX_PATH)
  list(APPEND _candidates "${_prefix}" "${_prefix}/../..")
endforeach()
set(_python "${QACT_PYTHON}")
if(NOT _python)
  set(_python python3)
endif()
execute_process(
  COMMAND "${_python}" -c "import importlib.util as u; s = u.find_spec('torch'); \
print(s.submodule_search_locations[0] if s else '')"
  OUTPUT_VARIABLE _found OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
list(APPEND _candidates ${_found})

set(QactTorch_DIR "")
foreach(_dir IN LISTS _candidates)
  if(NOT QactTorch_DIR AND EXISTS "${_dir}/include/ATen/ATen.h"
     AND EXISTS "${_dir}/lib/libtorch_cpu.so")
    get_filename_component(QactTorch_DIR "${_dir}" REALPATH)
  endif()
endforeach()

# Older releases keep the version under the C++ API, newer ones under headeronly.
set(QactTorch_VERSION "")
foreach(_header torch/headeronly/version.h torch/csrc/api/include/torch/version.h)
  set(_header "${QactTorch_DIR}/include/${_header}")
  if(QactTorch_DIR AND NOT QactTorch_VERSION AND EXISTS "${_header}")
    file(STRINGS "${_header}" _lines REGEX "define TORCH_VERSION_(MAJOR|MINOR|PATCH) ")
    set(_version "")
    foreach(_part MAJOR MINOR PATCH)
      if("${_lines}" MATCHES "TORCH_VERSION_${_part} ([0-9]+)")
        list(APPEND _version "${CMAKE_MATCH_1}")
      endif()
    endforeach()
    list(JOIN _version "." QactTorch_VERSION)
  endif()
endforeach()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(QactTorch
  REQUIRED_VARS QactTorch_DIR
  VERSION_VAR QactTorch_VERSION
  REASON_FAILURE_MESSAGE "no torch in QACT_TORCH_DIR, CMAKE_PREFIX_PATH or the Python \
${_python} (pip install torch==2.13.0 gives one)")

if(QactTorch_FOUND AND NOT TARGET QactTorch::torch)
  set(_lib "${QactTorch_DIR}/lib")
  add_library(QactTorch::torch INTERFACE IMPORTED)
  target_include_directories(QactTorch::torch SYSTEM INTERFACE
    "${QactTorch_DIR}/include" "${QactTorch_DIR}/include/torch/csrc/api/include")
  target_link_libraries(QactTorch::torch INTERFACE
    "${_lib}/libtorch.so" "${_lib}/libtorch_cpu.so" "${_lib}/libc10.so")
  target_link_options(QactTorch::torch INTERFACE
    "LINKER:-rpath,${_lib}" "LINKER:-rpath-link,${_lib}" "LINKER:--allow-shlib-undefined")
  # Torch's own OpenMP runtime, so that threads follow torch's setting.
  file(GLOB _gomp "${_lib}/libgomp*.so*" "${QactTorch_DIR}/../torch.libs/libgomp*.so*")
  if(_gomp)
    list(GET _gomp 0 _gomp)
  else()
    set(_gomp gomp)
  endif()
  target_link_libraries(QactTorch::torch INTERFACE "${_gomp}")
endif()

set(QactTorch_CUDA OFF)
if(QactTorch_FOUND AND EXISTS "${QactTorch_DIR}/lib/libtorch_cuda.so")
  set(QactTorch_CUDA ON)
  # No symbol of it is asked for, yet it must be loaded for torch to see its devices.
  target_link_libraries(QactTorch::torch INTERFACE "-Wl,--push-state,--no-as-needed,\
${QactTorch_DIR}/lib/libtorch_cuda.so,${QactTorch_DIR}/lib/libc10_cuda.so,--pop-state")
endif()
