// EventCommands: a session's events, and the commands on them. An event's record keeps the device
// event of its last recording. While something waits for that device event, a new recording takes
// another. Of a recording in an earlier engine the session's book has the time (event_times.h).
// Session thread.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <unordered_map>

#include "daemon/engine/commands/call.h"
#include "daemon/engine/commands/part_context.h"

namespace slate::daemon {

class EventCommands {
 public:
  static constexpr std::size_t kMostEvents = 65536;

  struct Record {
    bool timing = true;
    std::shared_ptr<SharedEvent> event;  // null before the first recording
    /// Shared with other sessions, whose recordings count.
    std::shared_ptr<SharedRecord> shared = nullptr;
    // The last recording: its stream's row in the session's book, and its command's position.
    std::uint32_t book_row = Book::kNoStream;
    std::uint64_t position = 0;
    std::uint32_t time_row = EventTimes::kNoRow;  // its row in the book, if it is timed
    bool is_past = false;   // whether the last recording was in an earlier engine
    bool is_fixed = false;  // whether the last recording's time was told beside another's
    bool is_timed() const { return timing && (event != nullptr || is_past); }
  };

  explicit EventCommands(const PartContext& context) : context_(context) {}

  Result<void> on(const Call<ipc::CommandType::kEventCreate>& call);
  Result<void> on(const Call<ipc::CommandType::kEventDestroy>& call);
  Result<void> on(const Call<ipc::CommandType::kEventRecord>& call);
  Result<void> on(const Call<ipc::CommandType::kStreamWaitEvent>& call);
  Result<void> on(const Call<ipc::CommandType::kEventElapsed>& call);
  Result<void> on(const Call<ipc::CommandType::kEventExport>& call);
  Result<void> on(const Call<ipc::CommandType::kEventImport>& call);

  /// The event that was just made had been made by an earlier engine, with this row in the book.
  void go_on(std::uint64_t id, std::uint32_t time_row);
  /// Puts the device's exact times of all events into the book, for the next engine. Requires: no
  /// work of the session runs.
  void settle_times();

  /// kInvalidHandle when there is none. The record is valid until the next command.
  Result<Record*> find(std::uint64_t id);
  void release();

 private:
  Result<void> add(std::uint64_t id, Record record);
  Result<Record*> find_kept(std::uint64_t id, const HeldCommands::Kept* kept);
  Result<void> renew(Record& record);
  void note_recorded(Record& record, const LogicalStream& stream);
  Result<float> elapsed_ms(Record& start, Record& stop);
  Result<float> elapsed_on_host(const Record& start, const Record& stop);
  void fix_times(Record& start, Record& stop, float milliseconds);

  const PartContext& context_;
  std::unordered_map<std::uint64_t, Record> records_;
  /// Replaced device events, used again when nothing waits for them any more.
  std::deque<std::shared_ptr<SharedEvent>> replaced_[2];  // by timing
};

}  // namespace slate::daemon
