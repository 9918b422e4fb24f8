// ConstantCopies: copies of a session's constants from which kernels read, and whether they are
// what the program's constants are. Bounded copies have them in modules of their own
// (injector/fence/own_constants.h); so are the banks of modules whose variables are at home.
// Nothing tells when a kernel writes, so a copy counts as current until anything that may write a
// constant is submitted. Thread: the session's.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "daemon/engine/stream_order.h"
#include "device/device.h"

namespace slate::daemon {

/// The constants of one bounded copy, or of one bank.
struct OwnConstantSet {
  struct Pair {
    device::AddressRange program;  // the program's constant
    device::Address own = 0;       // the copy's own
  };
  std::vector<Pair> pairs;
  /// Stream on which they were filled; null: they may differ from the program's.
  std::shared_ptr<LogicalStream> filled_on;
  std::uint64_t filled_at = 0;  // LogicalStream::submitted behind the filling

  /// Whether they are the program's for a launch on `stream`, behind all that it has been given.
  bool is_current(const LogicalStream& stream) const {
    return filled_on != nullptr &&
           (filled_on.get() == &stream || filled_on->completed.load() >= filled_at);
  }
};

class ConstantCopies {
 public:
  /// Watches a set for as long as it lives.
  void watch(const std::shared_ptr<OwnConstantSet>& set);
  /// Whether anything that is submitted has to be told.
  bool empty() const { return sets_.empty(); }
  /// A command is about to be submitted that writes to this memory.
  void note_write(device::AddressRange range);
  /// Whether an address is in memory of the session in which no constant lies.
  using IsApart = std::function<bool(device::Address address)>;
  /// So is a launch. `may_write`: as Reach::may_write_constants(). A pointer among the parameters
  /// counts for what lies around it, too, unless `is_apart` says otherwise; null: nothing is.
  void note_launch(bool may_write, std::span<const std::byte> parameters,
                   const IsApart& is_apart = nullptr);

 private:
  /// Forgets what is filled in the sets with a constant for which `is_written` is true.
  template <typename IsWritten>
  void outdate(const IsWritten& is_written);

  std::vector<std::weak_ptr<OwnConstantSet>> sets_;
  device::AddressRange all_{};  // from the first to the last constant of the sets so far
};

}  // namespace slate::daemon
