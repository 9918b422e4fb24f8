// printf and assert of kernels: Session's part in it. Modules that have them get the functions of
// injector/link/printing.h, and the address of a ring in host memory that both sides reach.
#include "injector/link/printing.h"

#include "client/session/say.h"
#include "client/session/session.h"
#include "client/session/session_calls.h"

namespace slate::client {

using ipc::CommandType;

Result<std::uint64_t> Session::load_module(const Image& image,
                                           std::span<const PlacedVariable> placed) {
  std::optional<std::string> text;
  if (image.kind == ImageKind::kPtx) {
    text =
        ptx::with_printing({reinterpret_cast<const char*>(image.bytes.data()), image.bytes.size()});
  }
  if (!text) return send_module(image.kind, image.bytes, placed);
  const auto module = send_module(image.kind, std::as_bytes(std::span(*text)), placed);
  if (!module) return module;
  if (const auto ready = connect_printing(*module); !ready) {
    say_once("kernels cannot print: " + ready.error().message);
  }
  return module;
}

/// Tells a module where the ring is, which is made for the first one.
Result<void> Session::connect_printing(std::uint64_t module) {
  const auto variable = call<ipc::GlobalReply>(CommandType::kGlobalGet, ipc::GlobalGet{module},
                                               ptx::kPrintRingVariable);
  if (!variable) return std::unexpected(variable.error());
  const std::lock_guard lock(printing_.mutex);
  if (printing_.ring == nullptr) {
    if (auto made = make_ring(printing_.fifo_bytes); !made) return made;
  }
  if (auto written = write_ring_address(variable->address); !written) return written;
  printing_.variables.emplace(module, variable->address);
  return {};
}

/// Requires: printing_.mutex is held.
Result<void> Session::make_ring(std::uint64_t bytes) {
  auto block = allocate_host(PrintRing::memory_for(bytes));
  if (!block) return std::unexpected(block.error());
  printing_.block = *block;
  auto* const memory = reinterpret_cast<std::byte*>(block->address);
  printing_.ring = std::make_unique<PrintRing>(memory, bytes);
  printing_.exists.store(true, std::memory_order_release);
  return {};
}

/// On a stream of its own, so that no work of the program is waited for, and all of it comes later.
Result<void> Session::write_ring_address(std::uint64_t variable) {
  const std::uint64_t address = printing_.block.device_address;
  const auto stream = create_stream(ipc::kStreamNonBlocking, 0);
  if (!stream) return std::unexpected(stream.error());
  auto done =
      copy_to_device({variable, sizeof(address)}, reinterpret_cast<const std::byte*>(&address),
                     sizeof(address), {sizeof(address), 1}, *stream);
  if (done) done = ask_to_synchronize(ipc::TargetKind::kStream, *stream);
  (void)destroy_stream(*stream);
  return done;
}

Result<void> Session::unload_module(std::uint64_t module) {
  {
    const std::lock_guard lock(printing_.mutex);
    printing_.variables.erase(module);
  }
  return post(CommandType::kModuleUnload, ipc::IdCommand{module});
}

std::vector<Printed> Session::take_printed() {
  if (!printing_.exists.load(std::memory_order_acquire)) return {};
  const std::lock_guard lock(printing_.mutex);
  return printing_.ring->take();
}

std::uint64_t Session::print_fifo_bytes() {
  const std::lock_guard lock(printing_.mutex);
  return printing_.fifo_bytes;
}

Result<void> Session::set_print_fifo_bytes(std::uint64_t bytes) {
  const std::lock_guard lock(printing_.mutex);
  if (printing_.ring != nullptr) {
    if (auto done = ask_to_synchronize(ipc::TargetKind::kSession, 0); !done) return done;
    if (printing_.ring->used()) {
      return fail(ErrorCode::kInvalidValue, "kernels have printed: their buffer stays as it is");
    }
    const std::uint64_t before = printing_.block.address;
    if (auto made = make_ring(bytes); !made) return made;
    for (const auto& [module, variable] : printing_.variables) {
      if (auto written = write_ring_address(variable); !written) return written;
    }
    if (auto freed = free_host(before); !freed) return freed;
  }
  printing_.fifo_bytes = bytes;
  return {};
}

/// An assertion that failed ends the session, as it ends a context of CUDA.
Result<void> Session::look_for_assertions() {
  if (!printing_.exists.load(std::memory_order_acquire)) return {};
  {
    const std::lock_guard lock(printing_.mutex);
    if (!printing_.ring->asserted()) return {};
  }
  const Error error{ErrorCode::kAssert, "an assertion failed in a kernel"};
  channel_->end_with(error);
  return std::unexpected(error);
}

}  // namespace slate::client
