# find_package(core CONFIG REQUIRED), for native backends:
#
#   core::abi                             target that brings the folder of core_abi.h
#   core_INCLUDE_DIR, core_PXD_DIR        that folder, and the one for `from core.abi cimport …`
#   core_ABI_VERSION                      what is built with it fits a core of this version
#   core_add_module(package source…)      builds package/<name of the first source>, of Cython (.pyx) or C++,
#                                         and installs it into the wheel beside its package
#   core_oldest_glibc(target)             keeps a module of yours loadable with glibc 2.28; core_add_module does it
get_filename_component(core_PXD_DIR "${CMAKE_CURRENT_LIST_DIR}/../.." ABSOLUTE)
set(core_INCLUDE_DIR "${core_PXD_DIR}/core/include")
file(STRINGS "${core_INCLUDE_DIR}/core_abi.h" core_ABI_VERSION REGEX "^#define CORE_ABI_VERSION ")
string(REGEX REPLACE "[^0-9]" "" core_ABI_VERSION "${core_ABI_VERSION}")

include("${CMAKE_CURRENT_LIST_DIR}/oldest_glibc.cmake")

if(NOT TARGET core::abi)
  add_library(core::abi INTERFACE IMPORTED)
  set_target_properties(core::abi PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${core_INCLUDE_DIR}")
endif()

function(core_add_module package source)
  if(NOT COMMAND python_add_library)
    message(FATAL_ERROR "core_add_module: first find_package(Python REQUIRED COMPONENTS Interpreter Development.Module)")
  endif()
  get_filename_component(leaf "${source}" NAME_WE)
  set(sources "${package}/${source}")
  get_property(languages GLOBAL PROPERTY ENABLED_LANGUAGES)
  if(source MATCHES "\\.pyx$")
    include(UseCython)
    if(CXX IN_LIST languages)
      set(language CXX)
    else()
      set(language C)
    endif()
    cython_transpile("${CMAKE_CURRENT_SOURCE_DIR}/${package}/${source}" LANGUAGE ${language}
      MODULE_NAME "${package}.${leaf}" INCLUDE_DIRECTORIES "${core_PXD_DIR}" CYTHON_ARGS -3 OUTPUT_VARIABLE sources)
  endif()
  foreach(more IN LISTS ARGN)
    list(APPEND sources "${package}/${more}")
  endforeach()
  python_add_library(${package}_${leaf} MODULE ${sources} WITH_SOABI)
  set_target_properties(${package}_${leaf} PROPERTIES OUTPUT_NAME ${leaf} CXX_VISIBILITY_PRESET hidden
    C_VISIBILITY_PRESET hidden)
  target_include_directories(${package}_${leaf} PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}/${package}")
  if(CXX IN_LIST languages)
    target_compile_features(${package}_${leaf} PRIVATE cxx_std_17)
  endif()
  target_link_libraries(${package}_${leaf} PRIVATE core::abi)
  core_oldest_glibc(${package}_${leaf})
  install(TARGETS ${package}_${leaf} DESTINATION ${package})
endfunction()
