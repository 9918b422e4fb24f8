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
#include <optional>

#include "ipc/ring.h"

namespace slate::daemon {

/// The stream that a command puts work on, or would have; none for other commands.
std::optional<std::uint64_t> stream_of(const ipc::Command& command);

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
  };

  /// `blocking`: whether a stream takes part in the default stream's order.
  explicit HeldCommands(std::function<bool(std::uint64_t stream)> blocking)
      : blocking_(std::move(blocking)) {}

  /// Later commands on the stream wait until as many calls of release().
  void hold(std::uint64_t stream) { held_.add(stream); }
  void release(std::uint64_t stream) { held_.remove(stream); }

  /// Whether the command has to come after a held stream or a kept command.
  bool must_wait(const ipc::Command& command) const;
  /// kLimit when there are too many. Requires: must_wait(command).
  Result<void> keep(ipc::Command command, std::uint64_t position);
  /// Hands over, in order, the commands that need not wait any more, until `serve` says false. It
  /// may hold and release streams.
  bool drain(const std::function<bool(const Kept&)>& serve);
  /// Hands over all, whatever they wait for.
  void give_up(const std::function<void(const ipc::Command&)>& drop);

  bool nothing_waits() const { return held_.empty() && kept_.empty(); }
  /// So many that it is better to leave those that follow where they are, if they may wait there.
  bool crowded() const { return kept_.size() >= kCrowd; }

 private:
  /// What a command must come after: all work, or that on a stream and about an event. 0 is a
  /// stream too, but no event. Work on a stream also keeps back what comes later; who only waits
  /// for all, or for one thing, keeps nobody back, as another thread of the program may go on
  /// meanwhile.
  struct Needs {
    bool all = false;
    std::optional<std::uint64_t> stream = {};
    std::uint64_t event = 0;
    bool only_waits = false;
    bool any() const { return all || stream || event != 0; }
  };
  /// How often something is there.
  struct Counts : std::map<std::uint64_t, std::size_t> {
    void add(std::uint64_t key) { ++(*this)[key]; }
    void remove(std::uint64_t key);
  };
  struct Summary {
    Counts streams, events;
    void add(const Needs& needs);
    void remove(const Needs& needs);
  };
  struct Entry {
    Kept kept;
    Needs needs;
  };

  static Needs needs_of(const ipc::Command& command);
  bool conflicts(std::uint64_t stream, const Counts& others) const;
  bool waits(const Needs& needs, const Summary& earlier) const;
  bool all_are_held() const;

  const std::function<bool(std::uint64_t)> blocking_;
  Counts held_;
  std::list<Entry> kept_;
  Summary summary_;             // of kept_
  std::size_t waits_only_ = 0;  // of kept_
  std::uint64_t bytes_ = 0;
};

}  // namespace slate::daemon
