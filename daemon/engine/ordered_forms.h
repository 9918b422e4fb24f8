// OrderedForms: the forms of one session's kernels. Those that are known already come at a kernel's
// first launch. Others are made in the background once the kernel matters, and are there for a
// launch some time later. Thread: the session's.
#pragma once

#include <cstdint>
#include <memory>

#include "daemon/engine/fenced_kernels.h"
#include "daemon/engine/form_maker.h"
#include "daemon/engine/function_record.h"
#include "daemon/engine/loaded_modules.h"
#include "daemon/engine/module_loader.h"
#include "device/device.h"

namespace slate::daemon {

class OrderedForms {
 public:
  /// All outlive it. `maker`: null if no kernel has forms.
  OrderedForms(device::Device& device, FormMaker* maker, LoadedModules& loaded,
               FencedKernels& fenced, const Loader& loader, std::uint64_t session)
      : device_(device),
        maker_(maker),
        loaded_(loaded),
        fenced_(fenced),
        loader_(loader),
        session_(session) {}

  /// Takes the forms that have come for a kernel of the image. To be called before each launch of a
  /// kernel that is not settled.
  void attend(FunctionRecord& kernel, const LoadedImage& image);
  /// Orders the forms of a watched kernel once it matters. To be called after each of its launches.
  void order(FunctionRecord& kernel, const LoadedImage& image);

 private:
  void settle(FunctionRecord& kernel, FormMaker::Outcome made, const ProgramModule& own);
  Result<void> load(FunctionRecord& kernel, const MadeForms& made, const ProgramModule& own);

  device::Device& device_;
  FormMaker* const maker_;
  LoadedModules& loaded_;
  FencedKernels& fenced_;
  const Loader& loader_;
  const std::uint64_t session_;
};

}  // namespace slate::daemon
