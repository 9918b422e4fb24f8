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
#include "daemon/engine/form_maker.h"
#include "daemon/engine/image_store.h"
#include "daemon/engine/image_uploads.h"
#include "daemon/engine/loaded_modules.h"
#include "daemon/engine/session_fence.h"
#include "device/device.h"
#include "injector/forms/placed_variables.h"
#include "ipc/commands.h"

namespace slate::daemon {

/// A rewritten form of a kernel on the device.
struct FormFunction {
  bool looked_up = false;
  device::Function function{};               // 0: not possible
  std::optional<device::Function> dispatch;  // 0: none; nothing: not looked up
  std::uint32_t parameter_offset = 0;
  std::uint32_t static_shared_bytes = 0, max_dynamic_shared_bytes = 0;
};

/// The number of blocks of a shape that fit on an SM.
struct RoomRecord {
  device::Function function{};
  std::uint64_t threads = 0;
  std::uint32_t shared = 0;
  std::uint32_t blocks = 0;
};

/// A shape of blocks for which the worker form had no room.
struct WorkerRefusal {
  std::uint64_t threads = 0;
  std::uint32_t shared = 0;
  bool operator==(const WorkerRefusal&) const = default;
};

/// The profile row of a kernel's block shape and size of grid.
struct ProfileRecord {
  device::Dim3 block;
  std::uint32_t grid_bucket = 0;
  std::uint32_t kernel = 0;                // scheduler::KernelId
  std::uint64_t repeats_at = 0;            // as LaunchBatch::repeats_at, for a short kernel
  bool shows_forms = false;                // whether the row shows which forms there are
  double expected_ms = 0, alone_ms = 0;    // times of a repeated launch; see LaunchBatch
  bool ahead = false, shares_sms = false;  // placement of a repeated launch; see LaunchTarget
};

/// The state of a kernel's forms.
enum class FormProgress : std::uint8_t {
  kNew,      // not launched yet
  kWatched,  // launched; it is not known whether it matters
  kOrdered,  // its forms are being made
  kSettled,  // its forms are there, or never will be
};

struct FunctionRecord {
  device::Function function{};
  device::FunctionInfo info;
  std::uint32_t parameter_bytes = 0;  // bytes of the whole parameter block
  std::shared_ptr<const std::string> name;
  std::uint64_t module = 0;
  std::shared_ptr<SharedModule> shared;  // what `function` is of; null: a module of the session's
  FormProgress form_progress = FormProgress::kSettled;
  std::uint64_t launches = 0;                    // launches before its forms were ordered
  std::shared_ptr<FormMaker::Order> form_order;  // the order while kOrdered
  FormMaker::Outcome made;                       // null: nothing was made
  device::Module form_module{};                  // module of the forms; 0: none
  bool is_fenced = false;                        // whether `function` and the forms are
  const injector::KernelForms* forms = nullptr;  // forms of `made`; null: none
  FormFunction worker, compact_worker, slice, profile;
  bool reason_told = false;  // whether the log says why the chosen form is not possible
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
  static constexpr std::size_t kMostPlaced = 8192;  // placed variables of all modules
  static constexpr std::size_t kMostPlacedNameBytes = 4096;
  /// Whether these bytes are the session's host memory, at an address of this process.
  using OwnsHost = std::function<bool(device::Address address, std::uint64_t bytes)>;

  /// Called for each module that was loaded. `variables`: bytes of its variables.
  using Loaded =
      std::function<void(std::uint64_t id, std::uint32_t kind, std::span<const std::byte> image,
                         std::string_view source, std::uint64_t variables)>;

  /// All outlive it. Without a maker kernels have no forms. `session` orders the forms. `images`
  /// has what sessions of the loader's user have brought. `fence`: null if there is none.
  ModuleStore(
      device::Device& device, Compiler& compiler, FormMaker* maker, std::uint64_t session = 0,
      OwnsHost owns_host = [](device::Address, std::uint64_t) { return false; },
      std::shared_ptr<ImageStore> images = std::make_shared<ImageStore>(0), Loader loader = {},
      SessionFence* fence = nullptr)
      : device_(device),
        compiler_(compiler),
        maker_(maker),
        session_(session),
        owns_host_(std::move(owns_host)),
        images_(std::move(images)),
        loader_(std::move(loader)),
        fence_(fence),
        loaded_(device) {}

  /// The modules on the device. Requires: release() is called before the destructor.
  LoadedModules& loaded() { return loaded_; }
  const LoadedModules& loaded() const { return loaded_; }

  /// Calls `loaded` from now on.
  void report(Loaded loaded) { report_ = std::move(loaded); }
  /// Loads the module of a whole image. `source`: as ModuleImage::source.
  Result<void> load_whole(std::uint64_t id, std::uint32_t kind, std::vector<std::byte> image,
                          std::string source);

  /// Adds one chunk; the last one loads the module. kProtocol for chunks out of order.
  Result<void> add_chunk(const ipc::ModuleLoad& chunk, std::span<const std::byte> bytes);
  /// Loads the module if its image is known. False when it has to come in chunks.
  Result<bool> offer(const ipc::ModuleOffer& offered);
  /// Forgets the module and its functions and variables. Returns the modules for
  /// loaded().unload_now(), once they are unused.
  Result<std::vector<device::Module>> forget(std::uint64_t id);

  /// Places the variable of this name in the coming module `id` at `address`.
  Result<void> place(std::uint64_t id, std::string name, device::Address address);

  Result<const FunctionRecord*> add_function(std::uint64_t module, std::uint64_t id,
                                             const std::string& name);
  Result<FunctionRecord*> find_function(std::uint64_t id);
  /// The kernel of this id behind the fence: it is made with the first call, which may take the
  /// assembler's time. Null: it cannot be fenced, and the log says why. Errors: those of loading
  /// it.
  Result<FunctionRecord*> fenced(std::uint64_t id, FunctionRecord& kernel);
  /// Why it cannot; empty: it can, or was not asked for.
  std::string why_unfenced(std::uint64_t id) const;
  /// What the kernel reaches, by its PTX. Errors: kNotSupported without PTX; those of TextReader.
  Result<injector::Reach> reach_of(const FunctionRecord& kernel);
  /// Takes the forms that have come. To be called before each launch of a kernel that is not
  /// settled.
  void attend(FunctionRecord& kernel);
  /// Orders the forms of a watched kernel once it matters. To be called after each of its launches.
  void order_forms(FunctionRecord& kernel);
  Result<device::AddressRange> find_global(std::uint64_t module, const std::string& name);
  /// Whether the bytes lie in one global variable that find_global() has returned.
  bool owns(device::Address address, std::uint64_t bytes) const;

  /// Unloads everything. Requires: no unfinished work.
  void release();

 private:
  struct Module {
    device::Module device{};
    std::shared_ptr<const FormSource> source;  // null: its kernels have no forms
    std::uint64_t code = 0;                    // hash of the image, for its kernels' profiles
    ImageStore::Image image;                   // null: not one that sessions share
    std::shared_ptr<SharedModule> shared;      // what `device` is of; null: the session's own

    std::uint64_t bytes() const {
      return (source ? source->bytes() : 0) + (image ? image->bytes.size() : 0);
    }
  };
  struct Global {
    std::uint64_t bytes;
    std::uint64_t module;
  };
  /// A kernel behind the fence.
  struct Fenced {
    FunctionRecord kernel;
    device::Module module{};  // what kernel.function is of
    std::string why_not;      // why it cannot be fenced; empty: it is
  };
  using Charge = LoadedModules::Charge;

  Result<void> may_begin(std::uint64_t id) const;
  Result<void> load(std::uint64_t id, ModuleImage image);
  Result<void> add(std::uint64_t id, const DigestBytes& digest, Charge& charge,
                   Result<Module> loaded);
  Result<Module> load_known(const ImageStore::Image& image, Charge& charge);
  Result<Module> load_image(std::uint64_t id, const ModuleImage& image, Charge& charge);
  Result<Module> load_ptx(std::string text, Charge& charge);
  Result<Module> load_elf(const ModuleImage& image, Charge& charge);
  void settle(FunctionRecord& kernel, FormMaker::Outcome made);
  Result<void> load_forms(FunctionRecord& kernel, const MadeForms& made);
  Result<device::Module> load_made(const FunctionRecord& kernel, const MadeForms& made);
  Result<Fenced> make_fenced(const FunctionRecord& kernel);
  Result<void> tell_fence(const FunctionRecord& kernel, device::Module module,
                          const MadeForms& made);
  Result<std::vector<std::byte>> placed_code(const MadeForms& made, device::Module module);
  void forget_places(std::uint64_t id);
  Result<std::string> place_variables(std::uint64_t id, std::string_view text);
  Result<const Module*> find_module(std::uint64_t id) const;
  Result<FoundFunction> find_kernel(const Module& module, const std::string& name);

  device::Device& device_;
  Compiler& compiler_;
  FormMaker* const maker_;  // null: no forms
  const std::uint64_t session_;
  const OwnsHost owns_host_;
  const std::shared_ptr<ImageStore> images_;
  const Loader loader_;
  SessionFence* const fence_;  // null: there is none
  std::unordered_map<std::uint64_t, std::vector<injector::PlacedVariable>> placed_;  // by module
  std::size_t placed_count_ = 0;
  ImageUploads uploads_;
  std::unordered_map<std::uint64_t, Module> modules_;
  std::unordered_map<std::uint64_t, FunctionRecord> functions_;
  std::unordered_map<std::uint64_t, Fenced> fenced_;  // by the client's id of the function
  std::map<device::Address, Global> globals_;
  LoadedModules loaded_;
  Loaded report_;  // may be empty
};

}  // namespace slate::daemon
