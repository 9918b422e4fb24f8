# slate_library(NAME SOURCES... [PUBLIC_LIBS ...] [LIBS ...]): one static library with slate's options.
function(slate_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;PUBLIC_LIBS;LIBS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_link_libraries(${name} PUBLIC slate_options ${ARG_PUBLIC_LIBS} PRIVATE ${ARG_LIBS})
endfunction()

# slate_test(NAME SOURCES ... LIBS ... [LABELS ...] [ENV VAR=VALUE...]): a GoogleTest binary, one CTest
# entry per test case. Default label: unit. Label unit.serial: for what has no threads, which is not built for
# ThreadSanitizer; one label only, as CMake 3.25 loses a second one.
function(slate_test name)
  cmake_parse_arguments(ARG "" "TIMEOUT" "SOURCES;LIBS;LABELS;ENV" ${ARGN})
  if(NOT ARG_LABELS)
    set(ARG_LABELS unit)
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
    if(SLATE_SANITIZE MATCHES thread)
      set(ARG_TIMEOUT 400)  # the longest takes about 200 s there
    endif()
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE slate_options ${ARG_LIBS} GTest::gtest GTest::gtest_main)
  # Run once for each time that they are compiled, they would take a quarter longer at -O3 in all.
  target_compile_options(${name} PRIVATE $<$<AND:$<CONFIG:Release>,$<COMPILE_LANGUAGE:CXX>>:-O1>)
  if(ARG_LABELS STREQUAL "unit.serial" AND SLATE_SANITIZE MATCHES "thread")
    set_target_properties(${name} PROPERTIES EXCLUDE_FROM_ALL TRUE)
    return()
  endif()
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60
    PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT ${ARG_TIMEOUT} ENVIRONMENT "${ARG_ENV}")
endfunction()
