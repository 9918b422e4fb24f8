// FencedKernels: the kernels of one session behind the fence, by the client's ids. Each has code of
// its own, made with the first launch that has to be fenced. Its forms follow as those of other
// kernels do (ordered_forms.h). Thread: the session's.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "daemon/engine/form_maker.h"
#include "daemon/engine/function_record.h"
#include "daemon/engine/loaded_modules.h"
#include "daemon/engine/session_fence.h"
#include "daemon/engine/variable_homes.h"
#include "device/device.h"

namespace slate::daemon {

/// Says what the launch is.
using LaunchOf = std::function<injector::LaunchValues()>;

class FencedKernels {
 public:
  /// All outlive it. `fence`: null if no kernel is ever fenced.
  FencedKernels(device::Device& device, FormMaker* maker, LoadedModules& loaded,
                SessionFence* fence, const Loader& loader, std::uint64_t session)
      : device_(device),
        maker_(maker),
        loaded_(loaded),
        fence_(fence),
        loader_(loader),
        session_(session) {}

  /// The kernel behind the fence, which is made with its first launch, the given one, in mind. The
  /// first call may take the assembler's time. Null: it cannot be
  /// fenced, and the log says why. `source`: of its module, `own`; null: there is no PTX. Errors:
  /// those of loading it. Requires: there is a fence, and it is on.
  Result<FunctionRecord*> find(std::uint64_t id, FunctionRecord& kernel,
                               const std::shared_ptr<const FormSource>& source,
                               const ProgramModule& own, const LaunchOf& launch);
  /// No bounded copy serves a launch of the kernel. The cache's copies for blocks like its are
  /// taken until one serves it. When there is none and such launches come again, a copy is made in
  /// the background, and is there for a launch some time later, if it can be had. Requires: find()
  /// has returned the kernel.
  void attend_unserved(std::uint64_t id, const std::shared_ptr<const FormSource>& source,
                       const ProgramModule& own, const injector::LaunchValues& launch);
  /// Why the kernel cannot be fenced; empty: it can, or find() was not called.
  std::string why_not(std::uint64_t id) const;
  /// Tells the fence of a module that was made of the kernel, and of the variables that it reaches.
  Result<void> tell(const FunctionRecord& kernel, device::Module module, const MadeForms& made,
                    const ProgramModule& own);
  /// Forgets the kernels of a module of the client's. Returns their modules on the device.
  std::vector<device::Module> forget(std::uint64_t module);
  void clear() { kernels_.clear(); }

 private:
  /// Blocks and dynamic shared memory of launches that no bounded copy has served.
  struct Shape {
    std::uint32_t block[3] = {};
    std::uint32_t shared_bytes = 0;
    std::uint32_t launches = 0;  // since the last copy was looked for
    std::uint32_t copies = 0;    // that were looked for
  };

  struct Fenced {
    FunctionRecord kernel;
    device::Module module{};                // what kernel.function is of
    std::string why_not;                    // why it cannot be fenced; empty: it is
    std::vector<device::Module> further{};  // what its further bounded copies are of
    std::vector<Shape> shapes{};
    std::shared_ptr<FormMaker::Order> copy_order{};  // null: none is being made
  };

  Result<void> add_copy(FunctionRecord& fenced, const MadeForms& made, device::Module module,
                        const ProgramModule& own);
  Result<Fenced> make(const FunctionRecord& kernel, const std::shared_ptr<const FormSource>& source,
                      const ProgramModule& own, const LaunchOf& launch);

  void take_copy(Fenced& fenced, const MadeForms& made, const ProgramModule& own);
  Result<std::shared_ptr<OwnConstantSet>> constants_of(const MadeForms& made, device::Module module,
                                                       const ProgramModule& own);

  device::Device& device_;
  FormMaker* const maker_;  // null: no kernel has a source
  LoadedModules& loaded_;
  SessionFence* const fence_;  // null: there is none
  const Loader& loader_;
  const std::uint64_t session_;
  std::unordered_map<std::uint64_t, Fenced> kernels_;
};

}  // namespace slate::daemon
