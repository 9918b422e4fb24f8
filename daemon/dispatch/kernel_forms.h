// The forms of one kernel as code of their own, apart from the program's module. Their variables
// stay in that module: the code has a table for their addresses. So one code serves every session
// that loads the same kernel, and can be kept.
//
// Functions without a state, any thread. They take the reader's and the assembler's time.
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
#include "daemon/dispatch/form_text.h"
#include "device/device.h"

namespace slate::daemon {

/// The forms of a kernel, or the reason why it has none.
struct MadeForms {
  injector::KernelForms forms;         // `analysis.name` is empty, as the text is gone
  std::vector<std::string> variables;  // variables of the program's module, in the table's order
  device::ImageKind kind = device::ImageKind::kPtx;
  std::vector<std::byte> code;
  std::string why_none;                // the reason for no code; empty: there is code
  std::vector<std::string> functions;  // behind the fence: name by FenceRecord::function
  injector::AccessBounds bounds;       // behind the fence: as FormText::bounds
  double cost_ms = 0;                  // time spent on making the forms
};

/// A kernel without forms; its analysis gives `why` for each form, too.
MadeForms without_forms(const std::string& kernel, const std::string& why);

/// Links PTX texts to one machine code, with the device's runtime: Device::link().
using FormLinker =
    std::function<Result<std::vector<std::byte>>(std::span<const std::string> texts)>;

/// A kernel whose forms are wanted.
struct FormOrder {
  std::string kernel;
  std::span<const std::byte> native;  // machine code of its module; empty: unknown
  bool profile = false;               // whether the profile form is wanted
  /// Links worker forms with their dispatch kernels (device_dispatch.h); null: none are wanted.
  FormLinker link = nullptr;
  Fencing fence = Fencing::kNone;     // as in FormRequest
  std::uint32_t reserved_shared = 0;  // as in FormRequest
  FirstLaunch launch{};               // as in FormRequest
};

/// Compiles PTX to machine code for the device. Empty where the device takes PTX.
using FormCompiler = std::function<Result<std::vector<std::byte>>(std::string_view ptx)>;

/// As write_forms(), here or in a reader's process.
using FormWriter = std::function<Result<FormText>(const FormRequest& request)>;
/// Writes forms in this process. `module` outlives it.
inline FormWriter writer_of(const ptx::Module& module) {
  return [&module](const FormRequest& request) { return write_forms(module, request); };
}

/// Makes the forms. A worker form whose registers let fewer blocks on an SM than the kernel's is
/// made again with a limit. If it spills then, it is made lean.
/// A form that the kernel cannot have is a reason in the answer. An error is a lack of memory or
/// time, and may be gone next time.
Result<MadeForms> make_forms(const FormWriter& write, const FormOrder& order,
                             const FormCompiler& compile);

/// The code with its variables' addresses. Requires: one address for each of `made.variables`.
Result<std::vector<std::byte>> code_with_addresses(const MadeForms& made,
                                                   std::span<const device::Address> addresses);

/// The forms and their cost, or why there are none, in words.
std::string describe(const MadeForms& made);

/// The forms as bytes for the cache.
std::vector<std::byte> pack(const MadeForms& made);
/// kInvalidValue for bytes that pack() of this version did not write.
Result<MadeForms> unpack(std::span<const std::byte> bytes);

}  // namespace slate::daemon
