#include "client/session/print_ring.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <utility>

#include "base/print_format.h"

namespace slate::client {
namespace {

constexpr std::uint64_t kWord = 8;
constexpr std::uint64_t kPrintPage = 4096;
constexpr std::uint64_t kHeadWords = 2;

std::uint64_t ring_bytes(std::uint64_t bytes) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 40;
  return std::bit_ceil(std::clamp(bytes, kPrintPage, kMost));
}

/// The words of a record, one after the other. Nothing of what is in them is believed.
class Reader {
 public:
  explicit Reader(const std::vector<std::uint64_t>& words) : words_(words) {}

  std::optional<std::uint64_t> number() {
    if (at_ >= words_.size()) return std::nullopt;
    return words_[at_++];
  }
  std::optional<std::string> text() {
    if (at_ >= words_.size()) return std::nullopt;
    const auto* const begin = reinterpret_cast<const char*>(&words_[at_]);
    std::string text(begin, ::strnlen(begin, (words_.size() - at_) * kWord));
    at_ += text.size() / kWord + 1;
    return text;
  }

 private:
  const std::vector<std::uint64_t>& words_;
  std::size_t at_ = kHeadWords;
};

std::string printf_text(Reader record) {
  const auto format = record.text().value_or("");
  return format_printed(
      format, {[&](std::uint32_t) { return record.number(); }, [&] { return record.text(); }});
}

/// As CUDA writes it.
std::string assert_text(Reader record) {
  std::string words[ptx::kAssertWords];
  for (std::string& word : words) {
    word = std::to_string(static_cast<std::uint32_t>(record.number().value_or(0)));
  }
  const std::string message = record.text().value_or("");
  const std::string file = record.text().value_or("");
  const std::string function = record.text().value_or("");
  return file + ":" + words[ptx::kLine] + ": " + function + ": block: [" + words[ptx::kBlockX] +
         "," + words[ptx::kBlockY] + "," + words[ptx::kBlockZ] + "], thread: [" +
         words[ptx::kThreadX] + "," + words[ptx::kThreadY] + "," + words[ptx::kThreadZ] +
         "] Assertion `" + message + "` failed.\n";
}

}  // namespace

std::uint64_t PrintRing::memory_for(std::uint64_t bytes) {
  return kPrintPage + ring_bytes(bytes);
}

PrintRing::PrintRing(std::byte* memory, std::uint64_t bytes)
    : header_(reinterpret_cast<ptx::PrintRingHeader*>(memory)),
      data_(memory + sizeof(ptx::PrintRingHeader)),
      bytes_(ring_bytes(bytes)) {
  header_->mask = bytes_ - 1;
}

std::uint64_t PrintRing::tail() const {
  return std::atomic_ref(header_->tail).load(std::memory_order_acquire);
}

bool PrintRing::used() const {
  return tail() != 0;
}

bool PrintRing::asserted() const {
  return std::atomic_ref(header_->asserted).load(std::memory_order_acquire) != 0;
}

std::uint64_t* PrintRing::word_at(std::uint64_t position) const {
  return reinterpret_cast<std::uint64_t*>(data_ + (position & (bytes_ - 1)));
}

/// The record that begins there, if it is whole.
std::optional<PrintRing::Words> PrintRing::record_at(std::uint64_t position,
                                                     std::uint64_t end) const {
  const std::uint64_t tag = std::atomic_ref(*word_at(position)).load(std::memory_order_acquire);
  if (tag != ptx::tag_of(position) || end - position < kHeadWords * kWord) return std::nullopt;
  const std::uint64_t size = *word_at(position + kWord) & ~ptx::kAssertRecord;
  if (size < kHeadWords * kWord || size % kWord != 0 || size > std::min(bytes_, end - position)) {
    return std::nullopt;
  }
  Words words(size / kWord);
  for (std::uint64_t i = 0; i < words.size(); ++i) {
    words[i] = std::atomic_ref(*word_at(position + i * kWord)).load(std::memory_order_acquire);
  }
  // Kernels may have come round and overwritten it meanwhile.
  if (tail() - position > bytes_) return std::nullopt;
  return words;
}

void PrintRing::read(Range range, std::uint64_t oldest, std::vector<Printed>& printed) {
  std::uint64_t at = std::max(range.begin, oldest);
  std::uint64_t gap = at;  // [gap, at) is not whole
  while (at < range.end) {
    const auto record = record_at(at, range.end);
    if (!record) {
      at += kWord;
      continue;
    }
    if (gap < at) unread_.push_back({gap, at});
    const bool is_error = ((*record)[1] & ptx::kAssertRecord) != 0;
    printed.push_back(
        {is_error, is_error ? assert_text(Reader(*record)) : printf_text(Reader(*record))});
    at += record->size() * kWord;
    gap = at;
  }
  if (gap < range.end) unread_.push_back({gap, range.end});
}

std::vector<Printed> PrintRing::take() {
  const MutexLock lock(mutex_);
  std::vector<Range> ranges = std::exchange(unread_, {});
  // Positions are words; a kernel that wrote over the tail has lost what it printed.
  const std::uint64_t end = tail() / kWord * kWord;
  if (end > seen_) {
    ranges.push_back({seen_, end});
    seen_ = end;
  }
  const std::uint64_t oldest = end > bytes_ ? end - bytes_ : 0;
  std::vector<Printed> printed;
  for (const Range& each : ranges) read(each, oldest, printed);
  return printed;
}

}  // namespace slate::client
