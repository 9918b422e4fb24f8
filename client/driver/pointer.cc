// Questions about addresses. Number 3, the address on the device, is asked for every argument of
// every launch by some programs: for memory that the thread asked about before it takes no lock.
#include "client/driver/pointer.h"

#include <atomic>
#include <cstring>
#include <unordered_set>

#include "base/mutex.h"
#include "client/driver/front.h"
#include "client/session/address_copy.h"
#include "client/session/graph_memory.h"
#include "client/session/pinned_memory.h"
#include "client/session/program_memory.h"

namespace slate::driver {
namespace {

using client::Range;

enum class Kind {
  kPlain,
  kDevice,
  kManaged,
  kPinned,
  kMapped,    // by the program, at addresses that it has reserved
  kReserved,  // addresses without memory
};

/// What an address is in.
struct Target {
  Kind kind = Kind::kPlain;
  std::uint64_t address = 0;
  Range range;  // the allocation, unless it is plain memory
};

std::optional<Target> device_target(Session& session, std::uint64_t address) {
  const auto range = session.memory().table().find(address);
  if (!range) return std::nullopt;
  switch (range->tag) {
    case client::kTagManaged:
    case client::kTagManagedVariable:
      return Target{Kind::kManaged, address, *range};
    case client::kTagMapped:
      return Target{Kind::kMapped, address, *range};
    default:
      return Target{Kind::kDevice, address, *range};
  }
}

Target target_of(Session& session, std::uint64_t address) {
  if (address == 0) return {};
  if (const auto known = device_target(session, address)) return *known;
  if (const auto range = Process::get().pinned().find(address))
    return {Kind::kPinned, address, *range};
  // Maybe a variable whose address came from a kernel.
  if (client::is_device_address(session, pointer_to(address)))
    return device_target(session, address).value_or(Target{});
  if (const auto reserved = session.virtual_memory().reservation_at(address))
    return {Kind::kReserved, address, {reserved->address, reserved->bytes}};
  return {};
}

/// Allocations whose synchronous copies have to be done when they return, by number.
class Waiting {
 public:
  static Waiting& get() {
    static auto* const instance = new Waiting;
    return *instance;
  }
  static bool any() { return any_.load(std::memory_order_relaxed); }
  void set(std::uint64_t serial, bool waits) {
    const MutexLock lock(mutex_);
    if (waits) {
      allocations_.insert(serial);
    } else {
      allocations_.erase(serial);
    }
    any_.store(!allocations_.empty(), std::memory_order_relaxed);
  }
  bool has(std::uint64_t serial) {
    const MutexLock lock(mutex_);
    return allocations_.contains(serial);
  }

 private:
  static constinit std::atomic<bool> any_;

  Mutex& mutex_ = Process::get().tables_mutex();
  std::unordered_set<std::uint64_t> allocations_ SLATE_GUARDED_BY(mutex_);
};
constinit std::atomic<bool> Waiting::any_{false};

/// The pool that the memory came from; 0 for none.
std::uint64_t pool_of(Session& session, const Target& target) {
  if (target.kind != Kind::kDevice) return 0;
  return session.memory().pools().pool_of(target.range.address);
}

/// Whether no context has the memory: it came from a pool, or from a graph.
bool is_stream_ordered(Session& session, const Target& target) {
  return pool_of(session, target) != 0 ||
         client::GraphMemory::is_of_graphs(session, target.range.address);
}

CUcontext context_of(Session& session, const Target& target) {
  if (is_stream_ordered(session, target)) return nullptr;
  if (target.range.owner != 0)
    return static_cast<Context*>(pointer_to(target.range.owner))->handle();
  Context* const current = this_thread().current;
  return (current != nullptr ? *current : Contexts::get().primary()).handle();
}

/// The memory that was mapped with the address, which may hold more than the allocation.
struct Mapping {
  std::uint64_t address, bytes;
};
Mapping mapping_of(Session& session, const Target& target) {
  constexpr std::uint64_t kDevicePage = 2 << 20;
  if (const auto block = session.host_memory().blocks().find(target.address))
    return {block->address, block->bytes};
  const Range& range = target.range;
  if (target.kind != Kind::kDevice) return {range.address, range.bytes};
  const std::uint64_t begin = range.address / kDevicePage * kDevicePage;
  const std::uint64_t end = range.address + range.bytes;
  return {begin, (end - begin + kDevicePage - 1) / kDevicePage * kDevicePage};
}

template <typename T>
Answer put(void* data, const T& value) {
  std::memcpy(data, &value, sizeof(value));
  return {};
}

Answer tell_device_pointer(Session& session, const Target& target, void* data) {
  if (target.kind != Kind::kPinned) return put<CUdeviceptr>(data, target.address);
  const auto address = client::device_address_of(session, pointer_to(target.address));
  if (!address) return deny(CUDA_ERROR_INVALID_VALUE);
  return put<CUdeviceptr>(data, *address);
}

/// What is so of mapped memory alone.
Answer tell_of_mapped(Session& session, const Target& target, int attribute, void* data) {
  constexpr std::uint64_t kFirstNumber = std::uint64_t{1} << 62;  // above those of allocations
  const client::VirtualMemory& memory = session.virtual_memory();
  const auto reservation = memory.reservation_at(target.address);
  const auto mapping = memory.mapping_at(target.address);
  const auto properties = memory.properties_at(target.address);
  if (!reservation || !mapping || !properties) return deny(CUDA_ERROR_INVALID_VALUE);
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
      return put<CUcontext>(data, nullptr);
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
      return put(data, kFirstNumber + mapping->handle);
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      return put<CUdeviceptr>(data, reservation->address);
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      return put<std::size_t>(data, reservation->bytes);
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
      return put<unsigned>(data, properties->handle_types);
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
      return put<unsigned>(data, mapping->access);
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
      return put<CUdeviceptr>(data, mapping->address);
    default:  // CU_POINTER_ATTRIBUTE_MAPPING_SIZE
      return put<std::size_t>(data, mapping->bytes);
  }
}
bool differs_if_mapped(int attribute) {
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
      return true;
    default:
      return false;
  }
}

/// Of addresses without memory only the reservation is known.
Answer tell_of_reserved(const Target& target, int attribute, void* data) {
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      return put<CUdeviceptr>(data, target.range.address);
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      return put<std::size_t>(data, target.range.bytes);
    case CU_POINTER_ATTRIBUTE_MAPPED:
      return put<unsigned>(data, 0);
    default:
      return deny(CUDA_ERROR_INVALID_VALUE);
  }
}

/// Requires: the target is no plain memory.
Answer tell(Session& session, const Target& target, int attribute, void* data) {
  const Range& range = target.range;
  if (target.kind == Kind::kReserved) return tell_of_reserved(target, attribute, data);
  if (target.kind == Kind::kMapped && differs_if_mapped(attribute))
    return tell_of_mapped(session, target, attribute, data);
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      return tell_device_pointer(session, target, data);
    case CU_POINTER_ATTRIBUTE_CONTEXT:
      return put(data, context_of(session, target));
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      return put<unsigned>(
          data, target.kind == Kind::kPinned ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE);
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      if (target.kind != Kind::kManaged && target.kind != Kind::kPinned)
        return deny(CUDA_ERROR_INVALID_VALUE);
      return put(data, pointer_to(target.address));
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
      return put<unsigned>(data, Waiting::any() && Waiting::get().has(range.serial) ? 1 : 0);
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
      return put(data, range.serial);
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
      return put<unsigned>(data, target.kind == Kind::kManaged ? 1 : 0);
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      return put<int>(data, 0);
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
      return put<unsigned>(data, range.tag == client::kTagMemory && target.kind == Kind::kDevice &&
                                         !is_stream_ordered(session, target)
                                     ? 1
                                     : 0);
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      return put<CUdeviceptr>(data, range.address);
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      return put<std::size_t>(data, range.bytes);
    case CU_POINTER_ATTRIBUTE_MAPPED:
      return put<unsigned>(data, 1);
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
      return put<unsigned>(data, CU_MEM_HANDLE_TYPE_NONE);
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
      return put<unsigned>(data, 0);  // the memory is the daemon's
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
      return put<unsigned>(data, CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE);
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
      return put(data, pointer_to(pool_of(session, target)));
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
      return put<std::size_t>(data, mapping_of(session, target).bytes);
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
      return put<CUdeviceptr>(data, mapping_of(session, target).address);
    case CU_POINTER_ATTRIBUTE_P2P_TOKENS:
      return deny(CUDA_ERROR_NOT_SUPPORTED);
    default:
      return deny(CUDA_ERROR_INVALID_VALUE);
  }
}

/// What cuPointerGetAttributes() writes where there is no answer.
Answer tell_none(int attribute, void* data) {
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
      return put<std::uint64_t>(data, 0);
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_MAPPED:
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
    case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
      return put<unsigned>(data, 0);
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      return put<int>(data, -2);  // no device
    default:
      return deny(CUDA_ERROR_INVALID_VALUE);
  }
}

}  // namespace

bool synchronous_calls_wait() {
  return Waiting::any();
}

}  // namespace slate::driver

using namespace slate::driver;
using namespace slate;

extern "C" {

CUresult cuPointerGetAttribute(void* data, CUpointer_attribute attribute, CUdeviceptr address) {
  const int number = attribute;
  return with_device([&](Session& session) -> Answer {
    if (data == nullptr) return deny(CUDA_ERROR_INVALID_VALUE);
    if (number == CU_POINTER_ATTRIBUTE_DEVICE_POINTER && this_thread().current == nullptr)
      return deny(CUDA_ERROR_INVALID_CONTEXT);
    const Target target = target_of(session, address);
    if (target.kind == Kind::kPlain) return deny(CUDA_ERROR_INVALID_VALUE);
    return tell(session, target, number, data);
  });
}

CUresult cuPointerGetAttributes(unsigned count, CUpointer_attribute* attributes, void** data,
                                CUdeviceptr address) {
  return with_device([&](Session& session) -> Answer {
    if (count == 0 || attributes == nullptr || data == nullptr)
      return deny(CUDA_ERROR_INVALID_VALUE);
    const Target target = target_of(session, address);
    for (unsigned i = 0; i < count; ++i) {
      const int number = number_of(attributes[i]);
      if (data[i] == nullptr) return deny(CUDA_ERROR_INVALID_VALUE);
      if (target.kind != Kind::kPlain && tell(session, target, number, data[i])) continue;
      if (auto ok = tell_none(number, data[i]); !ok) return ok;
    }
    return {};
  });
}

CUresult cuPointerSetAttribute(const void* value, CUpointer_attribute attribute,
                               CUdeviceptr address) {
  const int number = attribute;
  return with_session([&](Session& session) -> Answer {
    const Target target = target_of(session, address);
    if (value == nullptr || number != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS ||
        target.kind == Kind::kPlain) {
      return deny(CUDA_ERROR_INVALID_VALUE);
    }
    unsigned waits = 0;
    std::memcpy(&waits, value, sizeof(waits));
    Waiting::get().set(target.range.serial, waits != 0);
    if (waits == 0) return {};
    // What began before has to be done, too.
    const auto id = stream_id(session, nullptr);
    if (!id) return std::unexpected(id.error());
    return session.waiting().synchronize(ipc::TargetKind::kStream, *id);
  });
}

}  // extern "C"
