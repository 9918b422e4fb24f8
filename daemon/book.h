// Book: what is needed to rebuild one session in another engine, in shared memory that outlives the
// engine which writes it. The supervisor makes it and hands it to each engine that serves the
// session. It has four parts:
// - the log: the objects that are in force (book_log.h).
// - the journal: commands that were taken from the ring and are not known to be done.
// - how far each stream has come.
// - when events were reached (event_times.h).
// Supervisor and engine trust one another, but an engine may die while it writes: a record counts
// once the word behind it is stored. Thread: the session's, but for what says otherwise.
#pragma once

#include <atomic>
#include <boost/interprocess/mapped_region.hpp>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "daemon/book_log.h"
#include "daemon/book_pages.h"
#include "daemon/event_times.h"
#include "ipc/ring.h"

namespace slate::daemon {

/// More than 25 functions, because the journal and the progress of streams are read as one.
class Book {
 public:
  static constexpr std::uint32_t kStreams =
      4097;  // rows of streams: a session's most, and its default
  static constexpr std::uint32_t kNoStream = ~0u;

  /// Makes an empty book. Errors: kOutOfMemory, kIo.
  static Result<std::unique_ptr<Book>> make();
  /// Maps the book behind a descriptor. Errors: kProtocol for memory of another size.
  static Result<std::unique_ptr<Book>> from_fd(UniqueFd fd);
  Book(const Book&) = delete;
  Book& operator=(const Book&) = delete;

  int fd() const { return fd_.get(); }
  /// Whether no engine has written anything.
  bool is_blank() const;
  /// This engine writes nothing any more. Any thread.
  void freeze() { frozen_.store(true); }
  bool is_frozen() const { return frozen_.load(std::memory_order_relaxed); }
  /// Empties it: no engine has taken a command of the session.
  void reset();

  // --- Whether the session can leave its engine. Any thread.
  /// The session has something that no other engine can rebuild. The first reason counts.
  void forbid(std::string_view why);
  /// Why the session cannot leave its engine; nullopt: it can.
  std::optional<std::string> why_not() const;

  // --- Log
  using Key = BookLog::Key;
  using Entry = BookLog::Entry;
  /// Makes or replaces an entry, by the present command. Session thread.
  void put(BookKind kind, std::uint64_t key, std::span<const std::byte> payload = {});
  template <typename T>
  void put_value(BookKind kind, std::uint64_t key, const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    put(kind, key, std::as_bytes(std::span(&value, 1)));
  }
  /// Ignores an entry that is not there. Any thread.
  void drop(BookKind kind, std::uint64_t key);
  bool has(BookKind kind, std::uint64_t key) const { return log_.has({kind, key}); }
  std::vector<std::pair<Key, Entry>> entries() const { return log_.entries(); }

  EventTimes& times() { return times_; }

  // --- Progress
  /// The command that ends at `position` is about to be carried out.
  void begin(std::uint64_t position) { present_ = position; }
  /// The command that ends at `position` was carried out, refused, or is in the journal.
  void taken(std::uint64_t position) {
    if (!is_frozen()) shared_->taken.store(position, std::memory_order_release);
  }
  std::uint64_t taken() const { return shared_->taken.load(std::memory_order_acquire); }
  /// Where the next engine goes on: behind the last command that was carried out or is in the
  /// journal.
  std::uint64_t resume_at() const;

  // --- Journal
  struct Open {
    std::uint64_t position = 0;
    std::uint32_t stream = kNoStream;  // row of its stream
    bool begun = false;                // whether the device may have begun it
    bool done = false;                 // whether it is known to be done
    bool passed = false;  // whether later commands may be forgotten that were done before it
    ipc::Command command;
  };
  /// Writes the command that is about to be carried out. `begun`: whether it goes to the device
  /// now; false: it waits for something else.
  void write(std::uint64_t position, std::uint32_t stream, const ipc::Command& command, bool begun);
  /// A command that was written with `begun` = false goes to the device now.
  void begun(std::uint64_t position);
  /// A command that has no stream, or that waits, is done. Any thread.
  void close(std::uint64_t position);
  /// The command that was written last was refused.
  void refused(std::uint64_t position);
  /// All work that commands up to `position` put on the stream is done. Any thread.
  void done(std::uint32_t stream, std::uint64_t position);
  std::uint64_t done_of(std::uint32_t stream) const;
  /// Gives a new stream its row. kNoStream when there is none.
  std::uint32_t take_stream();
  void give_stream(std::uint32_t stream);
  /// Marks a row as in use, after from_fd().
  void use_stream(std::uint32_t stream);
  /// The commands from the first one that is not known to be done, by rising position.
  std::vector<Open> open() const;

 private:
  static constexpr std::uint64_t kJournalBytes = 4 << 20;  // a power of two

  struct JournalRecord {
    std::uint32_t bytes;  // with the body and padding: a multiple of 16; a record never wraps
    std::uint32_t stream;
    std::uint64_t position;
    std::atomic<std::uint32_t> state;  // State
    std::uint32_t reserved;
    ipc::CommandHeader header;  // its body follows
  };
  static_assert(sizeof(JournalRecord) == 40);
  enum class State : std::uint32_t { kPad, kWaits, kBegun, kClosed, kPassed };

  /// Writer of all: the engine. Readers: the next engine, and the supervisor (`forbidden`).
  struct Shared {
    std::atomic<std::uint64_t> taken;
    std::atomic<std::uint64_t> journal_begin;  // positions that only grow
    std::atomic<std::uint64_t> journal_end;
    std::atomic<std::uint32_t> forbidden;
    char why[256];
    std::atomic<std::uint64_t> done[kStreams];
    BookLog::Memory log;
    alignas(4096) std::byte journal[kJournalBytes];
    alignas(4096) EventTimes::Memory times;
  };

  Book(UniqueFd fd, boost::interprocess::mapped_region region);
  void read_journal();
  JournalRecord* record_at(std::uint64_t position) const;
  bool is_done(const JournalRecord& record) const;
  std::uint64_t journal_bytes() const;
  void drop_done();
  bool make_room(std::uint64_t bytes);
  std::optional<std::uint64_t> put_record(const JournalRecord& record);

  const UniqueFd fd_;
  const boost::interprocess::mapped_region region_;
  Shared* const shared_;
  BookLog log_;
  BookPages journal_pages_;
  std::atomic<bool> frozen_{false};
  EventTimes times_;
  std::uint64_t present_ = 0;
  std::uint64_t last_written_ = 0;  // last position in the journal, when it was opened
  std::uint64_t last_position_ = 0;
  std::uint64_t last_place_ = 0;    // of the record that was written last
  std::vector<std::byte> scratch_;  // a record that is being made
  std::vector<std::uint32_t> free_streams_;
  mutable Mutex mutex_;
  // Places of the records that close() ends, by position.
  std::map<std::uint64_t, std::uint64_t> unended_ SLATE_GUARDED_BY(mutex_);
};

}  // namespace slate::daemon
