// HeldCommands: the commands of a session that wait where the device must not: for a host function
// of the client, or for a launch that can be called back. A stream with one of these is held.
// Commands behind it, and commands ordered after those, are kept here until its release.
//
// Why not a wait on the device: some calls of a GPU's driver wait until all streams rest, and let
// none go on meanwhile. They make partitions, load and unload modules, and free host memory. A
// stream that waits for a thread that needs the device would never rest (docs/scheduling.md).
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
  /// Four times the launches that a native stream takes without waiting. Each end of a launch that
  /// can be called back may look at all kept commands.
  static constexpr std::size_t kCrowd = 4096;

  struct Kept {
    ipc::Command command;
    std::uint64_t position = 0;  // position among the client's commands
    /// Event waits: the event's recording when the client sent the wait; null if there was none.
    /// Nothing when that recording is itself kept.
    std::optional<std::shared_ptr<SharedEvent>> recording = {};
  };

  /// `blocking`: whether a stream takes part in the default stream's order. `full`: whether no
  /// stream may get more work at present, held or not.
  explicit HeldCommands(
      std::function<bool(std::uint64_t stream)> blocking,
      std::function<bool()> full = [] { return false; })
      : blocking_(std::move(blocking)), full_(std::move(full)) {}

  /// The command at `position` holds the stream: later commands on it wait until its release().
  void hold(std::uint64_t stream, std::uint64_t position);
  void release(std::uint64_t stream, std::uint64_t position);

  /// Whether the command must follow a held stream or a kept command, or would be more work than is
  /// allowed. False when nothing is held or kept: a full session takes no commands then.
  bool must_wait(const ipc::Command& command) const;
  /// Whether a recording of the event is kept.
  bool keeps_record(std::uint64_t event) const { return summary_.writers.contains(event); }
  /// Whether a kept command frees memory.
  bool keeps_frees() const { return summary_.frees > 0; }
  /// Keeps a command. kLimit when there are too many. Requires: must_wait(kept.command).
  Result<void> keep(Kept kept);
  /// Keeps a command that found no memory, until the kept commands that free memory are done.
  /// Errors as keep().
  Result<void> keep_for_room(Kept kept);
  /// Hands over, in order, the commands that need not wait any more, until `serve` returns false.
  /// `serve` may hold and release streams.
  bool drain(const std::function<bool(const Kept&)>& serve);
  /// Hands over all commands, whatever they wait for.
  void give_up(const std::function<void(const ipc::Command&)>& drop);

  bool nothing_waits() const { return held_.empty() && kept_.empty(); }
  /// Whether later commands should stay in the ring, if they may wait there.
  bool crowded() const { return kept_.size() >= kCrowd; }

 private:
  /// A command's row in the table of commands. Empty for a command that is too short or unknown,
  /// which its dispatcher refuses.
  struct Needs : ipc::Order {
    bool room = false;  // whether it follows kept commands that free memory
    bool any() const { return all || room || stream || event != 0; }
    bool is_work() const { return stream && !only_waits; }
  };
  /// How often each key is there.
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
  std::multiset<std::uint64_t> positions_;  // positions of the commands that hold them
  std::list<Entry> kept_;
  Summary summary_;             // summary of kept_
  std::size_t waits_only_ = 0;  // number of waits in kept_
  std::uint64_t bytes_ = 0;
};

}  // namespace slate::daemon
