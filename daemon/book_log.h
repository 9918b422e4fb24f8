// BookLog: the part of a session's book (book.h) that has the objects in force, as entries by kind
// and key. Later ones replace earlier ones. When it is full, the living entries are copied to its
// other half. Any thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "daemon/book_pages.h"

namespace slate::daemon {

/// What an entry is about. Entries of commands have kCommands + the command's number.
enum class BookKind : std::uint32_t {
  kArena = 1,    // key 0; payload: the device::AddressRange of the session's arena
  kSegment = 2,  // key: its address; payload: BookSegment; the memory has the same key
  kBlock = 3,    // key: its address; payload: BookBlock
  kHost = 4,     // key: the client's id; payload: BookHost; the memory has the same key
  kImage = 5,    // key: the client's module id; payload: BookImage; the memory has the same key
  kUpload = 6,   // key: the same; no payload; a module began to come in chunks, and was not refused
  kSaved = 7,    // no entry: memory with the contents of the segment or piece at the key's address
  kPiece = 8,    // key: its address; payload: BookPiece; memory of the device has the same key
  kCommands = 1000,
};

struct BookSegment {
  std::uint64_t bytes;
  std::uint64_t dedicated;
};
/// A part of a segment that moves by itself. All parts of such a segment have an entry.
struct BookPiece {
  std::uint64_t bytes;
  std::uint64_t blank;   // whether nothing was written there yet
  std::uint64_t offset;  // of the contents in the memory that kSaved names
};
struct BookBlock {
  std::uint64_t bytes;
  std::uint64_t retired;  // whether it was freed, but work may still use it
};
struct BookHost {
  std::uint64_t address, bytes;
  std::uint64_t on_its_way;  // until the client has mapped it
  std::uint64_t retired;     // whether it was freed, but work may still use it
};
struct BookImage {
  std::uint64_t kind;          // ipc::kImagePtx or ipc::kImageElf
  std::uint64_t bytes;         // of the image, at the beginning of the memory
  std::uint64_t source_bytes;  // of its PTX, behind the image
  std::uint64_t home;          // address of its variables' home; 0: it has none
};

class BookLog {
 public:
  static constexpr std::uint64_t kBytes = 4 << 20;  // of each half
  /// In shared memory. Writer: the engine. Reader: the next one.
  struct Memory {
    std::atomic<std::uint64_t> half;      // 0 or 1
    std::atomic<std::uint64_t> bytes[2];  // bytes that count in each half
    alignas(4096) std::byte records[2][kBytes];
  };
  using Key = std::pair<BookKind, std::uint64_t>;
  struct Entry {
    std::uint64_t order = 0;     // rising in the order in which the entries first came
    std::uint64_t position = 0;  // position of the command that made it; 0: none did
    std::vector<std::byte> payload;

    /// Nullopt when it has another size.
    template <typename T>
    std::optional<T> as() const {
      static_assert(std::is_trivially_copyable_v<T>);
      if (payload.size() != sizeof(T)) return std::nullopt;
      T value;
      __builtin_memcpy(&value, payload.data(), sizeof(T));
      return value;
    }
  };

  /// `memory` lies at `begin` of the shared memory `fd`; both outlive it.
  BookLog(Memory& memory, int fd, std::uint64_t begin);

  /// Whether nothing was ever written.
  bool is_blank() const;
  /// Drops all entries.
  void clear();
  /// Takes what another engine has written. To be called first. Errors: kProtocol.
  Result<void> read();

  // Errors: kLimit, and kOutOfMemory. Then the memory has not all entries any more.
  /// Makes an entry, by the command at `position`, or replaces one.
  Result<void> put(const Key& key, std::uint64_t position, std::span<const std::byte> payload);
  /// Ignores an entry that is not there.
  Result<void> drop(const Key& key);

  bool has(const Key& key) const;
  /// The entries, in the order in which they first came.
  std::vector<std::pair<Key, Entry>> entries() const;

 private:
  struct Record {
    std::uint32_t bytes;  // with the payload and padding: a multiple of 16
    std::uint32_t payload_bytes;
    BookKind kind;
    std::uint32_t dropped;
    std::uint64_t key;
    std::uint64_t position;
  };
  static_assert(sizeof(Record) == 32);

  static std::uint64_t bytes_of_record(const Entry* entry);
  const Entry& enter(const Key& key, std::uint64_t position, std::span<const std::byte> payload)
      SLATE_REQUIRES(mutex_);
  Result<void> append(const Key& key, const Entry* entry) SLATE_REQUIRES(mutex_);
  Result<void> rewrite() SLATE_REQUIRES(mutex_);
  Result<std::uint64_t> lay_down(std::uint64_t half, std::uint64_t at, const Key& key,
                                 const Entry* entry) SLATE_REQUIRES(mutex_);

  Memory& memory_;
  mutable Mutex mutex_;
  BookPages pages_[2] SLATE_GUARDED_BY(mutex_);
  std::map<Key, Entry> entries_ SLATE_GUARDED_BY(mutex_);
  std::uint64_t next_order_ SLATE_GUARDED_BY(mutex_) = 1;
};

}  // namespace slate::daemon
