# cmake --install: the library, its headers, and the package that find_package(qact) reads.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(package "${CMAKE_INSTALL_LIBDIR}/cmake/qact")
set_target_properties(qact qact_ops PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON INSTALL_RPATH "$ORIGIN")
install(TARGETS qact_ops qact EXPORT qactTargets LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}")
install(EXPORT qactTargets NAMESPACE qact:: DESTINATION "${package}")
install(DIRECTORY "${PROJECT_SOURCE_DIR}/qact" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
  FILES_MATCHING PATTERN "*.h" PATTERN cpu EXCLUDE PATTERN cuda EXCLUDE PATTERN autograd EXCLUDE)

# A C++ library fits the torch that it was built with, patch releases aside.
string(REGEX MATCH "^[0-9]+\\.[0-9]+" qact_torch_release "${QactTorch_VERSION}")
configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/qactConfig.cmake.in"
  "${CMAKE_CURRENT_BINARY_DIR}/qactConfig.cmake" INSTALL_DESTINATION "${package}")
write_basic_package_version_file("${CMAKE_CURRENT_BINARY_DIR}/qactConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/qactConfig.cmake"
  "${CMAKE_CURRENT_BINARY_DIR}/qactConfigVersion.cmake"
  "${PROJECT_SOURCE_DIR}/cmake/FindQactTorch.cmake" DESTINATION "${package}")
