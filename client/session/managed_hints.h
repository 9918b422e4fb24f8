// What programs say and ask about managed memory. It lies in host memory that the device reaches at
// the same address, so pages never move: advice and prefetches are checked, remembered and told,
// and otherwise without effect. Numbers are those of all CUDA's APIs. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "client/session/numbers.h"
#include "client/session/refused.h"
#include "client/session/session.h"

namespace slate::client {

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
  std::vector<ManagedSpan> memory;
  std::vector<LocationName> locations;
  const std::size_t* first = nullptr;
};
/// A batch as programs pass it. `Address`: a pointer or a number.
template <typename Address, typename Location>
struct PassedHints {
  const Address* addresses;
  const std::size_t* sizes;
  std::size_t count;
  const Location* locations = nullptr;  // null: a discard without a prefetch
  const std::size_t* first = nullptr;
  std::size_t location_count = 0;
  unsigned long long flags = 0;
};
/// kInvalidValue without lists, or with flags.
template <typename Address, typename Location>
Allowed<HintBatch> batch_of(const PassedHints<Address, Location>& passed) {
  if (passed.addresses == nullptr || passed.sizes == nullptr || passed.flags != 0)
    return refuse(Refusal::kInvalidValue);
  HintBatch batch;
  for (std::size_t i = 0; i < passed.count; ++i)
    batch.memory.push_back({address_of(passed.addresses[i]), passed.sizes[i]});
  if (passed.locations == nullptr || passed.first == nullptr ||
      passed.location_count > passed.count) {
    return batch;
  }
  batch.first = passed.first;
  for (std::size_t k = 0; k < passed.location_count; ++k)
    batch.locations.push_back(location_of(passed.locations[k]));
  return batch;
}
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
/// As above, with the lists that programs pass.
template <typename Attribute>
Allowed<void> tell_managed(Session& session, const ManagedSpan& memory, void* const* data,
                           const std::size_t* sizes, const Attribute* attributes,
                           std::size_t count) {
  if (data == nullptr || sizes == nullptr || attributes == nullptr || count == 0)
    return refuse(Refusal::kInvalidValue);
  std::vector<ManagedQuestion> questions;
  for (std::size_t i = 0; i < count; ++i)
    questions.push_back({number_of(attributes[i]), data[i], sizes[i]});
  return tell_managed(session, memory, questions);
}

/// Has a stream own the memory, which is checked and changes nothing. A length of 0 is all of it.
Allowed<void> attach_managed(Session& session, const ManagedSpan& memory, unsigned flags,
                             std::uint64_t stream);

}  // namespace slate::client
