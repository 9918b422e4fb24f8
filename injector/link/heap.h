// malloc and free in kernels, from a heap that belongs to the session. The driver's heap is one for
// all programs of the engine's context, and memory that one program leaks is lost to the next. The
// functions are PTX (heap_text.h) that with_builtins() links in. This header says where they keep
// their books, in memory that the client has the daemon allocate. docs/kernel_heap.md has the
// reasons. Plain values. Thread: any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace slate::ptx {

/// The variable of 8 bytes that holds the address of the HeapHeader, 0 at first. With 0, malloc
/// returns NULL and free does nothing.
inline constexpr std::string_view kHeapVariable = "__libslate_heap";

inline constexpr std::uint64_t kHeapPageBytes = 1024;
/// Bytes of the pages that one word of `page_bits` stands for: a heap's size is a multiple of it.
inline constexpr std::uint64_t kHeapGrainBytes = 64 * kHeapPageBytes;
/// Most bytes of a heap, so that the number of pages fits in 27 bits.
inline constexpr std::uint64_t kMostHeapBytes = (std::uint64_t{1} << 37) - kHeapGrainBytes;

/// Where the parts of the heap are. The host writes it, once. The kernels write the rest of the
/// books, which are zero at first, except for HeapWords::last_hint. The arrays hold, for page
/// number p:
/// - page_bits, bit p: whether the page is taken;
/// - room_bits, bit p: whether a block begins here and has a free unit;
/// - free_units, word p: the free units of the block that begins here; 0 if there is none;
/// - classes, word p, of every page of a block: number of its class (from 1) | log2 of its pages <<
///   5 | its units << 8 | 16ths of a unit's bytes << 16;
/// - classes, word p, of the first page of a larger piece: 31 | its pages << 5; else 0.
struct HeapHeader {
  std::uint64_t base = 0;   // address of the memory that malloc gives; a multiple of 256
  std::uint64_t pages = 0;  // pages of kHeapPageBytes
  std::uint64_t words = 0;  // words of 64 bits, for one bit a page
  std::uint64_t page_bits = 0;
  std::uint64_t room_bits = 0;
  std::uint64_t free_units = 0;
  std::uint64_t classes = 0;
  std::uint64_t reserved = 0;
};
static_assert(sizeof(HeapHeader) == 64 && offsetof(HeapHeader, page_bits) == 24 &&
              offsetof(HeapHeader, classes) == 48);

/// Offsets behind the header, each in a cache line of its own. The state has two counts: in the
/// lowest 24 bits the operations that hold something back for a moment; in the other bits how often
/// something was given back. It is 0 until malloc has given something.
enum HeapWords : std::uint64_t {
  kHeapState = 128,       // 8 bytes
  kHeapFirstHint = 256,   // 4 bytes: words of page_bits below it are likely full
  kHeapLastHint = 384,    // 4 bytes: words of page_bits above it are likely full
  kHeapNews = 512,        // 4 bytes for each class: times that a full block got room
  kHeapNewsSeen = 640,    // the same when a search through all blocks found none
  kHeapPresent = 1024,    // 32 groups of warps, 4 bytes for each class: block in use, as page + 1
  kHeapBooksBytes = 5120  // bytes of all this; the arrays follow
};

/// Where a heap's parts are, in bytes from its beginning.
struct HeapLayout {
  std::uint64_t pages = 0;
  std::uint64_t book_bytes = 0;  // header and arrays
  std::uint64_t bytes = 0;       // everything

  HeapHeader header_at(std::uint64_t address) const;
  std::uint32_t last_hint() const { return static_cast<std::uint32_t>(pages / 64 - 1); }
};

/// The layout of a heap that holds at least `bytes`. Requires: bytes <= kMostHeapBytes.
HeapLayout heap_layout(std::uint64_t bytes);

}  // namespace slate::ptx
