// Memory as programs ask for it: in a stream's order, from pools, and freed whatever its kind. Any
// thread.
#pragma once

#include <cstdint>
#include <optional>

#include "client/session/refused.h"
#include "client/session/session.h"

namespace slate::client {

/// Allocates from a pool or from the session's current one; where `stream` captures, by a graph's
/// node. 0 for 0 bytes. kInvalidHandle: no such pool; kOutOfMemory: the pool is full.
Allowed<std::uint64_t> allocate_in_order(Session& session, std::uint64_t bytes,
                                         std::optional<std::uint64_t> pool, std::uint64_t stream);
Allowed<void> free_in_order(Session& session, std::uint64_t address, std::uint64_t stream);

/// Allocates aligned rows. kOutOfMemory also when their size overflows.
Allowed<Place> allocate_pitched(Session& session, std::uint64_t width, std::uint64_t rows);

/// Whole pages of one managed allocation, without pages that it shares.
struct ManagedPages {
  std::uint64_t begin = 0, end = 0;
};
/// The pages of these bytes. kInvalidValue when there are none, or not all are of one managed
/// allocation.
Allowed<ManagedPages> managed_pages(Session& session, std::uint64_t address, std::uint64_t bytes);
/// The managed allocation or variable with `address`.
std::optional<Range> find_managed(Session& session, std::uint64_t address);

/// The handle by which other programs open the memory. kInvalidValue for other than plain device
/// memory.
Allowed<ipc::ShareHandle> export_program_memory(Session& session, std::uint64_t address);

/// Frees memory of a graph, of a pool, managed memory, or plain device memory, behind all work.
Allowed<void> free_program_memory(Session& session, std::uint64_t address);

}  // namespace slate::client
