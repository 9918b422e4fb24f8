// A module with all forms beside its kernels, for benches and tests that steer them by hand. slated
// makes forms kernel by kernel, apart from the program's module (daemon/dispatch/kernel_forms.h).
#pragma once

#include <algorithm>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "device/device.h"
#include "injector/forms/inject.h"

namespace slate::bench {

struct FormModule {
  device::Module module{};
  std::string ptx;  // as it was loaded
  std::vector<injector::KernelForms> kernels;

  /// Null when the module has no such kernel.
  const injector::KernelForms* find(std::string_view kernel) const {
    const auto found = std::ranges::find(kernels, kernel, &injector::KernelForms::name);
    return found == kernels.end() ? nullptr : &*found;
  }
};

/// `edit` may change the text before it is loaded.
template <typename Edit = std::identity>
Result<FormModule> load_with_forms(device::Device& device, std::string_view text, Edit edit = {}) {
  const auto parsed = ptx::parse(std::string(text));
  if (!parsed) return std::unexpected(parsed.error());
  auto injected = injector::inject(**parsed, {});
  if (!injected) return std::unexpected(injected.error());
  FormModule result{.module = {}, .ptx = edit(std::move(injected->ptx)), .kernels = {}};
  const auto module =
      device.load_module(device::ImageKind::kPtx, std::as_bytes(std::span(result.ptx)));
  if (!module) return std::unexpected(module.error());
  result.module = *module;
  for (injector::KernelForms& kernel : injected->kernels) {
    kernel.analysis.name = {};  // of the text, which is gone
    result.kernels.push_back(std::move(kernel));
  }
  return result;
}

}  // namespace slate::bench
