// The forms of one kernel as code of their own, apart from the program's module. Their variables
// stay in that module: the code has a table for their addresses. So the same code serves every
// session that loads the same kernel, and can be kept.
//
// Pure functions, any thread. What they cost is the assembler's time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "device/device.h"
#include "injector/forms/extract.h"
#include "injector/forms/inject.h"

namespace slate::daemon {

/// The forms of a kernel, or the reason why it has none.
struct MadeForms {
  injector::KernelForms forms;         // `analysis.name` is empty: the text is gone
  std::vector<std::string> variables;  // of the program's module, in the table's order
  device::ImageKind kind = device::ImageKind::kPtx;
  std::vector<std::byte> code;
  std::string why_none;  // not empty: there is no code
  double cost_ms = 0;    // time that making them took
};

/// A kernel without forms: the analysis, too, gives `why` for each.
MadeForms without_forms(const std::string& kernel, const std::string& why);

/// From PTX texts to one machine code of all, with the device's runtime: Device::link().
using FormLinker =
    std::function<Result<std::vector<std::byte>>(std::span<const std::string> texts)>;

/// A kernel whose forms are wanted.
struct FormOrder {
  std::string kernel;
  std::span<const std::byte> native;  // machine code of its module; empty: unknown
  bool profile = false;               // whether the profile form is wanted
  /// Null: no dispatch kernels are wanted beside the worker forms (device_dispatch.h).
  FormLinker link = nullptr;
};

/// From PTX to machine code for the device. Empty where the device takes PTX.
using FormCompiler = std::function<Result<std::vector<std::byte>>(std::string_view ptx)>;

/// A worker form that takes so many registers that fewer of its blocks fit on an SM than of the
/// kernel itself is made again with a limit, and if it spills then, lean. What the kernel cannot
/// have is a reason in the answer; an error is a want of memory or time, and may be gone next time.
Result<MadeForms> make_forms(const ptx::Module& module, const FormOrder& order,
                             const FormCompiler& compile);

/// The code, with the addresses of its variables. Requires: one for each of `made.variables`.
Result<std::vector<std::byte>> code_with_addresses(const MadeForms& made,
                                                   std::span<const device::Address> addresses);

/// Which forms there are and what they cost, or why there are none, in words.
std::string describe(const MadeForms& made);

/// For the cache.
std::vector<std::byte> pack(const MadeForms& made);
/// kInvalidValue for bytes that pack() of this version did not write.
Result<MadeForms> unpack(std::span<const std::byte> bytes);

}  // namespace slate::daemon
