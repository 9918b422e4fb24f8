#include "daemon/engine/module_loader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/out_of_memory.h"
#include "daemon/dispatch/module_variables.h"

namespace slate::daemon {

Result<LoadedImage> ModuleLoader::load(std::uint64_t id, const ModuleImage& image, Charge& charge,
                                       PastHome past) {
  if (image.kind == ipc::kImagePtx) {
    auto text = place_variables(
        id, {reinterpret_cast<const char*>(image.bytes.data()), image.bytes.size()});
    if (!text) return std::unexpected(text.error());
    return load_ptx(std::move(*text), charge, past);
  }
  if (placed_.contains(id)) {
    return fail(ErrorCode::kNotSupported,
                "managed variables need PTX, and the program has machine code only");
  }
  return load_elf(image, charge, past);
}

/// Loads machine code, with its variables at home where they can be. Without a source nobody knows
/// what its kernels do with constants' addresses.
Result<ProgramModule> ModuleLoader::load_code(std::span<const std::byte> code,
                                              std::string_view source, Charge& charge,
                                              PastHome past) {
  const auto load = [&](std::span<const std::byte> bytes) -> Result<device::Module> {
    if (const auto charged = charge.take(variable_bytes(bytes)); !charged)
      return std::unexpected(charged.error());
    return device_.load_module(device::ImageKind::kCubin, bytes);
  };
  const Constants constants =
      source.empty() || takes_constants_addresses(source) ? Constants::kStay : Constants::kMove;
  const auto move = [&](device::AddressRange home) { return move_home(code, home.base); };
  auto homed = homes_.load(home_bytes(code, constants), past, move, load);
  if (!homed) return std::unexpected(homed.error());
  if (*homed) return std::move(**homed);
  const auto module = load(code);
  if (!module) return std::unexpected(module.error());
  return ProgramModule{.handle = *module, .home = nullptr};
}

/// The program's own machine code. Where the device refuses it, its source is compiled instead.
Result<LoadedImage> ModuleLoader::load_elf(const ModuleImage& image, Charge& charge,
                                           PastHome past) {
  auto module = load_code(image.bytes, image.source, charge, past);
  const bool may_retry =
      !module && !image.source.empty() && module.error().code == ErrorCode::kNoKernelImage;
  if (may_retry) return load_ptx(image.source, charge, past);
  if (!module) return std::unexpected(module.error());
  LoadedImage loaded;
  loaded.own = std::move(*module);
  if (keeps_sources_ && !image.source.empty()) {
    loaded.source = std::make_shared<const FormSource>(
        image.source, std::make_shared<const std::vector<std::byte>>(image.bytes));
  }
  return loaded;
}

/// Machine code without variables is the same for all sessions. Only its functions' attributes
/// change, and SharedModule sees to these.
Result<LoadedImage> ModuleLoader::load_known(const ImageStore::Image& image, Charge& charge,
                                             PastHome past) {
  const std::span<const std::byte> bytes = image->bytes;
  Result<LoadedImage> loaded;
  if (image->kind == ipc::kImagePtx) {
    loaded = load_ptx(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()),
                      charge, past);
  } else if (variable_bytes(bytes) > 0) {
    loaded = load_elf({.kind = image->kind, .bytes = {bytes.begin(), bytes.end()}, .source = {}},
                      charge, past);
  } else {
    auto shared = image->module_on(device_);
    if (!shared) return std::unexpected(shared.error());
    loaded = LoadedImage{};
    loaded->own.handle = (*shared)->handle;
    loaded->shared = std::move(*shared);
  }
  if (loaded) loaded->image = image;
  return loaded;
}

Result<void> ModuleLoader::place(std::uint64_t id, std::string name, device::Address address) {
  if (placed_count_ >= kMostPlaced) return fail(ErrorCode::kLimit, "too many placed variables");
  ++placed_count_;
  placed_[id].push_back({std::move(name), address});
  return {};
}

void ModuleLoader::forget_places(std::uint64_t id) {
  const auto found = placed_.find(id);
  if (found == placed_.end()) return;
  placed_count_ -= found->second.size();
  placed_.erase(found);
}

/// The module's text with its placed variables out of it, and their initial contents in their
/// places.
Result<std::string> ModuleLoader::place_variables(std::uint64_t id, std::string_view text) {
  const auto placed = placed_.find(id);
  if (placed == placed_.end()) return std::string(text);
  const auto turn = compiler_.begin_turn(loader_, text.size());
  if (!turn) return std::unexpected(turn.error());
  const auto reader = compiler_.open_reader(text, loader_);
  if (!reader) return std::unexpected(reader.error());
  auto result = (*reader)->place_variables(placed->second, loader_.is_over);
  if (!result) return std::unexpected(result.error());
  for (std::size_t i = 0; i < placed->second.size(); ++i) {
    const injector::PlacedVariable& each = placed->second[i];
    const PlacedText::Contents& contents = result->contents[i];
    if (!owns_host_(each.address, contents.bytes)) {
      return fail(ErrorCode::kInvalidValue,
                  fmt::format("{} is placed in memory that is not the session's", each.name));
    }
    auto* const to = reinterpret_cast<std::byte*>(each.address);
    std::memset(to, 0, contents.bytes);
    std::ranges::copy(std::span(contents.beginning)
                          .first(std::min<std::size_t>(contents.beginning.size(), contents.bytes)),
                      to);
  }
  return std::move(result->text);
}

/// A text that the device itself reads, with its variables at home. Nullopt as
/// VariableHomes::load(), also for a text that cannot be read.
Result<std::optional<ProgramModule>> ModuleLoader::load_text_at_home(std::string_view text,
                                                                     Charge& charge,
                                                                     PastHome past) {
  const bool may_have_some =
      text.find(".global .") != text.npos || text.find(".const .") != text.npos;
  if (!past && (!homes_.has_memory() || !may_have_some || takes_constants_addresses(text)))
    return std::nullopt;
  // Nobody waits for memory, or for another load, with a turn of his own.
  const auto read = [&](auto question) -> decltype(question(std::declval<TextReader&>())) {
    const auto turn = compiler_.begin_turn(loader_, text.size());
    if (!turn) return std::unexpected(turn.error());
    const auto reader = compiler_.open_reader(text, loader_);
    if (!reader) return std::unexpected(reader.error());
    return question(**reader);
  };
  const auto variables =
      read([&](TextReader& reader) { return reader.variable_bytes(loader_.is_over); });
  return homes_.load(
      home_bytes_of_text(variables.value_or(0)), past,
      [&](device::AddressRange home) {
        return read([&](TextReader& reader) { return reader.move_home(home, loader_.is_over); });
      },
      [&](std::span<const std::byte> code) -> Result<device::Module> {
        const auto loaded = compiler_.load(
            code, loader_, [&charge](std::uint64_t bytes) { return charge.take(bytes); });
        if (!loaded) return std::unexpected(loaded.error());
        return loaded->module;
      });
}

Result<LoadedImage> ModuleLoader::load_ptx(std::string text, Charge& charge, PastHome past) {
  LoadedImage module;
  std::shared_ptr<const std::vector<std::byte>> code;
  if (!compiler_.compiles()) {
    auto homed = load_text_at_home(text, charge, past);
    if (!homed) return std::unexpected(homed.error());
    if (*homed) module.own = std::move(**homed);
  }
  if (module.own.handle == device::Module{}) {
    const auto load = [&](std::span<const std::byte> bytes) -> Result<device::Module> {
      auto own = load_code(bytes, text, charge, past);
      if (!own) return std::unexpected(own.error());
      module.own = std::move(*own);
      return module.own.handle;
    };
    auto loaded = compiler_.load(
        std::as_bytes(std::span(text)), loader_,
        [&charge](std::uint64_t bytes) { return charge.take(bytes); }, load);
    if (!loaded) return std::unexpected(loaded.error());
    // The driver may have taken the text instead.
    if (module.own.handle != loaded->module) module.own = {.handle = loaded->module, .home = {}};
    code = std::move(loaded->code);
  }
  if (keeps_sources_) {
    module.source = std::make_shared<const FormSource>(std::move(text), std::move(code));
  }
  return module;
}

}  // namespace slate::daemon
