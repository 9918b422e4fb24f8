// A row of a conformance program: its name, then what one call answered. cudart's rows and those of
// libcuda differ only in how an answer is printed: an end_row() of each. One thread.
#pragma once

#include <cstdio>
#include <set>
#include <string>

namespace conformance {

/// The rows that the command line says to leave out.
inline std::set<std::string> left_out;

/// Prints a row's name, so that it is known if the call ends the program. False, and "crash" as the
/// answer, for the rows that are left out.
inline bool begin_row(const char* name) {
  std::printf("%s: ", name);
  if (left_out.contains(name)) {
    std::printf("crash\n");
    return false;
  }
  std::fflush(stdout);
  return true;
}

/// ROW(name, call[, more]): a row of a call. `more` is looked at after the call, as an argument of
/// a function would not be.
#define ROW(name, call, ...)                                       \
  do {                                                             \
    if (::conformance::begin_row(name)) {                          \
      const auto returned = (call);                                \
      ::conformance::end_row(returned __VA_OPT__(, ) __VA_ARGS__); \
    }                                                              \
  } while (false)

/// A value of an enum that it does not have.
template <typename Enum>
Enum unknown(int number) {
  return static_cast<Enum>(number);
}

}  // namespace conformance
