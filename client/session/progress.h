// ProgressTable: how far this program has sent each stream, beside how far the daemon says it has
// come (ipc::StatusPage::completed): what queries are answered from without asking anybody.
//
// A stream has one of a bounded number of entries; those beyond have none, and then the daemon has
// to be asked. Thread-safe.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "ipc/channel.h"

namespace slate::client {

class ProgressTable {
 public:
  static constexpr std::uint32_t kDefaultStream = 0;

  /// `channel` outlives it.
  explicit ProgressTable(const ipc::ClientChannel& channel);

  /// An entry for a new stream; ipc::kNoProgress when there is none left. `blocking`: its work is
  /// waited for with the default stream's.
  std::uint32_t take(bool blocking);
  /// The stream is gone; its work may still go on. kNoProgress is ignored.
  void give_back(std::uint32_t entry);

  /// For a command that puts work on the stream; of kNoProgress only the newest place is noted.
  ipc::PlaceNote note_of(std::uint32_t entry);
  /// What is known of the work sent to one stream so far; none: the daemon knows.
  std::optional<bool> finished(std::uint32_t entry) const;
  /// Of the default stream and the blocking ones, or of all.
  std::optional<bool> finished_all(bool only_blocking) const;
  /// Of all, where the default stream's newest work is at `newest`, but for that if it is at
  /// `left_out`.
  std::optional<bool> finished_all_but(std::uint64_t left_out, std::uint64_t newest) const;

  /// Of all, what was sent up to `position`.
  std::optional<bool> finished_up_to(std::uint64_t position) const;

  /// A wait or a copy has shown that work up to `position` is done, which the page may tell later.
  void confirm(std::uint32_t entry, std::uint64_t position);
  void confirm_mark(std::uint64_t mark);
  /// What was sent so far, to be confirmed when a wait for all of it is over. Entries that
  /// `only_blocking` leaves out are 0.
  using Snapshot = std::array<std::uint64_t, ipc::kProgressSlots>;
  void sent(bool only_blocking, Snapshot& snapshot) const;
  std::uint64_t sent(std::uint32_t entry) const;
  /// Position of the newest work on any stream.
  std::uint64_t newest() const { return newest_.load(std::memory_order_acquire); }
  void confirm(const Snapshot& snapshot);

  /// A record of an event on a stream, as one number that grows from record to record; never 0.
  static std::uint64_t mark_of(std::uint32_t entry, std::uint64_t position);
  /// Whether what comes before that record is done. Requires: mark is not 0.
  std::optional<bool> reached(std::uint64_t mark) const;

  /// A wait has ended that began when `newest()` was `position`. It may have waited for other
  /// streams than its own, by events, whose work the page does not tell to be done yet.
  void wait_ended(std::uint64_t position);
  /// Whether work up to this mark may be done though the page does not tell it: it was sent before
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
  std::atomic<std::uint32_t> used_{1};   // entries ever handed out, the default stream's first
  std::atomic<bool> overflowed_{false};  // some stream had none
  std::atomic<std::uint64_t> newest_{0};
  std::atomic<std::uint64_t> waited_{0};  // for work up to there, on some stream
  struct Asked {
    std::atomic<std::uint64_t> mark{0}, waited{0};
  };
  std::array<Asked, 16> asked_;  // by mark; a newer one takes the place of an older one
  std::mutex mutex_;             // guards given_back_
  std::vector<std::uint32_t> given_back_;
};

}  // namespace slate::client
