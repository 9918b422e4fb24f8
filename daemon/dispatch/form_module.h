// FormModule: a module loaded with every form that its kernels can take. All are in one device
// module, so that they share its variables.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "device/device.h"
#include "injector/forms/inject.h"

namespace slate::daemon {

struct FormModule {
  device::Module module{};
  std::vector<injector::KernelForms> kernels;  // `analysis.name` is empty: the text is gone
  std::uint64_t code = 0;                      // hash of the image, for the profiles of its kernels

  const injector::KernelForms* find(std::string_view kernel) const;
};

/// Loads PTX text; the device's load_module(), or something with a cache before it.
using PtxLoader = std::function<Result<device::Module>(std::string_view ptx)>;

/// Makes the forms of the module's text; injector::inject() of it, parsed. Not kept meanwhile, for
/// what is parsed is large. The kernels' `analysis.name` is empty.
using PtxRewriter =
    std::function<Result<injector::InjectedModule>(const injector::InjectOptions& options)>;

/// Of text that is parsed each time, within ptx::ParseLimits::for_text(), and shown to `look`. The
/// text outlives the rewriter.
PtxRewriter rewriter_of(std::string_view text, std::function<void(const ptx::Module&)> look = {});

/// Injects and loads, with the profile form if `profile`. Where a worker form takes so many
/// registers that fewer of its blocks fit on an SM than of the kernel itself, it is made anew with
/// a limit, and if it spills then, lean: each costs another compilation.
Result<FormModule> load_forms(device::Device& device, const PtxRewriter& rewrite,
                              const PtxLoader& load, bool profile = false);

}  // namespace slate::daemon
