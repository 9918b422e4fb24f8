// The functions that CUDA's driver has built in, as functions of our own: printf and assert
// (printing.h), malloc and free (heap.h). The driver's work in the one context that all programs
// share; with_builtins() links in others, that work in what is the session's. Text in, text out;
// pure function, any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace slate::ptx {

struct WithBuiltins {
  std::string text;
  bool prints = false;     // has kPrintRingVariable
  bool allocates = false;  // has kHeapVariable
};

/// The module with those functions in it that it declares: vprintf, __assertfail, malloc, free.
/// Nothing when it declares none of them, which costs a few searches of the text, or cannot be
/// scanned.
std::optional<WithBuiltins> with_builtins(std::string_view module);

/// Functions that every loader supplies, be it as here or by itself.
bool is_device_builtin(std::string_view function);

}  // namespace slate::ptx
