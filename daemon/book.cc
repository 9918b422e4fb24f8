#include "daemon/book.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

#include "base/check.h"
#include "ipc/shared_memory.h"

namespace slate::daemon {
namespace {

constexpr std::uint64_t padded(std::uint64_t bytes) {
  return (bytes + 15) / 16 * 16;
}

template <typename Shared>
Result<Shared*> map_shared(int fd) {
  void* const memory = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) return fail_errno("mapping a session's book");
  return static_cast<Shared*>(memory);
}

}  // namespace

Result<std::unique_ptr<Book>> Book::make() {
  auto fd = ipc::make_shared_memory("slate-book", sizeof(Shared));
  if (!fd) return std::unexpected(fd.error());
  if (const auto taken = ipc::populate(fd->get(), offsetof(Shared, journal)); !taken)
    return std::unexpected(taken.error());
  return from_fd(std::move(*fd));
}

Result<std::unique_ptr<Book>> Book::from_fd(UniqueFd fd) {
  struct stat found;
  if (::fstat(fd.get(), &found) != 0 || found.st_size != sizeof(Shared))
    return fail(ErrorCode::kProtocol, "a book of another size");
  const auto shared = map_shared<Shared>(fd.get());
  if (!shared) return std::unexpected(shared.error());
  std::unique_ptr<Book> book(new Book(std::move(fd), *shared));
  book->read_log();
  book->read_journal();
  return book;
}

Book::Book(UniqueFd fd, Shared* shared) : fd_(std::move(fd)), shared_(shared) {
  for (std::uint32_t row = kStreams; row-- > 1;) free_streams_.push_back(row);
}

Book::~Book() {
  ::munmap(shared_, sizeof(Shared));
}

bool Book::is_blank() const {
  const std::uint64_t half = shared_->half.load(std::memory_order_acquire) & 1;
  return taken() == 0 && shared_->log_bytes[half].load(std::memory_order_acquire) == 0 &&
         shared_->journal_end.load(std::memory_order_acquire) == 0;
}

void Book::reset() {
  const MutexLock lock(mutex_);
  entries_.clear();
  unended_.clear();
  shared_->journal_end.store(0);
  shared_->journal_begin.store(0);
  for (auto& bytes : shared_->log_bytes) bytes.store(0);
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

/// Takes the pages of a region up to `bytes`, so that no write to them fails. Without room the
/// session stays where it is, and nothing more is written.
bool Book::populate(std::uint64_t region, std::uint64_t bytes, std::uint64_t& populated) {
  if (bytes <= populated) return true;
  const std::uint64_t upto = (bytes + kStep - 1) / kStep * kStep;
  int error = 0;
  do {
    error = ::posix_fallocate(fd_.get(), static_cast<off_t>(region + populated),
                              static_cast<off_t>(upto - populated));
  } while (error == EINTR);
  if (error == 0) {
    populated = upto;
    return true;
  }
  forbid("there was no memory for its book");
  return false;
}

// --- Log

std::uint64_t Book::bytes_of_record(const Entry* entry) {
  return padded(sizeof(LogRecord) + (entry != nullptr ? entry->payload.size() : 0));
}

/// Writes a record, of an entry that is gone where `entry` is null. Returns its end; 0: no room.
std::uint64_t Book::lay_down(std::uint64_t half, std::uint64_t at, const Key& key,
                             const Entry* entry) {
  const std::uint64_t end = at + bytes_of_record(entry);
  if (end > kLogBytes ||
      !populate(offsetof(Shared, log) + half * kLogBytes, end, log_populated_[half]))
    return 0;
  const std::span<const std::byte> payload =
      entry != nullptr ? std::span<const std::byte>(entry->payload) : std::span<const std::byte>();
  const LogRecord record{.bytes = static_cast<std::uint32_t>(end - at),
                         .payload_bytes = static_cast<std::uint32_t>(payload.size()),
                         .kind = key.first,
                         .dropped = entry == nullptr ? 1u : 0u,
                         .key = key.second,
                         .position = entry != nullptr ? entry->position : 0};
  std::byte* const to = shared_->log[half] + at;
  std::memcpy(to, &record, sizeof(record));
  std::ranges::copy(payload, to + sizeof(record));
  return end;
}

/// Null: the entry is gone.
void Book::append(const Key& key, const Entry* entry) {
  const std::uint64_t half = shared_->half.load(std::memory_order_relaxed);
  const std::uint64_t at = shared_->log_bytes[half].load(std::memory_order_relaxed);
  if (is_frozen()) return;
  if (at + bytes_of_record(entry) > kLogBytes) {
    // The entries have the new one already.
    if (!rewrite()) forbid("it has more objects than its book has room for");
    return;
  }
  const std::uint64_t end = lay_down(half, at, key, entry);
  if (end != 0) shared_->log_bytes[half].store(end, std::memory_order_release);
}

/// Copies the living entries to the other half, in their order.
bool Book::rewrite() {
  const std::uint64_t half = 1 - shared_->half.load(std::memory_order_relaxed);
  std::vector<const std::pair<const Key, Entry>*> all;
  for (const auto& entry : entries_) all.push_back(&entry);
  std::ranges::sort(all, {}, [](const auto* entry) { return entry->second.order; });
  std::uint64_t at = 0;
  for (const auto* entry : all) {
    at = lay_down(half, at, entry->first, &entry->second);
    // Half full already: soon there would be nothing but rewriting.
    if (at == 0 || at > kLogBytes / 2) return false;
  }
  shared_->log_bytes[half].store(at, std::memory_order_relaxed);
  shared_->half.store(half, std::memory_order_release);
  return true;
}

void Book::put(BookKind kind, std::uint64_t key, std::span<const std::byte> payload) {
  const MutexLock lock(mutex_);
  append({kind, key}, &enter({kind, key}, present_, payload));
}

/// The position stays that of the command that made it.
const Book::Entry& Book::enter(const Key& key, std::uint64_t position,
                               std::span<const std::byte> payload) {
  Entry& entry = entries_[key];
  if (entry.order == 0) {
    entry.order = next_order_++;
    entry.position = position;
  }
  entry.payload.assign(payload.begin(), payload.end());
  return entry;
}

void Book::drop(BookKind kind, std::uint64_t key) {
  const MutexLock lock(mutex_);
  if (entries_.erase({kind, key}) != 0) append({kind, key}, nullptr);
}

bool Book::has(BookKind kind, std::uint64_t key) const {
  const MutexLock lock(mutex_);
  return entries_.contains({kind, key});
}

std::vector<std::pair<Book::Key, Book::Entry>> Book::entries() const {
  const MutexLock lock(mutex_);
  std::vector<std::pair<Key, Entry>> all(entries_.begin(), entries_.end());
  std::ranges::sort(all, {}, [](const auto& entry) { return entry.second.order; });
  return all;
}

void Book::read_log() {
  const MutexLock lock(mutex_);
  const std::uint64_t half = shared_->half.load(std::memory_order_acquire) & 1;
  const std::uint64_t end =
      std::min(shared_->log_bytes[half].load(std::memory_order_acquire), kLogBytes);
  log_populated_[half] = end;
  for (std::uint64_t at = 0; at + sizeof(LogRecord) <= end;) {
    LogRecord record;
    std::memcpy(&record, shared_->log[half] + at, sizeof(record));
    if (record.bytes < sizeof(record) || record.bytes > end - at ||
        record.payload_bytes > record.bytes - sizeof(record))
      return forbid("its book is damaged");
    const Key key{record.kind, record.key};
    if (record.dropped != 0) {
      entries_.erase(key);
    } else {
      const std::byte* const payload = shared_->log[half] + at + sizeof(record);
      enter(key, record.position, {payload, record.payload_bytes});
    }
    at += record.bytes;
  }
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
  if (!populate(offsetof(Shared, journal), end % kJournalBytes + record.bytes, journal_populated_))
    return std::nullopt;
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
  if (position != last_position_) return close(position);
  record_at(last_place_)
      ->state.store(static_cast<std::uint32_t>(State::kClosed), std::memory_order_release);
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
  journal_populated_ = 0;
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
