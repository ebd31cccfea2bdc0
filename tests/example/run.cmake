# Installs what is in BUILD to a fresh prefix, configures SOURCE against it, builds and runs.
set(work "${BUILD}/tests/example")
file(REMOVE_RECURSE "${work}")

function(step)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE output
    ERROR_VARIABLE output)
  message(STATUS "${output}")
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${ARGN} failed: ${result}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

step("${CMAKE_COMMAND}" --install "${BUILD}" --prefix "${work}/prefix")
step("${CMAKE_COMMAND}" -G "${GENERATOR}" -S "${SOURCE}" -B "${work}/build"
  "-Dqact_ROOT=${work}/prefix" "-DCMAKE_CXX_COMPILER=${COMPILER}"
  "-DCMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER}")
step("${CMAKE_COMMAND}" --build "${work}/build")
step("${work}/build/example")
if(NOT output MATCHES "its own batch: +0\\.9")
  message(FATAL_ERROR "expected an accuracy above 0.9, got: ${output}")
endif()
