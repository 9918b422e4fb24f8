// ModuleLoader: brings a session's images onto the device, with their variables where they belong:
// managed ones where the client has placed them, the others at home (variable_homes.h). Thread: the
// session's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "daemon/engine/compiler.h"
#include "daemon/engine/form_maker.h"
#include "daemon/engine/image_store.h"
#include "daemon/engine/image_uploads.h"
#include "daemon/engine/loaded_modules.h"
#include "daemon/engine/variable_homes.h"
#include "device/device.h"
#include "injector/forms/placed_variables.h"

namespace slate::daemon {

/// An image that is on the device.
struct LoadedImage {
  ProgramModule own;
  std::shared_ptr<const FormSource> source;  // null: its kernels have no forms
  ImageStore::Image image;                   // null: not one that sessions share
  std::shared_ptr<SharedModule> shared;      // what `own` is of; null: the session's own

  std::uint64_t bytes() const {
    return (source ? source->bytes() : 0) + (image ? image->bytes.size() : 0);
  }
};

class ModuleLoader {
 public:
  static constexpr std::size_t kMostPlaced = 8192;  // placed variables of all modules
  using Charge = LoadedModules::Charge;
  /// The home that the variables had in another engine, if any.
  using PastHome = std::optional<device::Address>;
  /// Whether these bytes are the session's host memory, at an address of this process.
  using OwnsHost = std::function<bool(device::Address address, std::uint64_t bytes)>;

  /// All outlive it. `keeps_sources`: whether kernels may want forms.
  ModuleLoader(device::Device& device, Compiler& compiler, bool keeps_sources, OwnsHost owns_host,
               const Loader& loader)
      : device_(device),
        compiler_(compiler),
        keeps_sources_(keeps_sources),
        owns_host_(std::move(owns_host)),
        loader_(loader),
        homes_(device) {}

  /// Gives variables a home in this memory, from now on.
  void give_homes(VariableHomes::Memory memory) { homes_.use(std::move(memory)); }
  /// Places the variable of this name in the coming module `id` at `address`. Errors: kLimit.
  Result<void> place(std::uint64_t id, std::string name, device::Address address);
  bool has_places(std::uint64_t id) const { return placed_.contains(id); }
  void forget_places(std::uint64_t id);
  void forget_all_places() { placed_.clear(); }
  /// Gives back the home of a module that is not on the device any more, if it has one.
  void forget_home(const ProgramModule& module) { homes_.forget(module); }

  /// Loads the image of module `id`. Errors: those of the device, and of the text.
  Result<LoadedImage> load(std::uint64_t id, const ModuleImage& image, Charge& charge,
                           PastHome past = std::nullopt);
  /// The same of an image that sessions share.
  Result<LoadedImage> load_known(const ImageStore::Image& image, Charge& charge,
                                 PastHome past = std::nullopt);

 private:
  Result<std::string> place_variables(std::uint64_t id, std::string_view text);
  Result<LoadedImage> load_ptx(std::string text, Charge& charge, PastHome past);
  Result<LoadedImage> load_elf(const ModuleImage& image, Charge& charge, PastHome past);
  Result<ProgramModule> load_code(std::span<const std::byte> code, std::string_view source,
                                  Charge& charge, PastHome past);
  Result<std::optional<ProgramModule>> load_text_at_home(std::string_view text, Charge& charge,
                                                         PastHome past);

  device::Device& device_;
  Compiler& compiler_;
  const bool keeps_sources_;
  const OwnsHost owns_host_;
  const Loader& loader_;
  VariableHomes homes_;
  std::unordered_map<std::uint64_t, std::vector<injector::PlacedVariable>> placed_;  // by module
  std::size_t placed_count_ = 0;
};

}  // namespace slate::daemon
