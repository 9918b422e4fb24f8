// HostPool: small pieces of pinned host memory, cut from slabs of one size each,
// as a block of the daemon's for every piece costs a call and two mappings. A freed piece comes
// again when the work is done that was sent before the free, and reads as 0 then. Thread-safe.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <mutex>

#include "base/result.h"

namespace slate::client {

class HostPool {
 public:
  static constexpr std::uint64_t kLeast = 512;
  /// Larger ones are blocks of their own.
  static constexpr std::uint64_t kLargest = 64 << 10;
  static constexpr std::uint64_t kFirstSlab = 16 << 10;
  static constexpr std::uint64_t kLargestSlab = 2 << 20;

  /// Where slabs come from, and how far the session's work is.
  struct Source {
    /// A slab's address; it reads as 0, and begins with a page.
    std::function<Result<std::uint64_t>(std::uint64_t bytes)> get;
    /// Work may still use it.
    std::function<void(std::uint64_t address)> give_back;
    /// The position of the newest work.
    std::function<std::uint64_t()> newest;
    /// Whether all work up to a position is done.
    std::function<bool(std::uint64_t position)> done;
  };
  explicit HostPool(Source source) : source_(std::move(source)) {}

  /// As getting a slab fails. Pieces from a page on begin with a page. Requires: 0 < bytes and
  /// bytes <= kLargest.
  Result<std::uint64_t> allocate(std::uint64_t bytes);
  /// False when no piece of this pool that is in use begins there.
  bool free(std::uint64_t address);
  /// Calls `visit(address, bytes)` for each slab that has no piece in use.
  void for_each_empty(const std::function<void(std::uint64_t, std::uint64_t)>& visit) const;

 private:
  static constexpr std::size_t kSizes = std::bit_width(kLargest / kLeast);
  struct Freed {
    std::uint64_t address;
    std::uint64_t position;  // of the newest work when it was freed
  };
  struct Slab {
    std::uint64_t address = 0, bytes = 0;
    std::uint64_t cut = 0;  // bytes that were pieces at some time
    std::size_t in_use = 0;
    std::deque<Freed> freed;  // the oldest first
  };
  using Slabs = std::list<Slab>;
  struct Size {
    std::uint64_t piece = 0;
    std::uint64_t next_slab = 0;
    Slabs slabs;  // the one that was used last first
  };
  struct Owner {
    Size* size;
    Slabs::iterator slab;
  };

  static std::array<Size, kSizes> all_sizes();
  std::uint64_t take(Size& size, Slab& slab);
  Result<void> add_slab(Size& size);

  const Source source_;
  mutable std::mutex mutex_;
  std::array<Size, kSizes> sizes_ = all_sizes();
  std::map<std::uint64_t, Owner> pieces_;  // in use, by address
};

}  // namespace slate::client
