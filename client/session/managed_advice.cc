#include "client/session/managed_advice.h"

#include <algorithm>
#include <iterator>

namespace slate::client {

/// No part reaches over `at` afterwards.
void ManagedAdvice::cut(std::uint64_t at) {
  const auto next = parts_.upper_bound(at);
  if (next == parts_.begin()) return;
  const auto before = std::prev(next);
  if (before->first == at || before->second.end <= at) return;
  parts_.emplace(at, before->second);
  before->second.end = at;
}

void ManagedAdvice::change(std::uint64_t begin, std::uint64_t end,
                           const std::function<void(PageAdvice&)>& change) {
  const MutexLock lock(mutex_);
  cut(begin);
  cut(end);
  for (std::uint64_t at = begin; at < end;) {
    const auto next = parts_.lower_bound(at);
    if (next == parts_.end() || next->first > at) {
      const std::uint64_t hole_end =
          next == parts_.end() ? end : std::min<std::uint64_t>(next->first, end);
      parts_.emplace(at, Part{hole_end, {}});
      continue;
    }
    change(next->second.advice);
    at = next->second.end;
  }
}

void ManagedAdvice::forget(std::uint64_t begin, std::uint64_t end) {
  const MutexLock lock(mutex_);
  cut(begin);
  cut(end);
  parts_.erase(parts_.lower_bound(begin), parts_.lower_bound(end));
}

PageAdvice ManagedAdvice::common(std::uint64_t begin, std::uint64_t end) {
  const MutexLock lock(mutex_);
  cut(begin);
  cut(end);
  auto part = parts_.lower_bound(begin);
  if (part == parts_.end() || part->first != begin) return {};
  PageAdvice all = part->second.advice;
  std::uint64_t covered = part->second.end;
  while (covered < end) {
    part = std::next(part);
    if (part == parts_.end() || part->first != covered) return {};
    const PageAdvice& here = part->second.advice;
    all.read_mostly &= here.read_mostly;
    all.by_device &= here.by_device;
    all.by_host &= here.by_host;
    if (all.preferred != here.preferred) all.preferred = {};
    if (all.prefetched != here.prefetched) all.prefetched = {};
    covered = part->second.end;
  }
  return all;
}

}  // namespace slate::client
