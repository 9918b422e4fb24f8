// Events: the events of a session, with those that sessions of one user share. Thread-safe.
#pragma once

#include <cstdint>

#include "client/session/handle_table.h"
#include "client/session/streams.h"
#include "client/session/wire.h"

namespace slate::client {

/// Set in the flags of an entry of Events::table() once the event was recorded.
inline constexpr std::uint32_t kEventRecorded = 1u << 31;
/// Set in the flags of an event that other sessions may record and wait for.
inline constexpr std::uint32_t kEventShared = 1u << 30;

class Events {
 public:
  Events(Wire& wire, Streams& streams)
      : wire_(wire), streams_(streams), table_(wire.handle_counter()) {}

  const HandleTable& table() const { return table_; }

  Result<std::uint64_t> create(std::uint32_t flags);
  /// kInvalidHandle when there is no such event.
  Result<void> destroy(std::uint64_t event);
  Result<void> record(std::uint64_t event, std::uint64_t stream);
  /// Makes the stream wait for the event's last record.
  Result<void> wait(std::uint64_t stream, std::uint64_t event);
  Result<float> elapsed_ms(std::uint64_t start, std::uint64_t stop);
  /// Whether an earlier session of this process may have made the id.
  bool made_earlier(std::uint64_t event) const {
    return wire_.counted_earlier(event >> HandleTable::kSlotBits);
  }

  /// Sharing, by handles that travel between programs.
  Result<ipc::ShareHandle> export_event(std::uint64_t event);
  Result<std::uint64_t> import_event(const ipc::ShareHandle& handle);

 private:
  Wire& wire_;
  Streams& streams_;
  HandleTable table_;
};

}  // namespace slate::client
