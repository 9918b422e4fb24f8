// ProgressTable: up to where this program has sent each stream, and up to where the daemon says it
// is done (ipc::StatusPage::completed). It answers queries without a question to the daemon.
//
// The number of entries is limited. For a stream without one the daemon has to be asked.
// Thread-safe.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/mutex.h"
#include "ipc/channel.h"

namespace slate::client {

class ProgressTable {
 public:
  static constexpr std::uint32_t kDefaultStream = 0;

  /// `channel` outlives it.
  explicit ProgressTable(const ipc::ClientChannel& channel);

  /// An entry for a new stream; ipc::kNoProgress when there is none left. `blocking`: whether waits
  /// for the default stream include its work.
  std::uint32_t take(bool blocking);
  /// The stream is destroyed; its work may still run. kNoProgress is ignored.
  void give_back(std::uint32_t entry);

  /// The note for a command that puts work on the stream. For kNoProgress only the newest place is
  /// noted.
  ipc::PlaceNote note_of(std::uint32_t entry);
  /// Whether the work sent to one stream so far is done; nothing: only the daemon knows.
  std::optional<bool> finished(std::uint32_t entry) const;
  /// The same for the default stream and the blocking ones, or for all streams.
  std::optional<bool> finished_all(bool only_blocking) const;
  /// The same for all streams, without the default stream's newest work if that is at `left_out`.
  /// `newest`: position of that work.
  std::optional<bool> finished_all_but(std::uint64_t left_out, std::uint64_t newest) const;

  /// The same for all work sent up to `position`.
  std::optional<bool> finished_up_to(std::uint64_t position) const;

  /// A wait or a copy has shown that work up to `position` is done. The page may say so later.
  void confirm(std::uint32_t entry, std::uint64_t position);
  void confirm_mark(std::uint64_t mark);
  /// The work sent so far, to be confirmed after a wait for all of it. Entries that `only_blocking`
  /// leaves out are 0.
  using Snapshot = std::array<std::uint64_t, ipc::kProgressSlots>;
  void sent(bool only_blocking, Snapshot& snapshot) const;
  std::uint64_t sent(std::uint32_t entry) const;
  /// Position of the newest work on any stream.
  std::uint64_t newest() const { return newest_.load(std::memory_order_acquire); }
  void confirm(const Snapshot& snapshot);

  /// A number for an event's record on a stream. It grows from record to record and is never 0.
  static std::uint64_t mark_of(std::uint32_t entry, std::uint64_t position);
  /// Whether the work before that record is done. Requires: mark is not 0.
  std::optional<bool> reached(std::uint64_t mark) const;

  /// A wait has ended that began when `newest()` was `position`. By events it may have waited for
  /// other streams' work too, which the page does not yet show as done.
  void wait_ended(std::uint64_t position);
  /// Whether work up to this mark may be done though the page does not show it: it was sent before
  /// a wait that has ended. True once for each mark and wait, so that polling stays cheap.
  bool may_lag(std::uint64_t mark);

 private:
  struct Entry {
    std::atomic<std::uint64_t> last{0};
    std::atomic<std::uint64_t> confirmed{0};
    std::atomic<bool> blocking{true};
  };

  bool completed(std::uint32_t entry, std::uint64_t position) const {
    return channel_.completed(entry, position) ||
           entries_[entry].confirmed.load(std::memory_order_acquire) >= position;
  }
  template <typename Done>
  std::optional<bool> all_entries(const Done& done) const;
  bool done(std::uint32_t entry) const {
    return completed(entry, entries_[entry].last.load(std::memory_order_acquire));
  }

  const ipc::ClientChannel& channel_;
  std::array<Entry, ipc::kProgressSlots> entries_;
  std::atomic<std::uint32_t> used_{1};   // entries used at some time, the default stream's first
  std::atomic<bool> overflowed_{false};  // whether some stream had no entry
  std::atomic<std::uint64_t> newest_{0};
  std::atomic<std::uint64_t> waited_{0};  // position up to which some stream's wait has ended
  struct Asked {
    std::atomic<std::uint64_t> mark{0}, waited{0};
  };
  std::array<Asked, 16> asked_;  // by mark; a newer one replaces an older one
  Mutex mutex_;
  std::vector<std::uint32_t> given_back_ SLATE_GUARDED_BY(mutex_);
};

}  // namespace slate::client
