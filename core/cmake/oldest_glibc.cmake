# core_oldest_glibc(target): the module of the target loads with glibc 2.28 and the libstdc++ of GCC 8, or newer
#
# The compiler includes oldest_glibc.inc. Semaphores and dlopen are in libc.so.6 since glibc 2.34. The linker takes them
# from libraries made here, which have the names and versions of the older ones. Nothing is done with other compilers
# than GCC, and on other systems than Linux with glibc on x86_64 and aarch64.
include_guard(GLOBAL)

set(core_oldest_glibc_inc "${CMAKE_CURRENT_LIST_DIR}/oldest_glibc.inc")
set(core_oldest_libraries "")
if(CMAKE_SYSTEM_PROCESSOR STREQUAL "aarch64")
  set(core_oldest_version GLIBC_2.17)
else()
  set(core_oldest_version GLIBC_2.2.5)
endif()

# Make the library `file` in the build folder, for the linker only, and add it to core_oldest_libraries.
function(_core_oldest_library file)
  set(folder "${CMAKE_BINARY_DIR}/oldest_glibc")
  list(JOIN ARGN "; " names)
  list(TRANSFORM ARGN REPLACE "(.+)" "void \\1(void) {}\n" OUTPUT_VARIABLE functions)
  file(WRITE "${folder}/${file}.c" ${functions})
  file(WRITE "${folder}/${file}.map" "${core_oldest_version} { ${names}; };\n")
  if(CMAKE_C_COMPILER)
    set(compiler "${CMAKE_C_COMPILER}")
  else()
    set(compiler "${CMAKE_CXX_COMPILER}")
  endif()
  execute_process(COMMAND "${compiler}" -x c -fno-builtin -shared -fPIC -nostdlib "-Wl,-soname,${file}"
    "-Wl,--version-script,${folder}/${file}.map" -o "${folder}/${file}" "${folder}/${file}.c" COMMAND_ERROR_IS_FATAL ANY)
  set(core_oldest_libraries ${core_oldest_libraries} "-l:${file}" PARENT_SCOPE)
endfunction()

find_path(core_glibc_include gnu/libc-version.h)
if(CMAKE_SYSTEM_NAME STREQUAL "Linux" AND core_glibc_include
    AND "${CMAKE_C_COMPILER_ID}${CMAKE_CXX_COMPILER_ID}" MATCHES "^(GNU)+$"
    AND CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|aarch64)$")
  _core_oldest_library(libpthread.so.0 sem_destroy sem_init sem_post sem_wait)
  _core_oldest_library(libdl.so.2 dlclose dlopen dlsym)
endif()

function(core_oldest_glibc target)
  if(core_oldest_libraries)
    target_compile_options(${target} PRIVATE "SHELL:-include \"${core_oldest_glibc_inc}\"")
    # Not as full paths, which CMake would add to the paths where modules look for libraries.
    target_link_libraries(${target} PRIVATE "-L${CMAKE_BINARY_DIR}/oldest_glibc" -Wl,--push-state,--as-needed
      ${core_oldest_libraries} -Wl,--pop-state)
  endif()
endfunction()
