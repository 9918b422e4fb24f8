#include "injector/link/heap.h"

#include <algorithm>

namespace slate::ptx {
namespace {

constexpr std::uint64_t kAlign = 256;  // of what malloc gives, at least

std::uint64_t round_up(std::uint64_t value, std::uint64_t to) {
  return (value + to - 1) / to * to;
}

}  // namespace

HeapLayout heap_layout(std::uint64_t bytes) {
  const std::uint64_t pages =
      std::max(round_up(bytes, kHeapGrainBytes), kHeapGrainBytes) / kHeapPageBytes;
  const std::uint64_t bitmaps = 2 * pages / 8;
  const std::uint64_t words = pages * (sizeof(std::uint64_t) + sizeof(std::uint32_t));
  const std::uint64_t books = round_up(kHeapBooksBytes + bitmaps + words, kAlign);
  return {pages, books, books + pages * kHeapPageBytes};
}

HeapHeader HeapLayout::header_at(std::uint64_t address) const {
  HeapHeader header;
  header.base = address + book_bytes;
  header.pages = pages;
  header.words = pages / 64;
  header.page_bits = address + kHeapBooksBytes;
  header.room_bits = header.page_bits + header.words * 8;
  header.free_units = header.room_bits + header.words * 8;
  header.classes = header.free_units + pages * 8;
  return header;
}

}  // namespace slate::ptx
