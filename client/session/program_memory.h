// Memory as programs ask for it: in the order of a stream, from pools, and freed whatever it is of.
// Any thread.
#pragma once

#include <cstdint>
#include <optional>

#include "client/session/refused.h"
#include "client/session/session.h"

namespace slate::client {

/// From a pool, or from the session's current one; by a node of a graph where `stream` captures. 0
/// for no bytes. kInvalidHandle: no such pool; kOutOfMemory: the pool is full.
Allowed<std::uint64_t> allocate_in_order(Session& session, std::uint64_t bytes,
                                         std::optional<std::uint64_t> pool, std::uint64_t stream);
Allowed<void> free_in_order(Session& session, std::uint64_t address, std::uint64_t stream);

/// Rows that begin aligned. kOutOfMemory also when that are more bytes than there can be.
Allowed<Place> allocate_pitched(Session& session, std::uint64_t width, std::uint64_t rows);

/// Whole pages of one managed allocation, as far as they are its own.
struct ManagedPages {
  std::uint64_t begin = 0, end = 0;
};
/// The pages of these bytes; kInvalidValue for none, and unless all are of one managed allocation.
Allowed<ManagedPages> managed_pages(Session& session, std::uint64_t address, std::uint64_t bytes);
/// The managed allocation, or variable, that the address lies in.
std::optional<Range> find_managed(Session& session, std::uint64_t address);

/// Of a graph, of a pool, managed, or of no kind.
Allowed<void> free_program_memory(Session& session, std::uint64_t address);

}  // namespace slate::client
