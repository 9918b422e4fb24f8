// Pinned host memory as programs ask for it: shared with the daemon, so that copies from and to it
// are single transfers and kernels reach it. Where there is none to share it is ordinary memory,
// and copies pass through the staging slots as for any other; then a request for a device address
// of it fails. Memory that the program registers is replaced by shared memory at once: copies that
// only begin later, and read then, need that as much as kernels do. Any thread; the books are
// Process::pinned(), with the fronts' flags.
#pragma once

#include <cstddef>
#include <cstdint>

#include "client/session/refused.h"
#include "client/session/session.h"

namespace slate::client {

/// `mapped`: kernels have to reach it. Requires: bytes > 0.
Allowed<void*> allocate_pinned(Session& session, std::size_t bytes, bool mapped,
                               std::uint32_t flags);
/// Also of an earlier session. kInvalidValue when none begins there.
Allowed<void> free_pinned(Session& session, void* address);

/// kAlreadyRegistered when some of it is pinned; kNotSupported when kernels cannot be given it and
/// it has to be `mapped`.
Allowed<void> register_pinned(Session& session, void* address, std::size_t bytes, bool mapped,
                              std::uint32_t flags);
/// kNotRegistered when none begins there.
Allowed<void> unregister_pinned(Session& session, void* address);

/// The device's address of pinned memory; kNotSupported where it has none.
Result<std::uint64_t> device_address_of(Session& session, const void* host);

}  // namespace slate::client
