// ModuleStore: the modules, functions and global variables of one session, by the client's ids. A
// kernel runs as the program's own machine code; its forms come later, for kernels that matter, as
// modules of their own. Session thread only, but for what loaded() says.
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
#include "daemon/engine/form_maker.h"
#include "daemon/engine/image_uploads.h"
#include "daemon/engine/loaded_modules.h"
#include "device/device.h"
#include "injector/forms/placed_variables.h"
#include "ipc/commands.h"

namespace slate::daemon {

/// A rewritten form of a kernel, as the device knows it.
struct FormFunction {
  bool looked_up = false;
  device::Function function{};               // 0: not to be had
  std::optional<device::Function> dispatch;  // its dispatch kernel; 0: none; nothing: not looked up
  std::uint32_t parameter_offset = 0;
  std::uint32_t static_shared_bytes = 0, max_dynamic_shared_bytes = 0;
};

/// How many blocks of a shape fit on an SM.
struct RoomRecord {
  device::Function function{};
  std::uint64_t threads = 0;
  std::uint32_t shared = 0;
  std::uint32_t blocks = 0;
};

/// A shape of blocks for which the worker form was wanted, and had no room.
struct WorkerRefusal {
  std::uint64_t threads = 0;
  std::uint32_t shared = 0;
  bool operator==(const WorkerRefusal&) const = default;
};

/// The profile row of one of its block shapes and sizes of grid.
struct ProfileRecord {
  device::Dim3 block;
  std::uint32_t grid_bucket = 0;
  std::uint32_t kernel = 0;                // scheduler::KernelId
  std::uint64_t repeats_at = 0;            // as LaunchBatch::repeats_at, of a short kernel
  bool shows_forms = false;                // whether the row says which forms there are
  double expected_ms = 0, alone_ms = 0;    // of a launch, then; see LaunchBatch
  bool ahead = false, shares_sms = false;  // how it was launched; see LaunchTarget
};

/// How far a kernel is on its way to having forms.
enum class FormProgress : std::uint8_t {
  kNew,      // not launched yet
  kWatched,  // launched; whether it matters is not known
  kOrdered,  // being made
  kSettled,  // there, or there will be none
};

struct FunctionRecord {
  device::Function function{};
  device::FunctionInfo info;
  std::uint32_t parameter_bytes = 0;  // of the whole block
  std::shared_ptr<const std::string> name;
  std::uint64_t module = 0;
  FormProgress form_progress = FormProgress::kSettled;
  std::uint64_t launches = 0;                    // until that
  std::shared_ptr<FormMaker::Order> form_order;  // while kOrdered
  FormMaker::Outcome made;                       // null: nothing was
  device::Module form_module{};                  // of the forms; 0: none
  const injector::KernelForms* forms = nullptr;  // those of `made`; null: none
  FormFunction worker, compact_worker, slice, profile;
  bool reason_told = false;  // why it does not run in the form asked for
  std::uint64_t code = 0;    // hash of the module's text
  std::vector<RoomRecord> rooms;
  std::vector<WorkerRefusal> refusals;
  std::vector<ProfileRecord> profiles;
  std::optional<std::uint32_t> trace_name;
};

class ModuleStore {
 public:
  static constexpr std::size_t kMostModules = 4096;
  static constexpr std::size_t kMostFunctions = 65536;
  static constexpr std::size_t kMostPlaced = 8192;  // variables, of all modules
  static constexpr std::size_t kMostPlacedNameBytes = 4096;
  /// Whether these bytes are host memory of the session, at an address of this process.
  using OwnsHost = std::function<bool(device::Address address, std::uint64_t bytes)>;

  /// All outlive it. Without a maker kernels have no forms. `session` is who orders them.
  ModuleStore(
      device::Device& device, Compiler& compiler, FormMaker* maker, std::uint64_t session = 0,
      OwnsHost owns_host = [](device::Address, std::uint64_t) { return false; })
      : device_(device),
        compiler_(compiler),
        maker_(maker),
        session_(session),
        owns_host_(std::move(owns_host)),
        loaded_(device) {}

  /// What is loaded on the device. The destructor requires that release() was called.
  LoadedModules& loaded() { return loaded_; }
  const LoadedModules& loaded() const { return loaded_; }

  /// Takes one chunk; the last one loads the module. kProtocol for chunks out of order.
  Result<void> add_chunk(const ipc::ModuleLoad& chunk, std::span<const std::byte> bytes);
  /// Forgets the module and what belongs to it; returns what loaded().unload_now() takes once it is
  /// unused.
  Result<std::vector<device::Module>> forget(std::uint64_t id);

  /// The variable of this name in module `id`, which is still to come, lies at `address`.
  Result<void> place(std::uint64_t id, std::string name, device::Address address);

  Result<const FunctionRecord*> add_function(std::uint64_t module, std::uint64_t id,
                                             const std::string& name);
  Result<FunctionRecord*> find_function(std::uint64_t id);
  /// Before each launch of a kernel that is not settled: takes the forms that are there.
  void attend(FunctionRecord& kernel);
  /// Behind each launch of a kernel that is watched: orders its forms once it matters.
  void order_forms(FunctionRecord& kernel);
  Result<device::AddressRange> find_global(std::uint64_t module, const std::string& name);
  /// True if the bytes lie in one global variable that find_global() has told of.
  bool owns(device::Address address, std::uint64_t bytes) const;

  /// Unloads everything. Requires: no unfinished work.
  void release();

 private:
  struct Module {
    device::Module device{};
    std::shared_ptr<const FormSource> source;  // null: its kernels have no forms
    std::uint64_t code = 0;                    // hash of the image, for its kernels' profiles
  };
  struct Global {
    std::uint64_t bytes;
    std::uint64_t module;
  };
  using Charge = LoadedModules::Charge;

  Result<void> may_begin(std::uint64_t id) const;
  Result<void> load(std::uint64_t id, ModuleImage image);
  Result<Module> load_image(std::uint64_t id, ModuleImage image, Charge& charge);
  Result<Module> load_ptx(std::string text, Charge& charge);
  Result<Module> load_elf(ModuleImage image, Charge& charge);
  Result<std::uint64_t> read_variables(std::string_view text);
  void settle(FunctionRecord& kernel, FormMaker::Outcome made);
  Result<void> load_forms(FunctionRecord& kernel, const MadeForms& made);
  Result<std::vector<std::byte>> placed_code(const MadeForms& made, device::Module module);
  void forget_places(std::uint64_t id);
  Result<std::string> place_variables(std::uint64_t id, std::string_view text);
  Result<const Module*> find_module(std::uint64_t id) const;

  device::Device& device_;
  Compiler& compiler_;
  FormMaker* const maker_;  // null: no forms
  const std::uint64_t session_;
  const OwnsHost owns_host_;
  std::unordered_map<std::uint64_t, std::vector<injector::PlacedVariable>> placed_;  // by module
  std::size_t placed_count_ = 0;
  ImageUploads uploads_;
  std::unordered_map<std::uint64_t, Module> modules_;
  std::unordered_map<std::uint64_t, FunctionRecord> functions_;
  std::map<device::Address, Global> globals_;
  LoadedModules loaded_;
};

}  // namespace slate::daemon
