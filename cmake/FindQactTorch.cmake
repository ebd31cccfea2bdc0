# Finds LibTorch and makes the target QactTorch::torch from its headers and libraries.
#
# Torch's own package file insists on the CUDA toolkit whenever torch was built with
# CUDA; linking directly works with and without it. The folder is taken from QACT_TORCH_DIR,
# else from CMAKE_PREFIX_PATH (an unpacked libtorch, or what torch.utils.cmake_prefix_path
# prints), else from the Python that QACT_PYTHON names (default python3).
#
# Sets QactTorch_VERSION, QactTorch_DIR and QactTorch_CUDA (torch was built with CUDA).

set(_qact_torch_candidates ${QACT_TORCH_DIR})
foreach(_prefix IN LISTS CMAKE_PREFIX_PATH)
  list(APPEND _qact_torch_candidates "${_prefix}" "${_prefix}/../..")
endforeach()
if(NOT QACT_PYTHON)
  set(QACT_PYTHON python3)
endif()
execute_process(
  COMMAND "${QACT_PYTHON}" -c
          "import importlib.util as u; s = u.find_spec('torch'); print(s.submodule_search_locations[0] if s else '')"
  OUTPUT_VARIABLE _qact_torch_python
  OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
list(APPEND _qact_torch_candidates ${_qact_torch_python})

set(QactTorch_DIR "")
foreach(_dir IN LISTS _qact_torch_candidates)
  if(NOT QactTorch_DIR AND EXISTS "${_dir}/include/ATen/ATen.h" AND EXISTS "${_dir}/lib/libtorch_cpu.so")
    get_filename_component(QactTorch_DIR "${_dir}" REALPATH)
  endif()
endforeach()

if(QactTorch_DIR)
  # Older releases keep the version under the C++ API, newer ones under headeronly.
  foreach(_header torch/headeronly/version.h torch/csrc/api/include/torch/version.h)
    if(NOT QactTorch_VERSION AND EXISTS "${QactTorch_DIR}/include/${_header}")
      file(STRINGS "${QactTorch_DIR}/include/${_header}" _lines REGEX "define TORCH_VERSION_(MAJOR|MINOR|PATCH) ")
      foreach(_part MAJOR MINOR PATCH)
        if("${_lines}" MATCHES "TORCH_VERSION_${_part} ([0-9]+)")
          list(APPEND _qact_torch_version "${CMAKE_MATCH_1}")
        endif()
      endforeach()
      list(JOIN _qact_torch_version "." QactTorch_VERSION)
    endif()
  endforeach()
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(QactTorch
  REQUIRED_VARS QactTorch_DIR
  VERSION_VAR QactTorch_VERSION
  REASON_FAILURE_MESSAGE
    "no torch in QACT_TORCH_DIR, CMAKE_PREFIX_PATH or ${QACT_PYTHON} (pip install torch==2.13.0 gives one)")

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
    target_link_libraries(QactTorch::torch INTERFACE "${_gomp}")
  else()
    target_link_libraries(QactTorch::torch INTERFACE gomp)
  endif()
  set(QactTorch_CUDA OFF)
  if(EXISTS "${_lib}/libtorch_cuda.so")
    set(QactTorch_CUDA ON)
    target_link_libraries(QactTorch::torch INTERFACE "${_lib}/libtorch_cuda.so" "${_lib}/libc10_cuda.so")
  endif()
endif()
