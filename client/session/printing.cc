// printf and assert of kernels: Session's part in it. Modules that have them (builtins.cc) get the
// address of a ring in host memory that both sides reach.
#include "injector/link/printing.h"

#include <cstdio>

#include "client/session/session.h"
#include "client/session/session_calls.h"

namespace slate::client {

/// Tells a module where the ring is, which is made for the first one.
Result<void> Session::connect_printing(std::uint64_t module) {
  const auto variable = variable_of(module, ptx::kPrintRingVariable);
  if (!variable) return std::unexpected(variable.error());
  const std::lock_guard lock(printing_.mutex);
  if (printing_.ring == nullptr) {
    if (auto made = make_ring(printing_.fifo_bytes); !made) return made;
  }
  auto written = write_address(*variable, printing_.block.device_address);
  if (written) printing_.variables.emplace(module, *variable);
  return written;
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

std::vector<Printed> Session::take_printed() {
  if (!printing_.exists.load(std::memory_order_acquire)) return {};
  const std::lock_guard lock(printing_.mutex);
  return printing_.ring->take();
}

void Session::write_printed() {
  for (const Printed& each : take_printed()) {
    std::fwrite(each.text.data(), 1, each.text.size(), each.is_error ? stderr : stdout);
  }
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
      auto written = write_address(variable, printing_.block.device_address);
      if (!written) return written;
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
