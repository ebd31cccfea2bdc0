# cmake --install: both libraries, the headers that users include, and the package that
# find_package(qact) reads.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# The headers given, relative to qact/, and those of the project that they include.
function(qact_with_includes result)
  set(found "")
  set(left ${ARGN})
  while(left)
    list(POP_FRONT left header)
    if(header IN_LIST found)
      continue()
    endif()
    list(APPEND found "${header}")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${header}")
    file(STRINGS "${CMAKE_CURRENT_SOURCE_DIR}/${header}" lines REGEX "^#include \"qact/")
    foreach(line IN LISTS lines)
      string(REGEX REPLACE "^#include \"qact/([^\"]+)\".*" "\\1" included "${line}")
      list(APPEND left "${included}")
    endforeach()
  endwhile()
  set(${result} ${found} PARENT_SCOPE)
endfunction()

function(qact_install target export)
  qact_with_includes(headers ${ARGN})
  target_sources(${target} PUBLIC FILE_SET HEADERS BASE_DIRS "${PROJECT_SOURCE_DIR}"
    FILES ${headers})
  set_target_properties(${target} PROPERTIES
    INSTALL_RPATH "$ORIGIN" INSTALL_RPATH_USE_LINK_PATH ON)
  install(TARGETS ${target} EXPORT ${export} LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}"
    FILE_SET HEADERS DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
  install(EXPORT ${export} NAMESPACE qact:: DESTINATION "${package}")
endfunction()

# What users include; all else is the project's own.
set(package "${CMAKE_INSTALL_LIBDIR}/cmake/qact")
qact_install(qact_ops qactOpsTargets qact.h)
qact_install(qact qactTargets
  corrupt/corrupt.h data/dataset.h data/loader.h eval/evaluate.h eval/predict.h losses/loss.h
  metrics/calibration.h metrics/retrieval.h models/network.h report/page.h train/train.h)

# A C++ library fits the torch that it was built with, patch releases aside.
string(REGEX MATCH "^[0-9]+\\.[0-9]+" qact_torch_release "${QactTorch_VERSION}")
configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/qactConfig.cmake.in"
  "${CMAKE_CURRENT_BINARY_DIR}/qactConfig.cmake" INSTALL_DESTINATION "${package}")
write_basic_package_version_file("${CMAKE_CURRENT_BINARY_DIR}/qactConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/qactConfig.cmake"
  "${CMAKE_CURRENT_BINARY_DIR}/qactConfigVersion.cmake"
  "${PROJECT_SOURCE_DIR}/cmake/FindQactTorch.cmake" DESTINATION "${package}")
