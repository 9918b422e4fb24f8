// malloc and free of kernels: Session's part in it. Modules that call them (builtins.cc) get the
// address of a heap in this session's memory, whose books injector/link/heap.h describes.
#include <utility>

#include "client/session/builtins.h"
#include "client/session/say.h"
#include "client/session/session.h"
#include "client/session/session_calls.h"
#include "injector/link/heap.h"

namespace slate::client {

using ipc::CommandType;

std::uint64_t Session::heap_bytes() {
  const std::lock_guard lock(kernel_heap_.mutex);
  return kernel_heap_.bytes;
}

Result<void> Session::need_heap() {
  const std::lock_guard lock(kernel_heap_.mutex);
  if (kernel_heap_.address != 0) return {};
  const auto made = make_heap(kernel_heap_.bytes);
  if (made) {
    kernel_heap_.address = *made;
    return {};
  }
  return fail(made.error().code, "the heap of malloc in kernels: " + made.error().message);
}

/// An empty one.
Result<std::uint64_t> Session::make_heap(std::uint64_t bytes) {
  const ptx::HeapLayout layout = ptx::heap_layout(bytes);
  const auto memory =
      call<ipc::AddressReply>(CommandType::kMemoryAllocate, ipc::MemoryAllocate{layout.bytes});
  if (!memory) return std::unexpected(memory.error());
  const ptx::HeapHeader header = layout.header_at(memory->address);
  const std::uint32_t hint = layout.last_hint();
  const auto done = on_own_stream([&](std::uint64_t stream) {
    auto ok = fill({memory->address, layout.book_bytes}, 0, {layout.book_bytes, 1}, stream);
    if (ok) ok = write(memory->address, std::as_bytes(std::span(&header, 1)), stream);
    if (ok) {
      ok = write(memory->address + ptx::kHeapLastHint, std::as_bytes(std::span(&hint, 1)), stream);
    }
    return ok;
  });
  if (done) return memory->address;
  (void)post(CommandType::kMemoryFree, ipc::MemoryFree{memory->address});
  return std::unexpected(done.error());
}

Result<void> Session::connect_heap(std::uint64_t module) {
  const auto variable = variable_of(module, ptx::kHeapVariable);
  if (!variable) return std::unexpected(variable.error());
  const std::lock_guard lock(kernel_heap_.mutex);
  auto written = write_address(*variable, kernel_heap_.address);
  if (written) kernel_heap_.variables.emplace(module, *variable);
  return written;
}

Result<void> Session::set_heap_bytes(std::uint64_t bytes) {
  if (bytes > ptx::kMostHeapBytes) {
    return fail(ErrorCode::kInvalidValue, "a heap of " + std::to_string(bytes) + " bytes");
  }
  const std::lock_guard lock(kernel_heap_.mutex);
  if (kernel_heap_.address != 0) {
    if (auto done = ask_to_synchronize(ipc::TargetKind::kSession, 0); !done) return done;
    std::uint64_t state = 0;
    const auto read = on_own_stream([&](std::uint64_t stream) {
      return copy_to_host(reinterpret_cast<std::byte*>(&state), sizeof(state),
                          {kernel_heap_.address + ptx::kHeapState, sizeof(state)},
                          {sizeof(state), 1}, stream);
    });
    if (!read) return read;
    if (state != 0) {
      return fail(ErrorCode::kInvalidValue,
                  "kernels have called malloc: their heap stays as it is");
    }
    const auto made = make_heap(bytes);
    if (!made) return std::unexpected(made.error());
    const std::uint64_t before = std::exchange(kernel_heap_.address, *made);
    for (const auto& [module, variable] : kernel_heap_.variables) {
      if (auto written = write_address(variable, *made); !written) return written;
    }
    if (auto freed = post(CommandType::kMemoryFree, ipc::MemoryFree{before}); !freed) return freed;
  }
  kernel_heap_.bytes = bytes;
  return {};
}

/// Machine code calls the driver's malloc, whose heap is one for all sessions.
void Session::raise_drivers_heap(std::span<const std::byte> code) {
  const std::uint64_t bytes = heap_bytes();
  const std::string_view text(reinterpret_cast<const char*>(code.data()), code.size());
  if (bytes <= kKernelHeapBytes || text.find("malloc") == text.npos) return;
  if (const auto raised = raise_limit(1, bytes); !raised) {
    say_once("the heap of malloc in machine code stays as it is: " + raised.error().message);
  }
}

}  // namespace slate::client
