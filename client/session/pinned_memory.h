// Pinned host memory as programs ask for it. It is shared with the daemon: copies from and to it
// are single transfers, and kernels reach it.
// Where no memory can be shared it is ordinary memory. Copies pass through the staging slots then,
// and a request for its device address fails. Memory that the program registers is replaced by
// shared memory at once, for kernels and for copies that begin later. Any thread. Process::pinned()
// has the table, with the fronts' flags.
#pragma once

#include <cstddef>
#include <cstdint>

#include "client/session/refused.h"
#include "client/session/session.h"

namespace slate::client {

/// `mapped`: kernels must reach the memory. Requires: bytes > 0.
Allowed<void*> allocate_pinned(Session& session, std::size_t bytes, bool mapped,
                               std::uint32_t flags);
/// Frees pinned memory, also an earlier session's. kInvalidValue when none begins there.
Allowed<void> free_pinned(Session& session, void* address);

/// kAlreadyRegistered when some of the memory is pinned. kInvalidValue when some is not mapped.
/// kNotSupported when kernels cannot reach it and `mapped` is set.
Allowed<void> register_pinned(Session& session, void* address, std::size_t bytes, bool mapped,
                              std::uint32_t flags);
/// kNotRegistered when no registered memory begins there.
Allowed<void> unregister_pinned(Session& session, void* address);

/// The device's address of pinned memory; kNotSupported where it has none.
Result<std::uint64_t> device_address_of(Session& session, const void* host);

}  // namespace slate::client
