# What `cmake --install` installs: the library, its headers, the CMake package and the pkg-config file. The compiler
# component and the tools have their rules beside their targets.
include(CMakePackageConfigHelpers)

set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/bilogp")

install(TARGETS bilogp EXPORT bilogpTargets LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}")
install(DIRECTORY runtime/include/bilogp DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")
install(EXPORT bilogpTargets NAMESPACE bilogp:: DESTINATION "${package_dir}")

configure_package_config_file(runtime/cmake/bilogpConfig.cmake.in "${PROJECT_BINARY_DIR}/bilogpConfig.cmake"
                              INSTALL_DESTINATION "${package_dir}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/bilogpConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/bilogpConfig.cmake" "${PROJECT_BINARY_DIR}/bilogpConfigVersion.cmake"
        DESTINATION "${package_dir}")

# The prefix is computed from the file's own place, so that the installed tree can be moved.
file(RELATIVE_PATH prefix_from_pc "${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig" "${CMAKE_INSTALL_PREFIX}")
configure_file(runtime/cmake/bilogp.pc.in "${PROJECT_BINARY_DIR}/bilogp.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/bilogp.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")

# The tools find the library from where they lie, in any prefix.
file(RELATIVE_PATH lib_from_bin "${CMAKE_INSTALL_FULL_BINDIR}" "${CMAKE_INSTALL_FULL_LIBDIR}")
foreach(tool bilogp-score bilogp-warmcache)
  if(TARGET ${tool})
    set_target_properties(${tool} PROPERTIES INSTALL_RPATH "$ORIGIN/${lib_from_bin}")
  endif()
endforeach()
