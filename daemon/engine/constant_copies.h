// ConstantCopies: copies of a session's constants from which kernels read, and whether they are
// what the program's constants are. Bounded copies have them in modules of their own
// (injector/fence/own_constants.h); so are the banks of modules whose variables are at home.
// Nothing tells when a kernel writes, so a copy counts as current until anything that may write a
// constant is submitted. Thread: the session's.
#pragma once

#include <cstdint>
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
  /// Whether kernels may know an address of these constants without having been told it: from the
  /// text, or by another engine's time.
  bool may_be_unseen = true;

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
  /// So are a launch and a copy of these bytes from the host. A pointer to a constant among the
  /// parameters counts for what lies around it, too. `may_write()`: as
  /// Reach::may_write_constants(). It is asked only if kernels may find such a pointer in memory.
  template <typename MayWrite>
  void note_launch(std::span<const std::byte> parameters, const MayWrite& may_write) {
    if (sets_.empty()) return;
    note_parameters(parameters);
    if (may_be_in_memory_ && may_write()) outdate_all();
  }
  void note_bytes(std::span<const std::byte> bytes);

 private:
  void add(device::AddressRange range);
  void note_parameters(std::span<const std::byte> parameters);
  void outdate_all();
  bool meets_a_constant(device::AddressRange range) const;
  /// Forgets what is filled in the sets with a constant for which `is_written` is true.
  template <typename IsWritten>
  void outdate(const IsWritten& is_written);

  std::vector<std::weak_ptr<OwnConstantSet>> sets_;
  std::vector<device::AddressRange> constants_;  // of the sets so far, by address, apart
  bool may_be_in_memory_ = false;  // whether kernels may find a constant's address there
};

}  // namespace slate::daemon
