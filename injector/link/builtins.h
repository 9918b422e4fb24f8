// The functions that CUDA's driver has built in, as functions of our own: printf and assert
// (printing.h), malloc and free (heap.h). The driver's functions work in the one context that all
// programs share. with_builtins() links in functions that work in memory of the session. Text in,
// text out; a pure function. Thread: any.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace slate::ptx {

/// A module with our functions.
struct WithBuiltins {
  std::string text;
  bool prints = false;     // whether it has kPrintRingVariable
  bool allocates = false;  // whether it has kHeapVariable
};

/// The module with our functions in place of the declarations of vprintf, __assertfail, malloc and
/// free. Returns nullopt when it declares none of them, which costs a few searches of the text, or
/// cannot be scanned.
std::optional<WithBuiltins> with_builtins(std::string_view module);

/// Whether every loader supplies the function, as here or by itself.
bool is_device_builtin(std::string_view function);

}  // namespace slate::ptx
