#include "client/session/printing.h"

#include <cstdio>

#include "client/session/session.h"
#include "injector/link/printing.h"

namespace slate::client {

Result<void> Printing::connect(std::uint64_t module) {
  const auto variable = session_.modules().variable_of(module, ptx::kPrintRingVariable);
  if (!variable) return std::unexpected(variable.error());
  const MutexLock lock(mutex_);
  if (ring_ == nullptr) {
    if (auto made = make_ring(fifo_bytes_); !made) return made;
  }
  auto written = session_.modules().write_address(*variable, block_.device_address);
  if (written) variables_.emplace(module, *variable);
  return written;
}

void Printing::disconnect(std::uint64_t module) {
  const MutexLock lock(mutex_);
  variables_.erase(module);
}

Result<void> Printing::make_ring(std::uint64_t bytes) {
  auto block = session_.host_memory().allocate(PrintRing::memory_for(bytes));
  if (!block) return std::unexpected(block.error());
  block_ = *block;
  auto* const memory = reinterpret_cast<std::byte*>(block->address);
  ring_ = std::make_unique<PrintRing>(memory, bytes);
  exists_.store(true, std::memory_order_release);
  return {};
}

std::vector<Printed> Printing::take() {
  if (!exists_.load(std::memory_order_acquire)) return {};
  const MutexLock lock(mutex_);
  return ring_->take();
}

void Printing::write() {
  for (const Printed& each : take()) {
    std::fwrite(each.text.data(), 1, each.text.size(), each.is_error ? stderr : stdout);
  }
}

std::uint64_t Printing::fifo_bytes() {
  const MutexLock lock(mutex_);
  return fifo_bytes_;
}

Result<void> Printing::set_fifo_bytes(std::uint64_t bytes) {
  const MutexLock lock(mutex_);
  if (ring_ != nullptr) {
    auto done = session_.waiting().ask_to_synchronize(ipc::TargetKind::kSession, 0);
    if (!done) return done;
    if (ring_->used()) {
      return fail(ErrorCode::kInvalidValue, "kernels have printed: their buffer stays as it is");
    }
    const std::uint64_t before = block_.address;
    if (auto made = make_ring(bytes); !made) return made;
    for (const auto& [module, variable] : variables_) {
      auto written = session_.modules().write_address(variable, block_.device_address);
      if (!written) return written;
    }
    if (auto freed = session_.host_memory().free(before); !freed) return freed;
  }
  fifo_bytes_ = bytes;
  return {};
}

Result<void> Printing::look_for_assertions() {
  if (!exists_.load(std::memory_order_acquire)) return {};
  {
    const MutexLock lock(mutex_);
    if (!ring_->asserted()) return {};
  }
  const Error error{ErrorCode::kAssert, "an assertion failed in a kernel"};
  session_.wire().channel().end_with(error);
  return std::unexpected(error);
}

void Printing::unmap() {
  if (ring_) unmap_shared(block_.address, block_.bytes);
}

}  // namespace slate::client
