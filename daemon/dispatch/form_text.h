// The text of one kernel's forms: what is read and rewritten of a module, before any assembler
// sees it. A reader does this in a process of its own (daemon/reader). Pure, any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "injector/fence/access_bounds.h"
#include "injector/forms/inject.h"
#include "injector/ptx/module.h"

namespace slate::daemon {

/// What is wanted of a kernel behind the fence.
enum class Fencing : std::uint8_t {
  kNone,    // nothing: its forms without a fence
  kKernel,  // the kernel itself
  kForms,   // its forms
};

/// A launch of a kernel, for whose like its fence is made.
struct FirstLaunch {
  bool is_known = false;
  /// Not 0: the fence was made for other launches before. The number of what is made now, among all
  /// for blocks and dynamic shared memory like these.
  std::uint32_t further = 0;
  std::vector<std::byte> parameters{};
  std::uint32_t grid[3] = {}, block[3] = {};
  std::uint32_t shared_bytes = 0;    // of dynamic shared memory
  std::uint64_t low = 0, bytes = 0;  // the main extent
};

/// A kernel whose forms are wanted as text.
struct FormRequest {
  std::string kernel;
  bool profile = false;         // whether the profile form is wanted
  bool assembled = false;       // whether an assembler compiles the text, which may fuse sums
  bool has_native = false;      // whether the program has machine code, whose bits bind the forms
  std::uint32_t native_sm = 0;  // architecture of that code
  std::uint32_t most_registers = 0;  // limit for the worker form; 0: none
  bool lean = false;                 // whether the limited form keeps no register across blocks
  Fencing fence = Fencing::kNone;
  std::uint32_t reserved_shared = 0;   // as FenceOptions::reserved_shared
  std::uint32_t native_registers = 0;  // limit for the fenced kernel itself; 0: none
  FirstLaunch launch{};                // of the fenced kernel itself
};

/// The text of a kernel's forms, without the kernel unless its code is to be compared. Or the text
/// of the kernel itself behind the fence.
struct FormText {
  std::string ptx;  // empty: the kernel takes no form, or cannot be fenced
  injector::KernelForms forms;
  std::vector<std::string> variables;  // variables of the program's module, in the table's order
  // Behind the fence:
  std::string why_unfenced;            // why the kernel itself has no text; empty: it has
  std::vector<std::string> functions;  // name by FenceRecord::function
  /// What a launch of the kernel's bounded copy has to keep to; without claims there is none.
  injector::AccessBounds bounds;
  std::string unfenced;  // text of the kernel alone, where its code is to be compared; else empty
};

bool has_any(const injector::KernelForms& forms);

/// The module of one kernel and what it needs. Errors: those of injector::extract_kernel().
Result<std::unique_ptr<const ptx::Module>> extract(const ptx::Module& module,
                                                   const std::string& kernel);
/// `kernel`: the module that extract() made of the requested one. Errors: those of
/// injector::inject() and tabulate_variables().
Result<FormText> write_forms_of(const ptx::Module& kernel, const FormRequest& request);
/// Both: `module` has the kernel.
Result<FormText> write_forms(const ptx::Module& module, const FormRequest& request);

/// The answer as bytes. `forms.analysis` loses its views into the module.
std::vector<std::byte> pack(const FormText& text);
/// kInvalidValue for bytes that are no answer to `request`: strangers may have written them. Then
/// each name is one that PTX can have, and each number is finite.
Result<FormText> unpack_form_text(std::span<const std::byte> bytes, const FormRequest& request);

}  // namespace slate::daemon
