#include "daemon/book.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "ipc/shared_memory.h"

namespace slate::daemon {
namespace {

constexpr std::uint64_t padded(std::uint64_t bytes) {
  return (bytes + 15) / 16 * 16;
}

}  // namespace

Result<std::unique_ptr<Book>> Book::make() {
  auto fd = ipc::make_shared_memory("slate-book", sizeof(Shared));
  if (!fd) return std::unexpected(fd.error());
  if (const auto taken = ipc::populate(fd->get(), 0, offsetof(Shared, log.records)); !taken)
    return std::unexpected(taken.error());
  return from_fd(std::move(*fd));
}

Result<std::unique_ptr<Book>> Book::from_fd(UniqueFd fd) {
  auto region = ipc::map_shared_memory(fd.get(), sizeof(Shared), "a session's book");
  if (!region) return std::unexpected(region.error());
  std::unique_ptr<Book> book(new Book(std::move(fd), std::move(*region)));
  if (const auto read = book->log_.read(); !read) book->forbid(read.error().message);
  book->read_journal();
  return book;
}

Book::Book(UniqueFd fd, boost::interprocess::mapped_region region)
    : fd_(std::move(fd)),
      region_(std::move(region)),
      shared_(static_cast<Shared*>(region_.get_address())),
      log_(shared_->log, fd_.get(), offsetof(Shared, log)),
      journal_pages_(fd_.get(), offsetof(Shared, journal)),
      times_(shared_->times, fd_.get(), offsetof(Shared, times), frozen_) {
  for (std::uint32_t row = kStreams; row-- > 1;) free_streams_.push_back(row);
}

bool Book::is_blank() const {
  return taken() == 0 && log_.is_blank() &&
         shared_->journal_end.load(std::memory_order_acquire) == 0;
}

void Book::reset() {
  const MutexLock lock(mutex_);
  log_.clear();
  unended_.clear();
  shared_->journal_end.store(0);
  shared_->journal_begin.store(0);
  for (auto& row : shared_->done) row.store(0);
  shared_->forbidden.store(0);
  shared_->taken.store(0);
}

void Book::forbid(std::string_view why) {
  std::uint32_t none = 0;
  if (!shared_->forbidden.compare_exchange_strong(none, 1)) return;
  const std::size_t bytes = std::min(why.size(), sizeof(shared_->why) - 1);
  std::memcpy(shared_->why, why.data(), bytes);
  shared_->forbidden.store(2, std::memory_order_release);
}

std::optional<std::string> Book::why_not() const {
  switch (shared_->forbidden.load(std::memory_order_acquire)) {
    case 0:
      return std::nullopt;
    case 1:
      return "its engine died while it said why";
    default:
      return std::string(shared_->why, ::strnlen(shared_->why, sizeof(shared_->why)));
  }
}

void Book::put(BookKind kind, std::uint64_t key, std::span<const std::byte> payload) {
  if (is_frozen()) return;
  if (const auto done = log_.put({kind, key}, present_, payload); !done)
    forbid(done.error().message);
}

void Book::drop(BookKind kind, std::uint64_t key) {
  if (is_frozen()) return;
  if (const auto done = log_.drop({kind, key}); !done) forbid(done.error().message);
}

std::uint64_t Book::resume_at() const {
  return std::max(last_written_, taken());
}

// --- Journal

Book::JournalRecord* Book::record_at(std::uint64_t position) const {
  return reinterpret_cast<JournalRecord*>(shared_->journal + position % kJournalBytes);
}

bool Book::is_done(const JournalRecord& record) const {
  if (record.bytes < sizeof(JournalRecord)) return true;  // of a pad no more may be there
  const auto state = static_cast<State>(record.state.load(std::memory_order_relaxed));
  if (state == State::kPad || state == State::kClosed) return true;
  return record.stream < kStreams && record.position <= done_of(record.stream);
}

std::uint64_t Book::journal_bytes() const {
  return shared_->journal_end.load(std::memory_order_relaxed) -
         shared_->journal_begin.load(std::memory_order_relaxed);
}

/// Gives up the records at the front that are done.
void Book::drop_done() {
  std::uint64_t begin = shared_->journal_begin.load(std::memory_order_relaxed);
  const std::uint64_t end = shared_->journal_end.load(std::memory_order_relaxed);
  while (begin < end && is_done(*record_at(begin))) begin += record_at(begin)->bytes;
  if (begin == end) {
    // From the start of the memory again, of which the caches have the most.
    begin = (end + kJournalBytes - 1) / kJournalBytes * kJournalBytes;
    shared_->journal_end.store(begin, std::memory_order_relaxed);
  }
  shared_->journal_begin.store(begin, std::memory_order_release);
}

/// False: more is under way than the journal has room for. A record at the front that is not done
/// for long moves to the end, where there is much behind it.
bool Book::make_room(std::uint64_t bytes) {
  drop_done();
  const std::uint64_t tries = journal_bytes();
  for (std::uint64_t moved = 0; journal_bytes() > kJournalBytes / 2 && moved < tries; drop_done()) {
    const std::uint64_t begin = shared_->journal_begin.load(std::memory_order_relaxed);
    const JournalRecord& front = *record_at(begin);
    if (journal_bytes() + 2 * front.bytes > kJournalBytes) break;
    moved += front.bytes;
    const auto place = put_record(front);
    if (!place) break;
    {
      // With its state, which close() may change meanwhile.
      const MutexLock lock(mutex_);
      const auto state = static_cast<State>(front.state.load());
      record_at(*place)->state.store(
          static_cast<std::uint32_t>(state == State::kBegun ? State::kPassed : state));
      if (const auto unended = unended_.find(front.position); unended != unended_.end())
        unended->second = *place;
    }
    shared_->journal_begin.store(begin + front.bytes, std::memory_order_release);
  }
  return journal_bytes() + bytes <= kJournalBytes;
}

/// Copies a record, whose body lies behind it, to the end. Returns its place.
std::optional<std::uint64_t> Book::put_record(const JournalRecord& record) {
  std::uint64_t end = shared_->journal_end.load(std::memory_order_relaxed);
  const std::uint64_t left = kJournalBytes - end % kJournalBytes;
  if (left < record.bytes) {  // a record never wraps
    JournalRecord* const pad = record_at(end);
    pad->bytes = static_cast<std::uint32_t>(left);
    if (left >= sizeof(JournalRecord)) pad->state.store(static_cast<std::uint32_t>(State::kPad));
    end += left;
  }
  if (const auto taken = journal_pages_.take(end % kJournalBytes + record.bytes); !taken) {
    forbid(taken.error().message);
    return std::nullopt;
  }
  std::memcpy(static_cast<void*>(record_at(end)), static_cast<const void*>(&record), record.bytes);
  shared_->journal_end.store(end + record.bytes, std::memory_order_release);
  return end;
}

void Book::write(std::uint64_t position, std::uint32_t stream, const ipc::Command& command,
                 bool has_begun) {
  if (is_frozen() || shared_->forbidden.load(std::memory_order_relaxed) != 0) return;
  const std::uint64_t bytes = padded(sizeof(JournalRecord) + command.body.size());
  if (!make_room(2 * bytes)) return forbid("more work was under way than its book has room for");
  scratch_.resize(bytes);
  auto* const record = new (scratch_.data()) JournalRecord;
  record->bytes = static_cast<std::uint32_t>(bytes);
  record->stream = stream;
  record->position = position;
  record->state.store(static_cast<std::uint32_t>(has_begun ? State::kBegun : State::kWaits),
                      std::memory_order_relaxed);
  record->reserved = 0;
  record->header = command.header;
  record->header.body_bytes = static_cast<std::uint32_t>(command.body.size());
  std::ranges::copy(command.body, scratch_.begin() + sizeof(JournalRecord));
  const auto place = put_record(*record);
  if (!place) return;
  last_place_ = *place;
  last_position_ = position;
  if (has_begun && stream != kNoStream) return;
  const MutexLock lock(mutex_);
  unended_.emplace(position, *place);
}

void Book::refused(std::uint64_t position) {
  if (is_frozen()) return;
  if (position == last_position_) {
    record_at(last_place_)
        ->state.store(static_cast<std::uint32_t>(State::kClosed), std::memory_order_release);
  }
  close(position);
}

void Book::begun(std::uint64_t position) {
  if (is_frozen()) return;
  const MutexLock lock(mutex_);
  const auto found = unended_.find(position);
  if (found == unended_.end()) return;
  JournalRecord* const record = record_at(found->second);
  record->state.store(static_cast<std::uint32_t>(State::kBegun), std::memory_order_release);
  if (record->stream != kNoStream) unended_.erase(found);
}

void Book::close(std::uint64_t position) {
  if (is_frozen()) return;
  const MutexLock lock(mutex_);
  const auto found = unended_.find(position);
  if (found == unended_.end()) return;
  record_at(found->second)
      ->state.store(static_cast<std::uint32_t>(State::kClosed), std::memory_order_release);
  unended_.erase(found);
}

void Book::done(std::uint32_t stream, std::uint64_t position) {
  if (stream >= kStreams || is_frozen()) return;
  auto& row = shared_->done[stream];
  std::uint64_t seen = row.load(std::memory_order_relaxed);
  while (seen < position && !row.compare_exchange_weak(seen, position, std::memory_order_release,
                                                       std::memory_order_relaxed)) {
  }
}

std::uint64_t Book::done_of(std::uint32_t stream) const {
  return shared_->done[stream].load(std::memory_order_acquire);
}

/// All that is in the journal of the row's last stream is done.
std::uint32_t Book::take_stream() {
  if (free_streams_.empty()) return kNoStream;
  const std::uint32_t row = free_streams_.back();
  free_streams_.pop_back();
  done(row, std::max(present_, taken()));
  return row;
}

void Book::give_stream(std::uint32_t stream) {
  if (stream != 0 && stream < kStreams) free_streams_.push_back(stream);
}

void Book::use_stream(std::uint32_t stream) {
  std::erase(free_streams_, stream);
}

void Book::read_journal() {
  const MutexLock lock(mutex_);
  std::uint64_t at = shared_->journal_begin.load(std::memory_order_acquire);
  const std::uint64_t end = shared_->journal_end.load(std::memory_order_acquire);
  if (end < at || end - at > kJournalBytes) return forbid("its book is damaged");
  while (at < end) {
    const JournalRecord& record = *record_at(at);
    const std::uint64_t left = std::min(end - at, kJournalBytes - at % kJournalBytes);
    if (record.bytes == 0 || record.bytes > left) return forbid("its book is damaged");
    if (record.bytes >= sizeof(JournalRecord)) {
      const bool is_open = !is_done(record);
      last_written_ = std::max(last_written_, record.position);
      const bool ends_itself =
          static_cast<State>(record.state.load()) != State::kWaits && record.stream != kNoStream;
      if (is_open && !ends_itself) unended_.emplace(record.position, at);
    }
    at += record.bytes;
  }
}

std::vector<Book::Open> Book::open() const {
  std::vector<Open> all;
  std::uint64_t at = shared_->journal_begin.load(std::memory_order_acquire);
  const std::uint64_t end = shared_->journal_end.load(std::memory_order_acquire);
  while (at < end) {
    const JournalRecord& record = *record_at(at);
    at += record.bytes;
    if (record.bytes < sizeof(JournalRecord)) continue;
    const auto state = static_cast<State>(record.state.load());
    if (state == State::kPad) continue;
    Open open{.position = record.position,
              .stream = record.stream,
              .begun = state == State::kBegun || state == State::kPassed,
              .done = is_done(record),
              .passed = state == State::kPassed,
              .command = {}};
    open.command.header = record.header;
    const std::uint64_t room = record.bytes - sizeof(JournalRecord);
    const auto* const body = reinterpret_cast<const std::byte*>(&record + 1);
    open.command.body.assign(body, body + std::min<std::uint64_t>(record.header.body_bytes, room));
    all.push_back(std::move(open));
  }
  std::ranges::sort(all, {}, &Open::position);
  all.erase(all.begin(), std::ranges::find(all, false, &Open::done));
  return all;
}

}  // namespace slate::daemon
