// What programs say and ask about managed memory. It lies in host memory that the device reaches at
// the same address, so pages never move: advice and prefetches are checked, remembered and told,
// and otherwise without effect. Numbers are those of all CUDA's APIs. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "client/session/refused.h"
#include "client/session/session.h"

namespace slate::client {

/// A place as programs name it. They pass any numbers.
struct LocationName {
  int type = 0;
  int id = 0;
};
inline constexpr int kLocationOfDevice = 1;  // CU_MEM_LOCATION_TYPE_*
inline constexpr int kLocationOfHost = 2;
/// The place that the older functions name by a device's number; -1 is the host.
LocationName location_of_device(int device);

/// Managed memory of the program.
struct ManagedSpan {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
};

// All are kInvalidValue for other memory, and kInvalidDevice for another device.
/// Refused where `stream` captures.
Allowed<void> prefetch_managed(Session& session, const ManagedSpan& memory,
                               const LocationName& location, std::uint64_t stream);
Allowed<void> advise_managed(Session& session, const ManagedSpan& memory, int advice,
                             const LocationName& location);

/// Operations in one call. `first` says with which operation each location begins.
struct HintBatch {
  std::span<const ManagedSpan> memory;
  std::span<const LocationName> locations;
  std::span<const std::size_t> first;
};
/// Discards, whose contents may as well stay, and prefetches if there are locations. kInvalidValue
/// for the default stream that all threads share.
Allowed<void> run_hint_batch(Session& session, const HintBatch& batch, bool prefetches,
                             std::uint64_t stream);

/// One attribute that is asked for, and where to.
struct ManagedQuestion {
  int attribute = 0;
  void* data = nullptr;
  std::size_t bytes = 0;
};
Allowed<void> tell_managed(Session& session, const ManagedSpan& memory,
                           std::span<const ManagedQuestion> questions);

/// Has a stream own the memory, which is checked and changes nothing. A length of 0 is all of it.
Allowed<void> attach_managed(Session& session, const ManagedSpan& memory, unsigned flags,
                             std::uint64_t stream);

}  // namespace slate::client
