// HostPool: small pieces of pinned host memory, cut from slabs of one size each. A block for every
// piece would cost a call of the daemon and two mappings. A freed piece is used again when the work
// before its free is done, and reads as 0 then. Thread-safe.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>

#include "base/mutex.h"
#include "base/result.h"

namespace slate::client {

class HostPool {
 public:
  static constexpr std::uint64_t kLeast = 512;
  /// Larger pieces are blocks of their own.
  static constexpr std::uint64_t kLargest = 64 << 10;
  static constexpr std::uint64_t kFirstSlab = 16 << 10;
  static constexpr std::uint64_t kLargestSlab = 2 << 20;

  /// The functions that provide slabs, and the progress of the session's work.
  struct Source {
    /// A slab's address. A slab reads as 0 and begins with a page.
    std::function<Result<std::uint64_t>(std::uint64_t bytes)> get;
    /// Gives a slab back, which work may still use.
    std::function<void(std::uint64_t address)> give_back;
    /// The position of the newest work.
    std::function<std::uint64_t()> newest;
    /// Whether all work up to a position is done.
    std::function<bool(std::uint64_t position)> done;
  };
  explicit HostPool(Source source) : source_(std::move(source)) {}

  /// Errors as Source::get(). A piece of at least a page begins with a page. Requires: 0 < bytes <=
  /// kLargest.
  Result<std::uint64_t> allocate(std::uint64_t bytes);
  /// False when no piece in use of this pool begins there.
  bool free(std::uint64_t address);
  /// Calls `visit(address, bytes)` for each slab that has no piece in use.
  void for_each_empty(const std::function<void(std::uint64_t, std::uint64_t)>& visit) const;

 private:
  static constexpr std::size_t kSizes = std::bit_width(kLargest / kLeast);
  struct Freed {
    std::uint64_t address;
    std::uint64_t position;  // position of the newest work at its free
  };
  struct Slab {
    std::uint64_t address = 0, bytes = 0;
    std::uint64_t cut = 0;  // bytes that were in pieces at some time
    std::size_t in_use = 0;
    std::deque<Freed> freed;  // freed pieces, oldest first
  };
  using Slabs = std::list<Slab>;
  struct Size {
    std::uint64_t piece = 0;
    std::uint64_t next_slab = 0;
    Slabs slabs;  // slabs, the last used one first
  };
  struct Owner {
    Size* size;
    Slabs::iterator slab;
  };

  static std::array<Size, kSizes> all_sizes();
  std::uint64_t take(Size& size, Slab& slab);
  Result<void> add_slab(Size& size);

  const Source source_;
  mutable Mutex mutex_;
  std::array<Size, kSizes> sizes_ SLATE_GUARDED_BY(mutex_) = all_sizes();
  std::map<std::uint64_t, Owner> pieces_ SLATE_GUARDED_BY(mutex_);  // pieces in use, by address
};

}  // namespace slate::client
