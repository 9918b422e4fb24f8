# Compiler settings that every slate target shares, carried by the interface target slate_options.
add_library(slate_options INTERFACE)
target_include_directories(slate_options INTERFACE ${CMAKE_SOURCE_DIR})

set(slate_cxx_warnings -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion
    -Wnon-virtual-dtor -Woverloaded-virtual -Wcast-align -Wnull-dereference
    -Wno-restrict)  # g++ 12 sees overlap in "x" + string at -O3
if(SLATE_WERROR)
  list(APPEND slate_cxx_warnings -Werror)
endif()
if(SLATE_FUZZ)
  # clang compiles for libFuzzer only: g++ is the compiler whose warnings count.
  set(slate_cxx_warnings -w)
  add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:-fsanitize=fuzzer-no-link>")
  if(CMAKE_CXX_COMPILER_VERSION VERSION_LESS 19)
    # std::expected of libstdc++ asks for the last number of concepts, which clang has from version 19 on.
    add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:-U__cpp_concepts;-D__cpp_concepts=202002L>")
  endif()
endif()
target_compile_options(slate_options INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:${slate_cxx_warnings}>")

target_compile_definitions(slate_options INTERFACE SLATE_VERSION="${PROJECT_VERSION}")

find_package(Threads REQUIRED)
target_link_libraries(slate_options INTERFACE Threads::Threads)

if(SLATE_SANITIZE)
  # -fno-sanitize-recover: a finding fails the test instead of scrolling by. -fno-sanitize=enum: cudart's functions take
  # enumerators by value and promise an error for values that are none, so such values must be loaded to be refused.
  # -fno-sanitize=vptr: it probes memory through a pipe, which ThreadSanitizer takes for a race of the program's threads.
  set(unchecked enum)
  if(SLATE_SANITIZE MATCHES thread)
    string(APPEND unchecked ",vptr")
  endif()
  add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${SLATE_SANITIZE};-fno-sanitize=${unchecked};-fno-sanitize-recover=all;-fno-omit-frame-pointer>")
  add_link_options(-fsanitize=${SLATE_SANITIZE})
endif()
if(SLATE_SANITIZE OR CMAKE_UNITY_BUILD)
  # GCC's flow analysis invents null dereferences and uninitialised reads in instrumented code, and in large units.
  target_compile_options(slate_options INTERFACE
    "$<$<COMPILE_LANGUAGE:CXX>:-Wno-null-dereference;-Wno-maybe-uninitialized>")
endif()

find_program(SLATE_CCACHE ccache)
if(SLATE_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${SLATE_CCACHE})
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${SLATE_CCACHE})
endif()
