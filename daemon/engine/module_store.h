// ModuleStore: the modules, functions and global variables of one session, by the client's ids. A
// kernel runs as the program's own machine code. Kernels that matter get forms later, as modules of
// their own. Session thread only, but for what loaded() says.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "daemon/engine/compiler.h"
#include "daemon/engine/fenced_kernels.h"
#include "daemon/engine/form_maker.h"
#include "daemon/engine/function_record.h"
#include "daemon/engine/image_store.h"
#include "daemon/engine/image_uploads.h"
#include "daemon/engine/loaded_modules.h"
#include "daemon/engine/module_loader.h"
#include "daemon/engine/ordered_forms.h"
#include "daemon/engine/session_fence.h"
#include "device/device.h"
#include "ipc/commands.h"

namespace slate::daemon {

class ModuleStore {
 public:
  static constexpr std::size_t kMostModules = 4096;
  static constexpr std::size_t kMostFunctions = 65536;
  static constexpr std::size_t kMostPlacedNameBytes = 4096;
  /// Called for each module that was loaded. `home`: address of its variables' home; 0: it has
  /// none. `variables`: bytes of variables that are the driver's.
  using Loaded =
      std::function<void(std::uint64_t id, std::uint32_t kind, std::span<const std::byte> image,
                         std::string_view source, device::Address home, std::uint64_t variables)>;
  /// What the session has forgotten, to be given back once it is unused.
  struct Forgotten {
    std::vector<device::Module> modules;  // for loaded().unload_now()
    device::Address home = 0;             // of the variables; 0: there is none
  };

  /// All outlive it. Without a maker kernels have no forms. `session` orders the forms. `images`
  /// has what sessions of the loader's user have brought. `fence`: null if there is none.
  ModuleStore(
      device::Device& device, Compiler& compiler, FormMaker* maker, std::uint64_t session = 0,
      ModuleLoader::OwnsHost owns_host = [](device::Address, std::uint64_t) { return false; },
      std::shared_ptr<ImageStore> images = std::make_shared<ImageStore>(0), Loader loader = {},
      SessionFence* fence = nullptr)
      : device_(device),
        maker_(maker),
        session_(session),
        images_(std::move(images)),
        loader_(std::move(loader)),
        fence_(fence),
        loading_(device, compiler, maker != nullptr, std::move(owns_host), loader_),
        loaded_(device),
        fenced_(device, maker, loaded_, fence, loader_, session),
        forms_(device, maker, loaded_, fenced_, loader_, session) {}

  /// The modules on the device. Requires: release() is called before the destructor.
  LoadedModules& loaded() { return loaded_; }
  const LoadedModules& loaded() const { return loaded_; }

  /// Calls `loaded` from now on.
  void report(Loaded loaded) { report_ = std::move(loaded); }
  /// Asks `puts_off` before a module without PTX is loaded, from now on. If it says true, the
  /// module is not loaded, and the same chunk or offer is expected again.
  void ask_before_unfenced(std::function<bool()> puts_off) { puts_off_ = std::move(puts_off); }
  /// One attempt to load a module. Errors: kOutOfMemory where another one may succeed.
  using Attempt = std::function<Result<void>()>;
  /// Has `by` make the attempts, from now on, until one succeeds or no other will.
  void load_by(std::function<void(const Attempt&)> by) { attempts_ = std::move(by); }
  /// As ModuleLoader::give_homes().
  void give_homes(VariableHomes::Memory memory) { loading_.give_homes(std::move(memory)); }
  /// Whether the load of a module was put off that came in chunks.
  bool has_put_off() const { return put_off_.has_value(); }
  /// Loads the module of a whole image. `past`: the home of its variables in another engine.
  Result<void> load_whole(std::uint64_t id, ModuleImage image,
                          std::optional<device::Address> past = std::nullopt);

  /// Adds one chunk; the last one loads the module. kProtocol for chunks out of order.
  Result<void> add_chunk(const ipc::ModuleLoad& chunk, std::span<const std::byte> bytes);
  /// Loads the module if its image is known. False when it has to come in chunks.
  Result<bool> offer(const ipc::ModuleOffer& offered);
  /// Forgets the module and its functions and variables.
  Result<Forgotten> forget(std::uint64_t id);

  /// Places the variable of this name in the coming module `id` at `address`.
  Result<void> place(std::uint64_t id, std::string name, device::Address address);

  Result<const FunctionRecord*> add_function(std::uint64_t module, std::uint64_t id,
                                             const std::string& name);
  Result<FunctionRecord*> find_function(std::uint64_t id);
  /// The kernel of this id behind the fence. Errors and requirements as FencedKernels::find().
  Result<FunctionRecord*> fenced(std::uint64_t id, FunctionRecord& kernel, const LaunchOf& launch);
  /// As FencedKernels::attend_unserved().
  void attend_unserved(std::uint64_t id, const FunctionRecord& kernel,
                       const injector::LaunchValues& launch);
  /// As FencedKernels::why_not().
  std::string why_unfenced(std::uint64_t id) const { return fenced_.why_not(id); }
  /// What the kernel reaches, by its PTX. Errors: kNotSupported without PTX; those of TextReader.
  Result<injector::Reach> reach_of(const FunctionRecord& kernel);
  /// As OrderedForms::attend() and order().
  void attend(FunctionRecord& kernel);
  void order_forms(FunctionRecord& kernel);
  Result<device::AddressRange> find_global(std::uint64_t module, const std::string& name);
  /// Where a variable of the kernel's module is at home; nullopt: it is the driver's.
  std::optional<device::AddressRange> at_home(const FunctionRecord& kernel,
                                              const std::string& variable) const;
  /// Whether the byte is in the home of some module's variables, and which variable it is of there;
  /// nullopt: none.
  bool is_home(device::Address address) const { return home_at(address) != nullptr; }
  std::optional<device::AddressRange> variable_at(device::Address address) const;
  /// Whether a launch of the kernel may write constants, other than by a pointer among its
  /// parameters. It reads the kernel's text once that is worth its time.
  bool may_write_constants(FunctionRecord& kernel);
  /// Whether the bytes lie in one global variable that find_global() has returned.
  bool owns(device::Address address, std::uint64_t bytes) const;

  /// Unloads everything. Requires: no unfinished work.
  void release();

 private:
  struct Module : LoadedImage {
    std::uint64_t code = 0;  // hash of the image, for its kernels' profiles
  };
  struct Global {
    std::uint64_t bytes;
    std::uint64_t module;
  };
  using Charge = LoadedModules::Charge;
  using PastHome = ModuleLoader::PastHome;

  Result<void> may_begin(std::uint64_t id) const;
  bool is_put_off(std::uint32_t kind, std::string_view source) const;
  Result<void> load(std::uint64_t id, ModuleImage image, PastHome past = std::nullopt);
  Result<LoadedImage> attempt(const std::function<Result<LoadedImage>()>& load);
  Result<void> add(std::uint64_t id, const DigestBytes& digest, Charge& charge,
                   Result<LoadedImage> loaded);
  void report(std::uint64_t id, std::uint32_t kind, std::span<const std::byte> image,
              std::string_view source, std::uint64_t variables) const;
  Result<const Module*> find_module(std::uint64_t id) const;
  const ModuleHome* home_at(device::Address address) const;
  Result<FoundFunction> find_kernel(const Module& module, const std::string& name);

  device::Device& device_;
  FormMaker* const maker_;  // null: no forms
  const std::uint64_t session_;
  const std::shared_ptr<ImageStore> images_;
  const Loader loader_;
  SessionFence* const fence_;  // null: there is none
  ModuleLoader loading_;
  ImageUploads uploads_;
  std::unordered_map<std::uint64_t, Module> modules_;
  std::unordered_map<std::uint64_t, FunctionRecord> functions_;
  std::map<device::Address, Global> globals_;
  LoadedModules loaded_;
  FencedKernels fenced_;
  OrderedForms forms_;
  Loaded report_;                                                 // may be empty
  std::function<bool()> puts_off_;                                // may be empty
  std::function<void(const Attempt&)> attempts_;                  // empty: there is one
  std::optional<std::pair<std::uint64_t, ModuleImage>> put_off_;  // module whose load was put off
};

}  // namespace slate::daemon
