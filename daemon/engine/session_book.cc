#include "daemon/engine/session_book.h"

#include <sys/resource.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/whole_bytes.h"
#include "ipc/shared_memory.h"

namespace slate::daemon {

using ipc::CommandType;

namespace {

/// A descriptor of memory with these contents.
Result<UniqueFd> memory_of(std::span<const std::byte> first, std::span<const std::byte> second) {
  auto fd = ipc::make_shared_memory("slate-image", first.size() + second.size());
  if (fd && (!write_all(fd->get(), first) || !write_all(fd->get(), second)))
    return fail_errno("memory for an image");
  return fd;
}

std::vector<std::byte> joined(std::span<const std::byte> a, std::span<const std::byte> b) {
  std::vector<std::byte> all(a.begin(), a.end());
  all.insert(all.end(), b.begin(), b.end());
  return all;
}

/// Whether other commands' objects may lie in what a command has made.
bool is_room(BookKind kind) {
  return kind == BookKind::kArena || kind == BookKind::kSegment || kind == BookKind::kPiece;
}

}  // namespace

void SessionBook::drop_unfinished(std::uint64_t position) {
  std::set<std::uint64_t> again;
  for (const Book::Open& open : book_->open()) {
    if (!open.done) again.insert(open.position);
  }
  for (const auto& [key, entry] : book_->entries()) {
    const bool comes_again = entry.position > position || again.contains(entry.position);
    if (comes_again && !is_room(key.first)) book_->drop(key.first, key.second);
  }
  for (const auto& [key, memory] : held_) {
    const bool is_piece = book_->has(BookKind::kPiece, key.second);
    const bool is_saved = key.first == BookKind::kSaved;
    if (!book_->has(is_saved ? BookKind::kSegment : key.first, key.second) &&
        !(is_saved && is_piece))
      let_go(key);
  }
}

SessionBook::SessionBook(device::Device& device, std::unique_ptr<Book> book, HeldMemory held,
                         Holder holder)
    : device_(device), book_(std::move(book)), held_(std::move(held)), holder_(std::move(holder)) {
  if (!has_past_) book_->reset();
  const MutexLock lock(mutex_);
  for (const auto& [key, memory] : held_) held_there_.insert(key);
}

int SessionBook::held(Book::Key key) const {
  const auto found = held_.find(key);
  return found == held_.end() ? -1 : found->second.get();
}

std::uint32_t SessionBook::stream_row() {
  if (again_) return Book::kNoStream;
  const std::uint32_t row = book_->take_stream();
  if (row == Book::kNoStream) forbid("it has more streams than its book has rows");
  return row;
}

/// The destruction is closed last: one that comes again and finds no stream is over.
void SessionBook::stream_gone(std::uint64_t id, std::uint32_t row, std::uint64_t position) {
  book_->done(row, position);
  drop_command(CommandType::kStreamCreate, id);
  book_->close(position);
}

std::size_t SessionBook::most_held() {
  constexpr std::size_t kMost = 512, kLeast = 16, kSessions = 256;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return kLeast;
  return std::clamp<std::size_t>(limit.rlim_cur / 2 / kSessions, kLeast, kMost);
}

bool SessionBook::has_place_for(Book::Key key) {
  const MutexLock lock(mutex_);
  if (held_there_.size() >= most_held() && !held_there_.contains(key)) return false;
  held_there_.insert(key);
  return true;
}

/// Without it the session cannot leave.
bool SessionBook::hold(Book::Key key, int memory) {
  if (book_->why_not()) return false;
  if (!has_place_for(key)) {
    forbid("it has more pieces of memory than are held for a session");
    return false;
  }
  const auto held = holder_.hold(key, memory);
  if (!held) forbid("its memory was not handed over: " + held.error().message);
  return held.has_value();
}

/// What a session leaves behind is the next engine's.
void SessionBook::let_go(Book::Key key) {
  if (book_->is_frozen()) return;
  {
    const MutexLock lock(mutex_);
    if (held_there_.erase(key) == 0) return;
  }
  holder_.let_go(key);
  unsettled_.store(true);
}

bool SessionBook::settle() {
  if (!unsettled_.exchange(false)) return false;
  if (holder_.settle) holder_.settle();
  return true;
}

void SessionBook::segment(device::AddressRange segment, bool dedicated, bool mapped) {
  if (again_) return;
  if (mapped && !hold_device_memory(BookKind::kSegment, segment)) return;
  put(BookKind::kSegment, segment.base, BookSegment{segment.bytes, dedicated ? 1u : 0u});
  if (mapped) drop_saved(segment.base);
}

bool SessionBook::hold_device_memory(BookKind kind, device::AddressRange range) {
  const auto memory = device_.export_memory(range);
  if (!memory) forbid(memory.error().message);
  return memory && hold({kind, range.base}, memory->get());
}

void SessionBook::piece_on_host(device::AddressRange piece, int memory, std::uint64_t offset) {
  if (!hold({BookKind::kSaved, piece.base}, memory)) return;
  put(BookKind::kPiece, piece.base, BookPiece{piece.bytes, 0, offset});
  let_go({BookKind::kPiece, piece.base});
}

void SessionBook::piece_on_device(device::AddressRange piece) {
  if (!hold_device_memory(BookKind::kPiece, piece)) return;
  put(BookKind::kPiece, piece.base, BookPiece{piece.bytes, 0, 0});
  drop_saved(piece.base);
}

/// With no memory the next engine finds it lost.
void SessionBook::piece_linked(device::AddressRange piece) {
  put(BookKind::kPiece, piece.base, BookPiece{piece.bytes, 0, 0});
  drop_saved(piece.base);
}

void SessionBook::piece_blank(device::AddressRange piece) {
  put(BookKind::kPiece, piece.base, BookPiece{piece.bytes, 1, 0});
  let_go({BookKind::kPiece, piece.base});
}

std::vector<std::pair<BookKind, device::AddressRange>> SessionBook::on_device() {
  std::vector<std::pair<BookKind, device::AddressRange>> found;
  const MutexLock lock(mutex_);
  for (const auto& [key, entry] : book_->entries()) {
    if (!held_there_.contains(key)) continue;
    if (const auto segment = entry.as<BookSegment>(); segment && key.first == BookKind::kSegment)
      found.push_back({key.first, {key.second, segment->bytes}});
    if (const auto piece = entry.as<BookPiece>(); piece && key.first == BookKind::kPiece)
      found.push_back({key.first, {key.second, piece->bytes}});
  }
  return found;
}

std::vector<PastPiece> SessionBook::pieces_in(device::AddressRange segment) const {
  std::vector<PastPiece> pieces;
  for (const auto& [key, entry] : book_->entries()) {
    const auto piece = entry.as<BookPiece>();
    if (key.first != BookKind::kPiece || !piece || !segment.contains(key.second, piece->bytes))
      continue;
    pieces.push_back({.range = {key.second, piece->bytes},
                      .memory = held(key),
                      .saved = held({BookKind::kSaved, key.second}),
                      .offset = piece->offset,
                      .is_blank = piece->blank != 0});
  }
  std::ranges::sort(pieces, {}, [](const PastPiece& piece) { return piece.range.base; });
  return pieces;
}

void SessionBook::piece_gone(device::Address piece) {
  drop(BookKind::kPiece, piece);
  let_go({BookKind::kPiece, piece});
  drop_saved(piece);
}

Result<void> SessionBook::save(device::Address segment, int memory) {
  const Book::Key key{BookKind::kSaved, segment};
  if (!has_place_for(key))
    return fail(ErrorCode::kLimit, "it has more pieces of memory than are held for a session");
  return holder_.hold(key, memory);
}

void SessionBook::unmapped(device::Address segment) {
  drop(BookKind::kSegment, segment);
  let_go({BookKind::kSegment, segment});
}

void SessionBook::block(device::Address address, std::uint64_t bytes, bool retired) {
  put(BookKind::kBlock, address, BookBlock{bytes, retired ? 1u : 0u});
}

void SessionBook::block_gone(device::Address address) {
  drop(BookKind::kBlock, address);
}

void SessionBook::host(std::uint64_t id, const BookHost& block, int memory) {
  if (again_) return;
  if (memory >= 0 && !hold({BookKind::kHost, id}, memory)) return;
  put(BookKind::kHost, id, block);
}

void SessionBook::host_gone(std::uint64_t id) {
  drop(BookKind::kHost, id);
  let_go({BookKind::kHost, id});
}

void SessionBook::image(std::uint64_t module, std::uint32_t kind, std::span<const std::byte> image,
                        std::string_view source, device::Address home, std::uint64_t variables) {
  if (again_) return;
  if (variables > 0)
    return forbid("a module of it has variables in the driver's memory, which end with the engine");
  const auto memory = memory_of(image, std::as_bytes(std::span(source)));
  if (!memory) return forbid(memory.error().message);
  if (!hold({BookKind::kImage, module}, memory->get())) return;
  put(BookKind::kImage, module, BookImage{kind, image.size(), source.size(), home});
}

void SessionBook::put_command(CommandType type, std::uint64_t key, std::span<const std::byte> body,
                              std::span<const std::byte> tail) {
  book_->put(book_kind(type), key, joined(body, tail));
}

void SessionBook::drop_command(CommandType type, std::uint64_t key) {
  book_->drop(book_kind(type), key);
}

/// With its functions.
void SessionBook::drop_module(std::uint64_t module) {
  for (const auto& [key, entry] : book_->entries()) {
    ipc::FunctionGet get;
    if (key.first == book_kind(CommandType::kFunctionSet)) {
      // Of a function whose entry is gone it would be refused, and is of no use.
      if (!book_->has(book_kind(CommandType::kFunctionGet), key.second >> 8))
        book_->drop(key.first, key.second);
      continue;
    }
    if (key.first != book_kind(CommandType::kFunctionGet) || entry.payload.size() < sizeof(get))
      continue;
    std::memcpy(&get, entry.payload.data(), sizeof(get));
    if (get.module == module) book_->drop(key.first, key.second);
  }
  book_->drop(BookKind::kUpload, module);
  book_->drop(BookKind::kImage, module);
  let_go({BookKind::kImage, module});
}

}  // namespace slate::daemon
