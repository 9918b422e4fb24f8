// HeldCommands: the commands of a session that have to wait for something that the device must not
// be told to wait for: a host function of the client, or a launch that can be called back. A stream
// in which that is under way is held; commands behind it, and what has to come after those, are
// kept here until it is released.
//
// Why not a wait on the device: on a GPU, making partitions, loading and unloading modules and
// letting go of host memory wait until all streams have come to rest, and keep all of them from
// going on meanwhile. A stream that waits for somebody who needs the device would never come to
// rest (docs/scheduling.md).
//
// Session thread only.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "daemon/engine/completer.h"
#include "ipc/commands.h"
#include "ipc/ring.h"

namespace slate::daemon {

class HeldCommands {
 public:
  static constexpr std::size_t kMostCommands = 1 << 20;
  static constexpr std::uint64_t kMostBytes = 256 << 20;
  /// Four times what a native stream takes before its launches wait. Each end of a launch that can
  /// be called back may look at all of them.
  static constexpr std::size_t kCrowd = 4096;

  struct Kept {
    ipc::Command command;
    std::uint64_t position = 0;  // in the client's commands
    /// Of a wait for an event: its recording when the client said so, null if there was none. Not
    /// there when that recording is itself kept.
    std::optional<std::shared_ptr<SharedEvent>> recording = {};
  };

  /// `blocking`: whether a stream takes part in the default stream's order. `full`: whether no
  /// stream is to get more work at present, held or not.
  explicit HeldCommands(
      std::function<bool(std::uint64_t stream)> blocking,
      std::function<bool()> full = [] { return false; })
      : blocking_(std::move(blocking)), full_(std::move(full)) {}

  /// The command at `position` holds the stream: later ones on it wait until release() of the same.
  void hold(std::uint64_t stream, std::uint64_t position);
  void release(std::uint64_t stream, std::uint64_t position);

  /// Whether the command has to come after a held stream or a kept command, or would be more work
  /// than there may be. With nothing held it never has to: who then is full takes no commands.
  bool must_wait(const ipc::Command& command) const;
  /// Whether a recording of the event is kept.
  bool keeps_record(std::uint64_t event) const { return summary_.writers.contains(event); }
  /// Whether a command is kept that gives memory back.
  bool keeps_frees() const { return summary_.frees > 0; }
  /// kLimit when there are too many. Requires: must_wait(kept.command).
  Result<void> keep(Kept kept);
  /// One that found no memory, until what is kept and gives memory back has done so. As keep().
  Result<void> keep_for_room(Kept kept);
  /// Hands over, in order, the commands that need not wait any more, until `serve` says false. It
  /// may hold and release streams.
  bool drain(const std::function<bool(const Kept&)>& serve);
  /// Hands over all, whatever they wait for.
  void give_up(const std::function<void(const ipc::Command&)>& drop);

  bool nothing_waits() const { return held_.empty() && kept_.empty(); }
  /// So many that it is better to leave those that follow where they are, if they may wait there.
  bool crowded() const { return kept_.size() >= kCrowd; }

 private:
  /// As the table of commands says it; nothing for a command that is too short or unknown, which
  /// its dispatcher refuses.
  struct Needs : ipc::Order {
    bool room = false;  // it comes after what gives memory back
    bool any() const { return all || room || stream || event != 0; }
    bool is_work() const { return stream && !only_waits; }
  };
  /// How often something is there.
  struct Counts : std::map<std::uint64_t, std::size_t> {
    void add(std::uint64_t key) { ++(*this)[key]; }
    void remove(std::uint64_t key);
  };
  struct Summary {
    Counts streams, readers, writers;
    std::size_t frees = 0;
    void add(const Needs& needs);
    void remove(const Needs& needs);
  };
  struct Entry {
    Kept kept;
    Needs needs;
  };

  static Needs needs_of(const ipc::Command& command);
  Result<void> add(Kept kept, const Needs& needs);
  bool conflicts(std::uint64_t stream, const Counts& others) const;
  bool waits(const Needs& needs, std::uint64_t position, const Summary& earlier) const;
  bool all_are_held() const;

  const std::function<bool(std::uint64_t)> blocking_;
  const std::function<bool()> full_;
  Counts held_;                             // streams
  std::multiset<std::uint64_t> positions_;  // of what holds them
  std::list<Entry> kept_;
  Summary summary_;             // of kept_
  std::size_t waits_only_ = 0;  // of kept_
  std::uint64_t bytes_ = 0;
};

}  // namespace slate::daemon
