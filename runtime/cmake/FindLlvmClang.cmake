# Finds the development files of LLVM and clang for the compiler component.
#
# Looks at /usr/lib/llvm-<N> for the supported majors, newest last, or only for BILOGP_LLVM_VERSION when that is set;
# LLVM_ROOT names another installation. Debian's packages: llvm-19-dev, libclang-19-dev, libclang-cpp19-dev (or 22).
#
# With BILOGP_SELF_CONTAINED their archives are linked, for a component that needs neither on the machine it runs on.
#
# Gives LlvmClang_FOUND, LlvmClang_VERSION ("19.1.7") and the target LlvmClang::LlvmClang.
# The libraries are looked up by name instead of through LLVM's own CMake packages, which refuse to load unless every
# tool of the distribution is installed.
set(_llvm_supported 19 22)
set(_llvm_majors ${_llvm_supported})
if(BILOGP_LLVM_VERSION)
  if(NOT BILOGP_LLVM_VERSION IN_LIST _llvm_supported)
    message(FATAL_ERROR "BILOGP_LLVM_VERSION is ${BILOGP_LLVM_VERSION}: bilogp builds with LLVM and clang 19 or 22; set one of these")
  endif()
  set(_llvm_majors ${BILOGP_LLVM_VERSION})
endif()

foreach(_major IN LISTS _llvm_majors)
  set(_llvm_prefixes ${LLVM_ROOT} "/usr/lib/llvm-${_major}")
  unset(_llvm_include CACHE)
  unset(_clang_include CACHE)
  unset(_llvm_library CACHE)
  unset(_clang_library CACHE)
  find_path(_llvm_include llvm/Config/llvm-config.h PATHS ${_llvm_prefixes} PATH_SUFFIXES include NO_DEFAULT_PATH)
  find_path(_clang_include clang/Frontend/CompilerInstance.h PATHS ${_llvm_prefixes} PATH_SUFFIXES include NO_DEFAULT_PATH)
  find_library(_llvm_library NAMES LLVM-${_major} LLVM PATHS ${_llvm_prefixes} PATH_SUFFIXES lib lib64 NO_DEFAULT_PATH)
  find_library(_clang_library NAMES clang-cpp PATHS ${_llvm_prefixes} PATH_SUFFIXES lib lib64 NO_DEFAULT_PATH)
  if(_llvm_include AND _clang_include AND _llvm_library AND _clang_library)
    file(STRINGS "${_llvm_include}/llvm/Config/llvm-config.h" _llvm_line REGEX "#define LLVM_VERSION_STRING")
    string(REGEX MATCH "[0-9]+\\.[0-9]+\\.[0-9]+" LlvmClang_VERSION "${_llvm_line}")
    break()
  endif()
endforeach()

if(LlvmClang_VERSION)
  string(REGEX MATCH "^[0-9]+" _llvm_found "${LlvmClang_VERSION}")
  if(NOT _llvm_found IN_LIST _llvm_majors)
    message(FATAL_ERROR "${_llvm_include} is LLVM ${LlvmClang_VERSION}: bilogp builds with LLVM and clang 19 or 22; name another installation in LLVM_ROOT")
  endif()
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(
  LlvmClang
  REQUIRED_VARS _llvm_library _clang_library _llvm_include _clang_include
  VERSION_VAR LlvmClang_VERSION)

if(LlvmClang_FOUND AND NOT TARGET LlvmClang::LlvmClang)
  add_library(LlvmClang::LlvmClang INTERFACE IMPORTED)
  # System headers: their warnings are not ours.
  target_include_directories(LlvmClang::LlvmClang SYSTEM INTERFACE "${_clang_include}" "${_llvm_include}")
  if(BILOGP_SELF_CONTAINED)
    get_filename_component(_llvm_directory "${_llvm_library}" DIRECTORY)
    file(GLOB _llvm_archives "${_llvm_directory}/libclang[A-Z]*.a" "${_llvm_directory}/libLLVM*.a")
    # The archives need each other in circles; what nothing refers to stays out.
    target_link_libraries(LlvmClang::LlvmClang INTERFACE -Wl,--start-group ${_llvm_archives} -Wl,--end-group
                                                         -l:libz.a -l:libzstd.a ${CMAKE_DL_LIBS} m)
    target_link_options(LlvmClang::LlvmClang INTERFACE -Wl,--gc-sections -Wl,-O1)
  else()
    target_link_libraries(LlvmClang::LlvmClang INTERFACE "${_clang_library}" "${_llvm_library}")
  endif()
endif()
mark_as_advanced(_llvm_include _clang_include _llvm_library _clang_library)
