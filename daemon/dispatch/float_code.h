// Whether the rewritten forms of a kernel compute the same bits as the program's own machine code.
// They may not, where an assembler fuses multiplications and additions (docs/injector.md, "Bits").
// Reads cubins, which may be anything: bounds-checked, linear. Pure functions, any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "injector/forms/inject.h"

namespace slate::daemon {

/// How the floating-point instructions of two entries compare.
enum class FloatMatch : std::uint8_t {
  kSameCode,   // the same machine code, byte for byte
  kSameCount,  // as many multiplications, and as many fused multiply-adds, of each type
  kDiffers,
  kUnknown,  // one of the entries is missing, or its code is not understood
};

/// An entry of a cubin.
struct CodeEntry {
  std::span<const std::byte> cubin;
  std::string_view name;
};

FloatMatch match_float_code(const CodeEntry& one, const CodeEntry& other);

/// 90 for code for sm_90; 0 for anything but machine code.
std::uint32_t architecture_of(std::span<const std::byte> cubin);

/// Why the entry `form` must not replace the kernel's own machine code in `native`; empty: it may.
/// `forms`: machine code of an InjectedModule, made with InjectOptions::settle_sums. `own`: machine
/// code of its text with the kernel's own entry, which may be the same. Requires: it is there if
/// needs_own_entry().
std::string why_bits_may_differ(const injector::KernelForms& kernel, std::string_view form,
                                std::span<const std::byte> native, std::span<const std::byte> own,
                                std::span<const std::byte> forms);

/// Whether why_bits_may_differ() compares machine code for `native_sm` with the assembler's output
/// for the kernel's text. Other kernels' texts need not be compiled.
bool needs_own_entry(const injector::KernelForms& kernel, std::uint32_t native_sm);

}  // namespace slate::daemon
