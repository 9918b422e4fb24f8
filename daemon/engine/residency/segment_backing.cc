#include "daemon/engine/residency/segment_backing.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <iterator>
#include <utility>

#include "base/check.h"

namespace slate::daemon {

using device::Address;
using device::AddressRange;

namespace {

/// A wait for room that is longer is no part of a move: it was for the end of another session's
/// turn. In shorter ones the pieces that are under way still move.
constexpr std::chrono::milliseconds kLongWait{20};

/// Requires: there is a byte.
bool is_zero(const std::byte* memory, std::uint64_t bytes) {
  return memory[0] == std::byte{0} && std::memcmp(memory, memory + 1, bytes - 1) == 0;
}

/// Tells the residency how long a move took.
class Timed {
 public:
  Timed(Residency& residency, const Residency::Tenant& tenant, bool out)
      : residency_(residency), tenant_(tenant), out_(out) {}
  using Clock = std::chrono::steady_clock;
  /// It begins now.
  void begin() { begin_ = Clock::now(); }
  /// So much of it was a wait.
  void leave_out(Clock::duration wait) { begin_ += wait; }
  ~Timed() {
    const std::chrono::duration<double, std::milli> took = Clock::now() - begin_;
    if (bytes > 0) residency_.note_move(tenant_, out_, bytes, took.count());
  }
  Timed(const Timed&) = delete;
  Timed& operator=(const Timed&) = delete;

  std::uint64_t bytes = 0;

 private:
  Residency& residency_;
  const Residency::Tenant& tenant_;
  const bool out_;
  Clock::time_point begin_ = Clock::now();
};

}  // namespace

SegmentBacking::~SegmentBacking() {
  {
    const MutexLock lock(mutex_);
    SLATE_CHECK(segments_.empty());
  }
  residency_.leave(tenant_);
}

void SegmentBacking::stop_notes() {
  is_left_ = notes_ != nullptr && notes_->are_for_another();
  notes_ = nullptr;
}

std::vector<SegmentBacking::Piece> SegmentBacking::cut(AddressRange segment) const {
  const std::uint64_t size = residency_.settings().piece;
  std::vector<Piece> pieces;
  for (std::uint64_t at = 0; at < segment.bytes; at += size)
    pieces.push_back({{segment.base + at, std::min(size, segment.bytes - at)}});
  return pieces;
}

/// To be called when a segment has changed. What is clean, or not on the device, has to be looked
/// after.
void SegmentBacking::show_whole() {
  const MutexLock lock(mutex_);
  const bool whole = std::ranges::all_of(segments_, [](const auto& each) {
    return std::ranges::all_of(each.second.pieces, [](const Piece& piece) {
      return piece.where == Where::kDevice && !piece.is_clean();
    });
  });
  residency_.set_whole(*tenant_, whole);
}

Result<void> SegmentBacking::add(AddressRange range) {
  if (const auto charged = residency_.charge(*tenant_, range.bytes); !charged) return charged;
  Segment segment{.bytes = range.bytes, .used = ++uses_, .pieces = {}};
  bool is_there = false;
  if (residency_.take_at_once(*tenant_, range.bytes)) {
    const auto mapped = device_.map(range);
    is_there = mapped.has_value();
    if (!is_there) residency_.give(*tenant_, range.bytes, false);
    if (!is_there && mapped.error().code != ErrorCode::kOutOfMemory) {
      residency_.uncharge(*tenant_, range.bytes);
      return mapped;
    }
  }
  if (is_there) {
    segment.is_one = true;
    segment.pieces = {{range, Where::kDevice}};
  } else {
    segment.pieces = cut(range);
    note_blank(segment);
  }
  {
    const MutexLock lock(mutex_);
    segments_.emplace(range.base, std::move(segment));
  }
  if (!is_there) show_whole();
  return {};
}

void SegmentBacking::note_blank(const Segment& segment) {
  if (notes_ == nullptr) return;
  for (const Piece& piece : segment.pieces) notes_->piece_blank(piece.range);
}

void SegmentBacking::add_mapped(AddressRange range) {
  residency_.charge_anyway(*tenant_, range.bytes);
  residency_.take_anyway(*tenant_, range.bytes);
  const MutexLock lock(mutex_);
  segments_.emplace(range.base, Segment{.bytes = range.bytes,
                                        .used = ++uses_,
                                        .pieces = {{range, Where::kDevice}},
                                        .is_one = true});
}

Result<void> SegmentBacking::add_past(AddressRange range, const std::vector<PastPiece>& past) {
  Segment segment{.bytes = range.bytes, .used = ++uses_, .pieces = {}};
  residency_.charge_anyway(*tenant_, range.bytes);
  Result<void> done;
  Address at = range.base;
  for (const PastPiece& each : past) {
    Piece piece{each.range};
    if (each.range.base != at) break;
    at += each.range.bytes;
    if (each.memory >= 0) {
      done = device_.map_exported(each.range, each.memory);
      if (!done) break;
      piece.where = Where::kDevice;
      residency_.take_anyway(*tenant_, each.range.bytes);
    } else if (each.saved >= 0 && !each.is_blank) {
      auto extent = HostPool::adopt(each.saved, each.offset, each.range.bytes);
      if (!extent) {
        done = std::unexpected(extent.error());
        break;
      }
      piece.where = Where::kHost;
      piece.host = std::move(*extent);
    } else if (!each.is_blank) {
      done = fail(ErrorCode::kUnavailable, "the contents of a piece of its memory are lost");
      break;
    }
    segment.pieces.push_back(std::move(piece));
  }
  if (done && at != range.base + range.bytes)
    done = fail(ErrorCode::kUnavailable, "its book lacks a piece of memory");
  {
    const MutexLock lock(mutex_);
    segments_.emplace(range.base, std::move(segment));
  }
  show_whole();
  if (!done) drop(range.base, nullptr);  // the book is another engine's, as it is
  return done;
}

void SegmentBacking::forget(const std::vector<PastPiece>& pieces) {
  if (notes_ == nullptr) return;
  for (const PastPiece& each : pieces) notes_->piece_gone(each.range.base);
}

void SegmentBacking::drop(Address base, PieceNotes* notes) {
  Segment segment;
  {
    const MutexLock lock(mutex_);
    auto node = segments_.extract(base);
    SLATE_CHECK(!node.empty() && node.mapped().views.empty());
    segment = std::move(node.mapped());
  }
  if (!segment.movable) residency_.unlock(*tenant_, on_device(segment));
  for (Piece& piece : segment.pieces) {
    residency_.host().forget(piece.copy);
    if (piece.where == Where::kDevice || piece.where == Where::kLinked) {
      // Only a device that is lost refuses, and its engine is about to end.
      (void)device_.unmap(piece.range);
      if (piece.where == Where::kDevice) residency_.give(*tenant_, piece.range.bytes, false);
    } else if (piece.where == Where::kHost) {
      if (is_left_) {
        residency_.host().leave(std::move(piece.host));
      } else {
        residency_.host().give(std::move(piece.host));
      }
    }
    if (notes != nullptr && !segment.is_one) notes->piece_gone(piece.range.base);
  }
  residency_.uncharge(*tenant_, segment.bytes);
  show_whole();
}

Result<void> SegmentBacking::show(Address base, Address view) {
  std::vector<AddressRange> mapped;
  {
    const MutexLock lock(mutex_);
    mapped = mapped_of(segments_.at(base));
  }
  for (auto each = mapped.begin(); each != mapped.end(); ++each) {
    auto done = device_.map_again({each->base - base + view, each->bytes}, each->base);
    if (done) continue;
    while (each != mapped.begin()) {
      --each;
      (void)device_.unmap({each->base - base + view, each->bytes});
    }
    return done;
  }
  const MutexLock lock(mutex_);
  segments_.at(base).views.push_back(view);
  views_.emplace(view, base);
  return {};
}

void SegmentBacking::hide(Address view) {
  std::vector<AddressRange> mapped;
  Address base = 0;
  {
    const MutexLock lock(mutex_);
    base = views_.extract(view).mapped();
    Segment& segment = segments_.at(base);
    std::erase(segment.views, view);
    mapped = mapped_of(segment);
  }
  // Only a device that is lost refuses, and its engine is about to end.
  for (const AddressRange& each : mapped)
    (void)device_.unmap({each.base - base + view, each.bytes});
}

/// The pieces that kernels reach.
std::vector<AddressRange> SegmentBacking::mapped_of(const Segment& segment) {
  std::vector<AddressRange> mapped;
  for (const Piece& piece : segment.pieces) {
    if (piece.where == Where::kDevice || piece.where == Where::kLinked)
      mapped.push_back(piece.range);
  }
  return mapped;
}

/// Where views show the piece.
std::vector<AddressRange> SegmentBacking::views_of(AddressRange piece) const {
  const MutexLock lock(mutex_);
  const auto& [base, segment] = *std::prev(segments_.upper_bound(piece.base));
  std::vector<AddressRange> views;
  for (const Address view : segment.views) views.push_back({piece.base - base + view, piece.bytes});
  return views;
}

/// A range of a segment's own addresses for each part of the range that is one, or of a view.
std::vector<AddressRange> SegmentBacking::places_of(AddressRange range) const {
  std::vector<AddressRange> places;
  const auto add = [&](AddressRange shown, Address base) {
    if (!shown.overlaps(range)) return;
    const Address from = std::max(shown.base, range.base);
    const Address end = std::min(shown.base + shown.bytes, range.base + range.bytes);
    places.push_back({from - shown.base + base, end - from});
  };
  auto segment = segments_.upper_bound(range.base);
  if (segment != segments_.begin()) --segment;
  for (; segment != segments_.end() && segment->first < range.base + range.bytes; ++segment)
    add({segment->first, segment->second.bytes}, segment->first);
  auto view = views_.upper_bound(range.base);
  if (view != views_.begin()) --view;
  for (; view != views_.end() && view->first < range.base + range.bytes; ++view)
    add({view->first, segments_.at(view->second).bytes}, view->second);
  return places;
}

bool SegmentBacking::is_mapped(Address base) const {
  const MutexLock lock(mutex_);
  const auto found = segments_.find(base);
  return found != segments_.end() && mapped_of(found->second).size() == found->second.pieces.size();
}

std::uint64_t SegmentBacking::on_device(const Segment& segment) {
  std::uint64_t bytes = 0;
  for (const Piece& piece : segment.pieces)
    bytes += piece.where == Where::kDevice ? piece.range.bytes : 0;
  return bytes;
}

void SegmentBacking::lock(AddressRange range) {
  const MutexLock lock(mutex_);
  for (const AddressRange& place : places_of(range)) {
    Segment& segment = std::prev(segments_.upper_bound(place.base))->second;
    if (!std::exchange(segment.movable, false)) continue;
    residency_.lock(*tenant_, on_device(segment));
    // It does not leave any more, and others may write there.
    for (Piece& piece : segment.pieces) end_clean(piece);
  }
}

void SegmentBacking::add_needed(AddressRange range, Needs& needs) const {
  const MutexLock lock(mutex_);
  for (const AddressRange& place : places_of(range))
    needs.segments.insert(std::prev(segments_.upper_bound(place.base))->first);
}

/// Bytes of the needed pieces that count.
std::uint64_t SegmentBacking::sum(const Needs& needs, const Counts& counts) const {
  const MutexLock lock(mutex_);
  std::uint64_t bytes = 0;
  for (const auto& [base, segment] : segments_) {
    if (!needs.has(base)) continue;
    for (const Piece& piece : segment.pieces)
      bytes += counts(segment, piece) ? piece.range.bytes : 0;
  }
  return bytes;
}

std::uint64_t SegmentBacking::missing(const Needs& needs) const {
  return sum(needs, [](const Segment&, const Piece& piece) {
    return piece.where != Where::kDevice && piece.where != Where::kLinked;
  });
}

std::uint64_t SegmentBacking::linked(const Needs& needs) const {
  return sum(needs, [](const Segment& segment, const Piece& piece) {
    return piece.where == Where::kLinked && segment.movable;
  });
}

std::uint64_t SegmentBacking::bytes_of(const Needs& needs) const {
  return sum(needs, [](const Segment&, const Piece&) { return true; });
}

std::uint64_t SegmentBacking::on_host() const {
  return sum({.everything = true, .segments = {}}, [](const Segment&, const Piece& piece) {
    return piece.where == Where::kHost || piece.where == Where::kLinked;
  });
}

std::uint64_t SegmentBacking::spare(const Needs& needs) const {
  const MutexLock lock(mutex_);
  std::uint64_t bytes = 0;
  for (const auto& [base, segment] : segments_) {
    if (!needs.has(base) && segment.movable) bytes += on_device(segment);
  }
  return bytes;
}

void SegmentBacking::note_use(const Needs& needs) {
  const MutexLock lock(mutex_);
  ++uses_;
  for (auto& [base, segment] : segments_) {
    if (needs.has(base)) segment.used = uses_;
  }
}

void SegmentBacking::begin_turn() {
  // A turn may end before anything was used.
  if (uses_ >= turn_) working_set_ = std::exchange(turn_, uses_ + 1);
}

SegmentBacking::Needs SegmentBacking::with_working_set(const Needs& needs) const {
  if (needs.everything) return needs;
  Needs more = needs;
  const MutexLock lock(mutex_);
  for (const auto& [base, segment] : segments_) {
    if (segment.used >= working_set_ && segment.movable) more.segments.insert(base);
  }
  return more;
}

void SegmentBacking::note_written(const Written& written) {
  {
    const MutexLock lock(mutex_);
    const auto forget_in = [this](Segment& segment, AddressRange range) SLATE_REQUIRES(mutex_) {
      for (Piece& piece : segment.pieces) {
        if (piece.range.overlaps(range)) end_clean(piece);
      }
    };
    for (auto& [base, segment] : segments_) {
      if (written.everything) forget_in(segment, {base, segment.bytes});
    }
    for (const AddressRange& range : written.ranges) {
      for (const AddressRange& place : places_of(range))
        forget_in(std::prev(segments_.upper_bound(place.base))->second, place);
    }
  }
  show_whole();
}

void SegmentBacking::end_clean(Piece& piece) {
  residency_.host().forget(std::exchange(piece.copy, HostPool::Ticket::kNone));
  piece.is_blank = false;
}

void SegmentBacking::put(Piece& piece, Where where, HostPool::Extent host) {
  const MutexLock lock(mutex_);
  piece.is_blank = piece.where == Where::kNowhere && where == Where::kDevice;
  piece.where = where;
  const auto before = std::exchange(piece.host, std::move(host));
  if (!before.is_there()) return;
  if (where == Where::kDevice) {
    piece.copy = residency_.host().keep(before);
  } else {
    residency_.host().give(before);
  }
}

/// With its views, or not at all.
Result<void> SegmentBacking::map(AddressRange piece, Where to) {
  auto done = to == Where::kLinked ? device_.map_on_host(piece) : device_.map(piece);
  if (!done) return done;
  const std::vector<AddressRange> views = views_of(piece);
  auto each = views.begin();
  for (; done && each != views.end(); ++each) done = device_.map_again(*each, piece.base);
  if (done) return done;
  for (--each; each != views.begin();) (void)device_.unmap(*--each);
  (void)device_.unmap(piece);
  return done;
}

/// With its views.
Result<void> SegmentBacking::unmap(AddressRange piece) {
  Result<void> done;
  for (const AddressRange& view : views_of(piece)) {
    auto unmapped = device_.unmap(view);
    if (done) done = std::move(unmapped);
  }
  auto unmapped = device_.unmap(piece);
  return done ? unmapped : done;
}

/// Requires: there is room for it.
Result<void> SegmentBacking::bring(Piece& piece, Where to) {
  const auto mapped = map(piece.range, to);
  if (!mapped) return mapped;
  const auto arrived = [this, &piece, to](Result<void> copied) -> Result<void> {
    if (!copied) {
      (void)unmap(piece.range);
      if (to == Where::kDevice) residency_.give(*tenant_, piece.range.bytes, false);
      return copied;
    }
    if (notes_ != nullptr && to == Where::kDevice) notes_->piece_on_device(piece.range);
    if (notes_ != nullptr && to == Where::kLinked) notes_->piece_linked(piece.range);
    put(piece, to, {});
    return {};
  };
  if (piece.where == Where::kNowhere) return arrived({});
  const auto begun = moves_.begin(Place::on_device(piece.range.base),
                                  Place::on_host(piece.host.memory()), piece.range.bytes, arrived);
  if (!begun) (void)unmap(piece.range);
  return begun;
}

Result<void> SegmentBacking::bring(Piece& piece, const TakeRoom& take_room) {
  while (true) {
    const auto taken = take_room(piece.range.bytes);
    if (!taken) return std::unexpected(taken.error());
    if (*taken == Residency::Taken::kNever) {
      const auto linked = bring(piece, Where::kLinked);
      if (linked) residency_.do_without(*tenant_, piece.range.bytes);
      return linked;
    }
    const auto brought = bring(piece, Where::kDevice);
    if (brought) return brought;
    if (brought.error().code != ErrorCode::kOutOfMemory) {
      residency_.give(*tenant_, piece.range.bytes, false);
      return brought;
    }
    residency_.note_full(*tenant_, piece.range.bytes);
  }
}

Result<void> SegmentBacking::bring(const Needs& needs, const TakeRoom& take_room) {
  std::vector<Piece*> pieces;
  {
    const MutexLock lock(mutex_);
    for (auto& [base, segment] : segments_) {
      if (!needs.has(base)) continue;
      for (Piece& piece : segment.pieces) {
        if (piece.where == Where::kNowhere || piece.where == Where::kHost) pieces.push_back(&piece);
      }
    }
  }
  Timed timed(residency_, *tenant_, false);
  bool has_begun = false;
  const TakeRoom take_and_begin = [&](std::uint64_t bytes) {
    const auto begin = Timed::Clock::now();
    const auto taken = take_room(bytes);
    const auto wait = Timed::Clock::now() - begin;
    // What came before was the wait for the session's turn.
    if (!std::exchange(has_begun, true)) {
      timed.begin();
    } else if (wait > kLongWait) {
      timed.leave_out(wait);
    }
    return taken;
  };
  Result<void> done;
  for (Piece* const piece : pieces) {
    const bool has_contents = piece->where == Where::kHost;
    done = bring(*piece, take_and_begin);
    if (!done) break;
    if (has_contents) timed.bytes += piece->range.bytes;
  }
  const auto finished = moves_.finish();
  show_whole();
  return done ? finished : done;
}

Result<void> SegmentBacking::unlink() {
  std::vector<Piece*> pieces;
  {
    const MutexLock lock(mutex_);
    for (auto& [base, segment] : segments_) {
      if (!segment.movable) continue;
      for (Piece& piece : segment.pieces) {
        if (piece.where == Where::kLinked) pieces.push_back(&piece);
      }
    }
  }
  Result<void> done;
  for (Piece* const piece : pieces) {
    if (done) done = put_on_host(*piece);
  }
  const auto finished = moves_.finish();
  return done ? finished : done;
}

Result<void> SegmentBacking::move_out(std::uint64_t bytes, const Needs& needed) {
  std::vector<std::pair<Address, Segment*>> order;
  {
    const MutexLock lock(mutex_);
    for (auto& [base, segment] : segments_) {
      if (segment.movable) order.emplace_back(base, &segment);
    }
  }
  std::ranges::stable_sort(order, [&](const auto& one, const auto& other) {
    return std::pair(needed.has(one.first), one.second->used) <
           std::pair(needed.has(other.first), other.second->used);
  });
  Timed timed(residency_, *tenant_, true);
  Result<void> done;
  std::uint64_t left = 0;
  const std::uint64_t copied_before = copied_out_;
  for (const auto& [base, segment] : order) {
    if (left >= bytes || !done) break;
    const std::uint64_t before = on_device(*segment);
    if (before == 0) continue;
    done = move_out(*segment, bytes - left);
    left += before - on_device(*segment);
  }
  timed.bytes = copied_out_ - copied_before;
  show_whole();
  return done;
}

Result<void> SegmentBacking::move_out(Segment& segment, std::uint64_t bytes) {
  if (segment.is_one) return move_out_whole(segment);
  std::uint64_t moved = 0;
  Result<void> done;
  std::vector<Piece*> others;
  // What the others take on the host may be the copies of the clean ones. So these go first.
  for (Piece& piece : segment.pieces) {
    if (moved >= bytes || !done) break;
    if (piece.where != Where::kDevice) continue;
    if (piece.is_blank) {
      moved += piece.range.bytes;
      done = leave_blank(piece);
    } else if (auto copy = residency_.host().reclaim(piece.copy)) {
      moved += piece.range.bytes;
      done = leave_clean(piece, *std::move(copy));
    } else {
      others.push_back(&piece);
    }
  }
  for (Piece* const piece : others) {
    if (moved >= bytes || !done) break;
    moved += piece->range.bytes;
    done = put_on_host(*piece);
  }
  const auto finished = moves_.finish();
  return done ? finished : done;
}

/// `copy`: of what is on the device.
Result<void> SegmentBacking::leave_clean(Piece& piece, HostPool::Extent copy) {
  if (residency_.settings().evicts_always) {
    if (const auto same = check_clean(piece, copy.memory()); !same) {
      residency_.host().give(std::move(copy));
      return same;
    }
  }
  residency_.note_clean(piece.range.bytes);
  return leave_device(piece, std::move(copy));
}

/// It reads as zeros again.
Result<void> SegmentBacking::leave_blank(Piece& piece) {
  if (residency_.settings().evicts_always) {
    if (const auto same = check_clean(piece, nullptr); !same) return same;
  }
  residency_.note_clean(piece.range.bytes);
  if (notes_ != nullptr) notes_->piece_blank(piece.range);
  put(piece, Where::kNowhere, {});
  auto unmapped = unmap(piece.range);
  residency_.give(*tenant_, piece.range.bytes, true);
  return unmapped;
}

/// The piece is still on the device until the copy has ended.
Result<void> SegmentBacking::put_on_host(Piece& piece) {
  auto extent = residency_.host().take(piece.range.bytes);
  if (!extent) return std::unexpected(extent.error());
  const Place to = Place::on_host(extent->memory());
  const auto begun =
      moves_.begin(to, Place::on_device(piece.range.base), piece.range.bytes,
                   [this, &piece, extent = *extent](Result<void> copied) -> Result<void> {
                     // The device may still write there.
                     if (!copied) {
                       residency_.host().leave(extent);
                       return copied;
                     }
                     copied_out_ += piece.range.bytes;
                     return leave_device(piece, extent);
                   });
  if (!begun) residency_.host().give(std::move(*extent));
  return begun;
}

/// Its contents are in the extent.
Result<void> SegmentBacking::leave_device(Piece& piece, HostPool::Extent extent) {
  if (notes_ != nullptr) notes_->piece_on_host(piece.range, extent.fd(), extent.offset);
  const Where was = piece.where;
  piece.copy = HostPool::Ticket::kNone;
  put(piece, Where::kHost, std::move(extent));
  auto unmapped = unmap(piece.range);
  if (was == Where::kDevice) residency_.give(*tenant_, piece.range.bytes, true);
  return unmapped;
}

/// For tests. `contents`: null for zeros. Errors: kInternal where something wrote to a piece that
/// is clean.
Result<void> SegmentBacking::check_clean(const Piece& piece, const std::byte* contents) {
  const auto present = residency_.host().take(piece.range.bytes);
  if (!present) return std::unexpected(present.error());
  auto copied = moves_.begin(Place::on_host(present->memory()), Place::on_device(piece.range.base),
                             piece.range.bytes, [](Result<void> ended) { return ended; });
  const auto finished = moves_.finish();
  if (copied) copied = finished;
  const bool same = copied && (contents != nullptr ? std::memcmp(present->memory(), contents,
                                                                 piece.range.bytes) == 0
                                                   : is_zero(present->memory(), piece.range.bytes));
  residency_.host().give(*present);
  if (!copied || same) return copied;
  return fail(ErrorCode::kInternal,
              fmt::format("{} bytes at {:#x} were written by a command that was not known to",
                          piece.range.bytes, piece.range.base));
}

/// Takes host memory for the pieces, and copies them there. All or none of them are there then.
Result<void> SegmentBacking::copy_to_host(std::vector<Piece>& pieces) {
  Result<void> taken, copied;
  for (Piece& piece : pieces) {
    auto extent = residency_.host().take(piece.range.bytes);
    if (!extent) taken = std::unexpected(extent.error());
    if (!extent) break;
    piece.host = std::move(*extent);
    piece.where = Where::kHost;
    copied = moves_.begin(Place::on_host(piece.host.memory()), Place::on_device(piece.range.base),
                          piece.range.bytes, [](Result<void> ended) { return ended; });
    if (!copied) break;
  }
  const auto finished = moves_.finish();
  if (copied) copied = finished;
  if (taken && copied) {
    for (const Piece& piece : pieces) copied_out_ += piece.range.bytes;
    return {};
  }
  for (Piece& piece : pieces) {
    if (!piece.host.is_there()) continue;
    // Behind a copy that has failed the device may still write there.
    if (copied) {
      residency_.host().give(std::move(piece.host));
    } else {
      residency_.host().leave(std::move(piece.host));
    }
  }
  return taken ? copied : taken;
}

/// A segment that was mapped by one call can only be unmapped as a whole.
Result<void> SegmentBacking::move_out_whole(Segment& segment) {
  const AddressRange range = segment.pieces.front().range;
  std::vector<Piece> pieces = cut(range);
  if (const auto copied = copy_to_host(pieces); !copied) return copied;
  for (const Piece& piece : pieces) {
    if (notes_ != nullptr) notes_->piece_on_host(piece.range, piece.host.fd(), piece.host.offset);
  }
  if (notes_ != nullptr) notes_->in_pieces(range.base);
  {
    const MutexLock lock(mutex_);
    segment.pieces = std::move(pieces);
    segment.is_one = false;
  }
  auto unmapped = unmap(range);
  residency_.give(*tenant_, range.bytes, true);
  return unmapped;
}

}  // namespace slate::daemon
