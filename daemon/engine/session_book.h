// SessionBook: the engine's side of a session's book (daemon/book.h). It notes what makes and ends
// objects, and hands memory that has to outlive the engine to the supervisor. Session thread, but
// for what says otherwise.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string_view>

#include "base/mutex.h"
#include "daemon/book.h"
#include "daemon/engine/commands/call.h"
#include "daemon/engine/memory_manager.h"
#include "device/device.h"

namespace slate::daemon {

/// Memory that the supervisor holds for a session, by the entry that it belongs to.
using HeldMemory = std::map<Book::Key, UniqueFd>;

class SessionBook final : public MemoryNotes, public PieceNotes {
 public:
  /// How the supervisor hears of memory. Any thread.
  struct Holder {
    std::function<Result<void>(Book::Key key, int memory)> hold;
    std::function<void(Book::Key key)> let_go;
    /// Waits until what was let go of before is given back to the device. May be empty.
    std::function<void()> settle = {};
    /// Has the supervisor give the device memory back that it can do without. False: the device has
    /// enough, or nothing was done. May be empty.
    std::function<bool()> make_room = {};
  };
  /// Pieces of memory that the supervisor holds for a session; with more it cannot leave. Part of
  /// the descriptors that a process may have, as the supervisor has those of all sessions.
  static std::size_t most_held();

  /// `held`: what the supervisor has held for the session. `device` outlives it.
  SessionBook(device::Device& device, std::unique_ptr<Book> book, HeldMemory held, Holder holder);

  Book& book() { return *book_; }
  /// Whether an earlier engine has served the session.
  bool has_past() const { return has_past_; }
  /// Drops what commands have made that come again: those behind `position`, and those of the
  /// journal that are not known to be done. Gives back memory that belongs to no entry. To be
  /// called before the past is made again.
  void drop_unfinished(std::uint64_t position);
  /// The held memory of an entry; -1: none.
  int held(Book::Key key) const;
  /// The supervisor holds `memory` with the contents of the segment or piece there, which stays
  /// held itself until drop_device_memory(). Errors: no place for it, or those of Holder::hold.
  Result<void> save(device::Address segment, int memory);
  /// What was saved is not needed, or the device's memory is not.
  void drop_saved(device::Address segment) { let_go({BookKind::kSaved, segment}); }
  void drop_device_memory(BookKind kind, device::Address range) { let_go({kind, range}); }
  /// The segments and pieces of segments whose contents are on the device.
  std::vector<std::pair<BookKind, device::AddressRange>> on_device();
  /// The pieces of a segment, by rising address; empty: it is one. Of the past: see held().
  std::vector<PastPiece> pieces_in(device::AddressRange segment) const;
  /// The session is as it was: what was held is not needed here any more.
  void forget_held() { held_.clear(); }

  /// A command was carried out that makes or ends an object. `row`: of the book, of a new stream or
  /// event. While the past is made again, nothing is noted.
  template <typename Row>
  void note(const typename Row::Body& body, std::span<const std::byte> tail, std::uint32_t row);
  void note_again(bool again) { again_ = again; }
  /// Waits until memory that was unmapped is the device's again; false if there is none. To be
  /// called where the device has no memory left.
  bool settle();
  /// As Holder::make_room.
  bool make_room() { return holder_.make_room && holder_.make_room(); }

  /// The row of a new stream. While the past is made again the caller knows it.
  std::uint32_t stream_row();
  /// All work of a stream is done that the command at `position` has destroyed. Until then that
  /// command is open in the journal, and the next engine has the stream, too. Any thread.
  void stream_gone(std::uint64_t id, std::uint32_t row, std::uint64_t position);
  /// The same for the time of a new event; EventTimes::kNoRow: there is none left.
  std::uint32_t time_row() { return again_ ? EventTimes::kNoRow : book_->times().take(); }

  // What parts note of memory and code.
  void segment(device::AddressRange segment, bool dedicated, bool mapped) override;
  void unmapped(device::Address segment) override;
  void block(device::Address address, std::uint64_t bytes, bool retired) override;
  void block_gone(device::Address address) override;
  void arena(device::AddressRange range) override { put(BookKind::kArena, 0, range); }
  void piece_on_host(device::AddressRange piece, int memory, std::uint64_t offset) override;
  void piece_on_device(device::AddressRange piece) override;
  void piece_linked(device::AddressRange piece) override;
  void piece_blank(device::AddressRange piece) override;
  void piece_gone(device::Address piece) override;
  void in_pieces(device::Address segment) override { let_go({BookKind::kSegment, segment}); }
  bool are_for_another() const override { return book_->is_frozen(); }
  /// Host memory. Any thread.
  void host(std::uint64_t id, const BookHost& block, int memory);
  void host_gone(std::uint64_t id);
  /// `home`: address of its variables' home; 0: it has none. `variables`: bytes of variables that
  /// are the driver's.
  void image(std::uint64_t module, std::uint32_t kind, std::span<const std::byte> image,
             std::string_view source, device::Address home, std::uint64_t variables);
  /// The module's first chunk has come; the module was refused. One that is loaded has its image.
  void upload(std::uint64_t module) { book_->put(BookKind::kUpload, module); }
  void upload_gone(std::uint64_t module) { book_->drop(BookKind::kUpload, module); }
  void forbid(std::string_view why) { book_->forbid(why); }

 private:
  template <typename T>
  void put(BookKind kind, std::uint64_t key, const T& value) {
    if (!again_) book_->put_value(kind, key, value);
  }
  void drop(BookKind kind, std::uint64_t key) {
    if (!again_) book_->drop(kind, key);
  }
  void put_command(ipc::CommandType type, std::uint64_t key, std::span<const std::byte> body,
                   std::span<const std::byte> tail);
  void drop_command(ipc::CommandType type, std::uint64_t key);
  void drop_module(std::uint64_t module);
  bool hold(Book::Key key, int memory);
  bool hold_device_memory(BookKind kind, device::AddressRange range);
  bool has_place_for(Book::Key key);
  void let_go(Book::Key key);

  device::Device& device_;
  const std::unique_ptr<Book> book_;
  HeldMemory held_;
  const Holder holder_;
  const bool has_past_ = !book_->is_blank();
  bool again_ = false;
  std::atomic<bool> unsettled_{false};  // whether something was let go of since the last settle()
  Mutex mutex_;
  std::set<Book::Key> held_there_ SLATE_GUARDED_BY(mutex_);  // what the supervisor holds
};

/// The entry of a command: its kind.
constexpr BookKind book_kind(ipc::CommandType type) {
  return static_cast<BookKind>(static_cast<std::uint32_t>(BookKind::kCommands) +
                               static_cast<std::uint32_t>(type));
}

namespace book_rules {

/// Why a session with such an object cannot leave its engine yet; empty: it can.
constexpr std::string_view why_not(ipc::CommandType type) {
  using enum ipc::CommandType;
  switch (type) {
    case kArrayCreate:
      return "it has arrays, whose memory the driver does not hand over";
    case kTextureCreate:
    case kSurfaceCreate:
      return "it has textures or surfaces, whose numbers the driver chooses";
    case kVariablePlace:
      return "it has managed variables";
    case kMemoryExport:
    case kMemoryImport:
    case kEventExport:
    case kEventImport:
      return "it shares memory or events with another process";
    case kAddressReserve:
    case kPhysicalCreate:
    case kPhysicalMap:
      return "it maps physical memory itself";
    default:
      return {};
  }
}

}  // namespace book_rules

template <typename Row>
void SessionBook::note(const typename Row::Body& body, std::span<const std::byte> tail,
                       std::uint32_t row) {
  if constexpr (Row::kObject != ipc::Object::kNeither) {
    using enum ipc::CommandType;
    if (again_) return;
    const auto bytes = std::as_bytes(std::span(&body, 1));
    if constexpr (!book_rules::why_not(Row::kType).empty()) {
      forbid(book_rules::why_not(Row::kType));
    } else if constexpr (Row::kType == kStreamCreate || Row::kType == kEventCreate) {
      put_command(Row::kType, body.id, std::as_bytes(std::span(&row, 1)), bytes);
    } else if constexpr (Row::kType == kFunctionGet) {
      put_command(Row::kType, body.function, bytes, tail);
    } else if constexpr (Row::kType == kFunctionSet) {
      const auto attribute = static_cast<std::uint64_t>(body.attribute);
      put_command(Row::kType, body.function << 8 | attribute, bytes, {});
    } else if constexpr (Row::kType == kLimitRaise) {
      put_command(Row::kType, body.limit, bytes, {});
    } else if constexpr (Row::kType == kEventDestroy) {
      drop_command(kEventCreate, body.id);
    } else if constexpr (Row::kType == kModuleUnload) {
      drop_module(body.id);
    } else {
      // Memory, images and the ends of streams are noted by their parts. What only forbidden
      // objects know needs no note.
      static_assert(Row::kType == kModuleLoad || Row::kType == kModuleOffer ||
                    Row::kType == kMemoryAllocate || Row::kType == kMemoryFree ||
                    Row::kType == kHostAllocate || Row::kType == kHostFree ||
                    Row::kObject == ipc::Object::kEnds);
    }
  }
}

}  // namespace slate::daemon
