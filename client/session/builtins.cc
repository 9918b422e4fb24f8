// Modules whose kernels call what the driver has built in, as printf and malloc: they are sent with
// functions of slate's own, and told where the session's ring (printing.cc) and heap
// (kernel_heap.cc) are.
#include "injector/link/builtins.h"

#include "client/session/builtins.h"
#include "client/session/say.h"
#include "client/session/session.h"
#include "client/session/session_calls.h"

namespace slate::client {

using ipc::CommandType;

Result<std::uint64_t> Session::load_module(const Image& image,
                                           std::span<const PlacedVariable> placed) {
  const std::string_view text(reinterpret_cast<const char*>(image.bytes.data()),
                              image.bytes.size());
  if (image.kind != ImageKind::kPtx) raise_drivers_heap(image.bytes);
  auto module = image.kind == ImageKind::kPtx ? load_text(image, placed)
                                              : send_module(image.kind, image.bytes, placed);
  // What machine code does nobody has looked at.
  const bool atomics = image.kind != ImageKind::kPtx || has_system_atomics(text);
  if (module && atomics && needs_managed_guard(device())) managed_guard_.add_module(*module);
  return module;
}

Result<std::uint64_t> Session::load_text(const Image& image,
                                         std::span<const PlacedVariable> placed) {
  const auto linked =
      ptx::with_builtins({reinterpret_cast<const char*>(image.bytes.data()), image.bytes.size()});
  if (!linked) {
    // Placed variables are in the text only.
    const bool as_code = placed.empty() && !image.code.empty();
    return as_code ? send_module(ImageKind::kElf, image.code, {}, image.bytes)
                   : send_module(ImageKind::kPtx, image.bytes, placed);
  }
  if (linked->allocates) {
    if (auto ready = need_heap(); !ready) return std::unexpected(ready.error());
  }
  const auto module = send_module(ImageKind::kPtx, std::as_bytes(std::span(linked->text)), placed);
  if (!module) return module;
  if (linked->prints) {
    if (const auto ready = connect_printing(*module); !ready) {
      say_once("kernels cannot print: " + ready.error().message);
    }
  }
  if (linked->allocates) {
    if (auto ready = connect_heap(*module); !ready) {
      (void)unload_module(*module);
      return std::unexpected(ready.error());
    }
  }
  return module;
}

Result<void> Session::unload_module(std::uint64_t module) {
  managed_guard_.remove_module(module);
  {
    const std::scoped_lock lock(printing_.mutex, kernel_heap_.mutex);
    printing_.variables.erase(module);
    kernel_heap_.variables.erase(module);
  }
  return post(CommandType::kModuleUnload, ipc::IdCommand{module});
}

/// The address of a variable that is not the program's.
Result<std::uint64_t> Session::variable_of(std::uint64_t module, std::string_view name) {
  const auto variable =
      call<ipc::GlobalReply>(CommandType::kGlobalGet, ipc::GlobalGet{module}, name);
  if (!variable) return std::unexpected(variable.error());
  return variable->address;
}

Result<void> Session::write_address(std::uint64_t variable, std::uint64_t address) {
  return on_own_stream([&](std::uint64_t stream) {
    return write(variable, std::as_bytes(std::span(&address, 1)), stream);
  });
}

}  // namespace slate::client
