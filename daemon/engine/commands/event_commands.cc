#include "daemon/engine/commands/event_commands.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "base/clock.h"

namespace slate::daemon {

using ipc::CommandType;

static_assert(EventCommands::kMostEvents <= EventTimes::kRows);

namespace {

std::int64_t nanoseconds(float milliseconds) {
  return std::llround(double{milliseconds} * 1e6);
}

}  // namespace

Result<EventCommands::Record*> EventCommands::find(std::uint64_t id) {
  const auto found = records_.find(id);
  if (found == records_.end()) return fail(ErrorCode::kInvalidHandle, "no such event");
  Record& record = found->second;
  // Another session may have recorded it since.
  if (record.shared) record.event = record.shared->latest();
  return &record;
}

/// As find(). A command that comes again may be about an event which was destroyed behind it.
Result<EventCommands::Record*> EventCommands::find_kept(std::uint64_t id,
                                                        const HeldCommands::Kept* kept) {
  if (kept != nullptr) records_.try_emplace(id, Record{.timing = false, .event = nullptr});
  return find(id);
}

void EventCommands::release() {
  records_.clear();
  for (auto& replaced : replaced_) replaced.clear();
}

Result<void> EventCommands::add(std::uint64_t id, Record record) {
  if (id == 0 || records_.contains(id))
    return fail(ErrorCode::kProtocol, fmt::format("event id {} is not a new one", id));
  if (records_.size() >= kMostEvents) return fail(ErrorCode::kLimit, "too many events");
  records_.emplace(id, std::move(record));
  return {};
}

/// Gives the record an event on which nothing waits.
Result<void> EventCommands::renew(Record& record) {
  constexpr std::size_t kMostReplaced = 1024;
  auto& replaced = replaced_[record.timing ? 1 : 0];
  if (record.event && replaced.size() < kMostReplaced) replaced.push_back(std::move(record.event));
  // Recorded in this order, reached in about the same.
  if (!replaced.empty() && replaced.front().use_count() == 1) {
    record.event = std::move(replaced.front());
    replaced.pop_front();
    return {};
  }
  auto fresh = SharedEvent::make(context_.device, record.timing);
  if (!fresh) return context_.checked(std::unexpected(fresh.error()));
  record.event = std::move(*fresh);
  return {};
}

Result<void> EventCommands::on(const Call<CommandType::kEventCreate>& call) {
  Record record{.timing = (call.body.flags & ipc::kEventNoTiming) == 0, .event = nullptr};
  if (record.timing && context_.book) record.time_row = context_.book->time_row();
  const std::uint32_t row = record.time_row;
  auto added = add(call.body.id, std::move(record));
  if (!added && context_.book) context_.book->book().times().give(row);
  return added;
}

Result<void> EventCommands::on(const Call<CommandType::kEventDestroy>& call) {
  const auto record = records_.extract(call.body.id);
  if (record.empty()) return fail(ErrorCode::kInvalidHandle, "no such event");
  if (const auto& shared = record.mapped().shared)
    context_.exports->withdraw(context_.session, *shared);
  if (context_.book) context_.book->book().times().give(record.mapped().time_row);
  return {};
}

Result<void> EventCommands::on(const Call<CommandType::kEventRecord>& call) {
  const auto found = find_kept(call.body.event, call.kept);
  if (!found) return std::unexpected(found.error());
  Record& record = **found;
  if (!record.event || record.event.use_count() > 1 || record.shared) {
    if (const auto renewed = renew(record); !renewed) return renewed;
  }
  const auto target = context_.streams.begin_work(*call.stream);
  if (!target) return context_.checked(std::unexpected(target.error()));
  if (const auto done = context_.device.record(record.event->get(), *target); !done)
    return context_.checked(done);
  note_recorded(record, *call.stream);
  if (record.shared) record.shared->set(record.event);
  context_.streams.work_submitted(*call.stream);
  // Watched here: its end must be seen even if more work follows at once.
  EventTimes* const times =
      record.time_row == EventTimes::kNoRow ? nullptr : &context_.book->book().times();
  context_.streams.watches().watch_event(*call.stream, record.event, {}, {times, record.time_row});
  return {};
}

Result<void> EventCommands::on(const Call<CommandType::kStreamWaitEvent>& call) {
  std::shared_ptr<SharedEvent> event;
  if (call.kept != nullptr && call.kept->recording) {
    event = *call.kept->recording;
  } else {
    const auto record = find_kept(call.body.event, call.kept);
    if (!record) return std::unexpected(record.error());
    event = (*record)->event;
  }
  if (!event) return {};
  return context_.submit(*call.stream, [&](device::Stream stream) {
    return context_.device.wait(stream, event->get());
  });
}

Result<void> EventCommands::on(const Call<CommandType::kEventElapsed>& call) {
  const auto start = find(call.body.start);
  if (!start) return std::unexpected(start.error());
  const auto stop = find(call.body.stop);
  if (!stop) return std::unexpected(stop.error());
  if (!(*start)->is_timed() || !(*stop)->is_timed())
    return fail(ErrorCode::kInvalidHandle, "an event that was not recorded, or has no timing");
  const auto milliseconds = elapsed_ms(**start, **stop);
  if (!milliseconds) return context_.checked(std::unexpected(milliseconds.error()));
  call.reply.set(ipc::ElapsedReply{*milliseconds, 0});
  return {};
}

void EventCommands::go_on(std::uint64_t id, std::uint32_t time_row) {
  const auto found = find(id);
  if (!found || !(*found)->timing) return;
  (*found)->time_row = time_row;
  const auto last = context_.book->book().times().take_again(time_row);
  (*found)->book_row = last.stream;
  (*found)->position = last.position;
  (*found)->is_past = last.position != 0;
}

/// A recording that comes again may have been followed by another one that was reached, on another
/// stream. Then that one counts, and the device event is for the waits in between only.
void EventCommands::note_recorded(Record& record, const LogicalStream& stream) {
  const std::uint64_t position = context_.streams.position();
  if (record.is_past && position < record.position) return;
  record.book_row = stream.book_row;
  record.position = position;
  record.is_past = record.is_fixed = false;
  if (context_.book)
    context_.book->book().times().recorded(record.time_row, {position, record.book_row});
}

Result<float> EventCommands::elapsed_ms(Record& start, Record& stop) {
  if (start.is_past || stop.is_past) return elapsed_on_host(start, stop);
  const auto milliseconds = context_.device.elapsed_ms(start.event->get(), stop.event->get());
  if (!milliseconds) return milliseconds;
  for (const Record* const record : {&start, &stop})
    context_.note_done(record->book_row, record->position, record->time_row);
  fix_times(start, stop, *milliseconds);
  return milliseconds;
}

/// Where no engine has both events. The host may see two events of a stream in one look, or late.
Result<float> EventCommands::elapsed_on_host(const Record& start, const Record& stop) {
  std::int64_t times[2];
  const Record* const both[2] = {&start, &stop};
  for (int i = 0; i < 2; ++i) {
    const Record& record = *both[i];
    if (!record.is_past) {
      const auto reached = context_.device.query(record.event->get());
      if (!reached) return std::unexpected(reached.error());
      if (!*reached) return fail(ErrorCode::kInvalidValue, "an event that is not reached yet");
      context_.note_done(record.book_row, record.position, record.time_row);
    }
    // Unknown while another thread writes the present time.
    times[i] = context_.book->book().times().time(record.time_row).value_or(now_ns());
  }
  std::int64_t between = times[1] - times[0];
  if (start.book_row == stop.book_row && start.position < stop.position)
    between = std::max<std::int64_t>(between, 0);
  return static_cast<float>(static_cast<double>(between) * 1e-6);
}

/// What the program has heard stays: in the next engine, too, the two are as far apart. The host
/// sees an event late and never early, so that the earlier place of the pair is the better one.
void EventCommands::fix_times(Record& start, Record& stop, float milliseconds) {
  if (!context_.book || (start.is_fixed && stop.is_fixed)) return;
  EventTimes& times = context_.book->book().times();
  const auto first = times.time(start.time_row), last = times.time(stop.time_row);
  if (!first || !last) return;
  const std::int64_t between = nanoseconds(milliseconds);
  std::int64_t begin = std::min(*first, *last - between);
  if (start.is_fixed) begin = *first;
  if (stop.is_fixed) begin = *last - between;
  times.set(start.time_row, begin);
  times.set(stop.time_row, begin + between);
  start.is_fixed = stop.is_fixed = true;
}

/// From one event to the next, as a float has few digits. All are moved together to the earliest
/// place that one of them allows, as in fix_times().
void EventCommands::settle_times() {
  struct Timed {
    std::int64_t seen;
    const Record* record;
    std::int64_t after_first;
  };
  if (!context_.book) return;
  EventTimes& times = context_.book->book().times();
  std::vector<Timed> all;
  for (const auto& [id, record] : records_) {
    if (record.is_past || !record.is_timed()) continue;
    if (const auto seen = times.time(record.time_row)) all.push_back({*seen, &record, 0});
  }
  std::ranges::sort(all, {}, &Timed::seen);
  for (std::size_t i = 1; i < all.size(); ++i) {
    const auto step =
        context_.device.elapsed_ms(all[i - 1].record->event->get(), all[i].record->event->get());
    if (!step) return;  // then the host's times are good enough
    all[i].after_first = all[i - 1].after_first + nanoseconds(*step);
  }
  if (all.empty()) return;
  std::int64_t first = all[0].seen;
  for (const Timed& each : all) first = std::min(first, each.seen - each.after_first);
  for (const Timed& each : all) times.set(each.record->time_row, first + each.after_first);
}

Result<void> EventCommands::on(const Call<CommandType::kEventExport>& call) {
  const auto record = find(call.body.id);
  if (!record) return std::unexpected(record.error());
  if ((*record)->timing)
    return fail(ErrorCode::kInvalidHandle, "an event with timing is not shared");
  if (!(*record)->shared) {
    (*record)->shared = std::make_shared<SharedRecord>();
    (*record)->shared->set((*record)->event);
  }
  const auto handle = context_.exports->offer(context_.session, context_.uid, (*record)->shared);
  if (!handle) return std::unexpected(handle.error());
  call.reply.set(ipc::ShareReply{*handle});
  return {};
}

Result<void> EventCommands::on(const Call<CommandType::kEventImport>& call) {
  if (call.body.id == 0 || records_.contains(call.body.id))
    return fail(ErrorCode::kProtocol, "an event id that is not a new one");
  auto shared = context_.exports->open_event(call.body.handle, context_.uid);
  if (!shared) return std::unexpected(shared.error());
  return add(call.body.id, {false, (*shared)->latest(), std::move(*shared)});
}

}  // namespace slate::daemon
