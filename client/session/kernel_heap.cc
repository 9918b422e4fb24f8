#include "client/session/kernel_heap.h"

#include <string_view>
#include <utility>

#include "client/session/say.h"
#include "client/session/session.h"
#include "injector/link/heap.h"

namespace slate::client {

using ipc::CommandType;

std::uint64_t KernelHeap::bytes() {
  const MutexLock lock(mutex_);
  return bytes_;
}

Result<void> KernelHeap::need() {
  const MutexLock lock(mutex_);
  if (address_ != 0) return {};
  const auto made = make(bytes_);
  if (made) {
    address_ = *made;
    return {};
  }
  return fail(made.error().code, "the heap of malloc in kernels: " + made.error().message);
}

/// Makes an empty one.
Result<std::uint64_t> KernelHeap::make(std::uint64_t bytes) {
  const ptx::HeapLayout layout = ptx::heap_layout(bytes);
  const auto memory = session_.wire().call<ipc::AddressReply>(CommandType::kMemoryAllocate,
                                                              ipc::MemoryAllocate{layout.bytes});
  if (!memory) return std::unexpected(memory.error());
  const ptx::HeapHeader header = layout.header_at(memory->address);
  const std::uint32_t hint = layout.last_hint();
  const auto done = session_.waiting().on_own_stream([&](std::uint64_t stream) {
    Copies& copies = session_.copies();
    auto ok = copies.fill(Place::on_device(memory->address), 0, {layout.book_bytes}, stream);
    if (ok) ok = copies.write(memory->address, std::as_bytes(std::span(&header, 1)), stream);
    if (ok) {
      ok = copies.write(memory->address + ptx::kHeapLastHint, std::as_bytes(std::span(&hint, 1)),
                        stream);
    }
    return ok;
  });
  if (done) return memory->address;
  (void)session_.wire().post(CommandType::kMemoryFree, ipc::MemoryFree{memory->address});
  return std::unexpected(done.error());
}

Result<void> KernelHeap::connect(std::uint64_t module) {
  const auto variable = session_.modules().variable_of(module, ptx::kHeapVariable);
  if (!variable) return std::unexpected(variable.error());
  const MutexLock lock(mutex_);
  auto written = session_.modules().write_address(*variable, address_);
  if (written) variables_.emplace(module, *variable);
  return written;
}

Result<void> KernelHeap::set_bytes(std::uint64_t bytes) {
  if (bytes > ptx::kMostHeapBytes) {
    return fail(ErrorCode::kInvalidValue, "a heap of " + std::to_string(bytes) + " bytes");
  }
  const MutexLock lock(mutex_);
  if (address_ != 0) {
    if (auto done = session_.waiting().ask_to_synchronize(ipc::TargetKind::kSession, 0); !done)
      return done;
    std::uint64_t state = 0;
    const auto read = session_.waiting().on_own_stream([&, heap = address_](std::uint64_t stream) {
      return session_.copies().copy(Place::on_host(&state),
                                    Place::on_device(heap + ptx::kHeapState), {sizeof(state)},
                                    stream);
    });
    if (!read) return read;
    if (state != 0) {
      return fail(ErrorCode::kInvalidValue,
                  "kernels have called malloc: their heap stays as it is");
    }
    const auto made = make(bytes);
    if (!made) return std::unexpected(made.error());
    const std::uint64_t before = std::exchange(address_, *made);
    for (const auto& [module, variable] : variables_) {
      if (auto written = session_.modules().write_address(variable, *made); !written)
        return written;
    }
    if (auto freed = session_.wire().post(CommandType::kMemoryFree, ipc::MemoryFree{before});
        !freed)
      return freed;
  }
  bytes_ = bytes;
  return {};
}

void KernelHeap::disconnect(std::uint64_t module) {
  const MutexLock lock(mutex_);
  variables_.erase(module);
}

void KernelHeap::raise_drivers(std::span<const std::byte> code) {
  const std::uint64_t bytes = this->bytes();
  const std::string_view text(reinterpret_cast<const char*>(code.data()), code.size());
  if (bytes <= kBytes || text.find("malloc") == text.npos) return;
  if (const auto raised = session_.modules().raise_drivers_heap(bytes); !raised) {
    say_once("the heap of malloc in machine code stays as it is: " + raised.error().message);
  }
}

}  // namespace slate::client
