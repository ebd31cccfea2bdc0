# Installs what is in BUILD to a fresh prefix; configures, builds and runs SOURCE against it, and a
# program that includes every installed header.
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
foreach(project example whole)
  set(source "${SOURCE}")
  if(project STREQUAL whole)
    set(source "${CMAKE_CURRENT_LIST_DIR}/whole")
  endif()
  step("${CMAKE_COMMAND}" -G "${GENERATOR}" -S "${source}" -B "${work}/${project}"
    "-Dqact_ROOT=${work}/prefix" "-DCMAKE_CXX_COMPILER=${COMPILER}"
    "-DCMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER}")
  step("${CMAKE_COMMAND}" --build "${work}/${project}")
endforeach()
step("${work}/whole/whole")
step("${work}/example/example")
if(NOT output MATCHES "its own batch: +0\\.9")
  message(FATAL_ERROR "expected an accuracy above 0.9, got: ${output}")
endif()
