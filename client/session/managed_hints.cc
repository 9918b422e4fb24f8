#include "client/session/managed_hints.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <vector>

#include "client/session/captures.h"
#include "client/session/program_memory.h"

namespace slate::client {
namespace {

// CU_MEM_LOCATION_TYPE_*, CU_MEM_ADVISE_*, CU_MEM_RANGE_ATTRIBUTE_*, CU_MEM_ATTACH_*.
constexpr int kHostNode = 3, kCurrentHostNode = 4;
enum Advice : int {
  kSetReadMostly = 1,
  kUnsetReadMostly = 2,
  kSetPreferred = 3,
  kUnsetPreferred = 4,
  kSetAccessedBy = 5,
  kUnsetAccessedBy = 6,
};
enum Attribute : int {
  kReadMostly = 1,
  kPreferred = 2,
  kAccessedBy = 3,
  kLastPrefetch = 4,
  kPreferredType = 5,
  kPreferredId = 6,
  kLastPrefetchType = 7,
  kLastPrefetchId = 8,
};
constexpr unsigned kAttachGlobal = 1, kAttachHost = 2, kAttachSingle = 4;

/// `numa`: whether a node of the host may be meant.
Allowed<PagePlace> place_of(const LocationName& location, bool numa) {
  switch (location.type) {
    case kLocationOfDevice:
      if (location.id != 0) return refuse(Refusal::kInvalidDevice);
      return PagePlace{PagePlace::Kind::kDevice, 0};
    case kLocationOfHost:
      return PagePlace{PagePlace::Kind::kHost, PagePlace::kHostId};
    case kHostNode:
      if (!numa || location.id < 0) return refuse(Refusal::kInvalidValue);
      return PagePlace{PagePlace::Kind::kHostNode, location.id};
    case kCurrentHostNode:
      // Which one that is makes no difference to memory that does not move.
      if (!numa) return refuse(Refusal::kInvalidValue);
      return PagePlace{PagePlace::Kind::kHostNode, 0};
    default:
      return refuse(Refusal::kInvalidValue);
  }
}

/// Hints go to a stream that does not capture.
Allowed<void> check_stream(Session& session, std::uint64_t stream) {
  if (session.captures().takes(stream)) return session.captures().refuse_work(stream);
  return {};
}

/// Where each operation of the batch goes.
Allowed<std::vector<PagePlace>> places_of(const HintBatch& batch) {
  const std::size_t count = batch.memory.size();
  std::vector<PagePlace> places(count);
  if (batch.locations.empty() || batch.locations.size() > count || batch.first[0] != 0)
    return refuse(Refusal::kInvalidValue);
  for (std::size_t k = 0; k < batch.locations.size(); ++k) {
    const bool last = k + 1 == batch.locations.size();
    const std::size_t end = last ? count : batch.first[k + 1];
    if (end <= batch.first[k] || end > count) return refuse(Refusal::kInvalidValue);
    const auto place = place_of(batch.locations[k], true);
    if (!place) return std::unexpected(place.error());
    std::fill(places.begin() + static_cast<std::ptrdiff_t>(batch.first[k]),
              places.begin() + static_cast<std::ptrdiff_t>(end), *place);
  }
  return places;
}

/// kInvalidValue for a number that is no attribute, or a size that is not its.
Allowed<void> tell(const PageAdvice& advice, const ManagedQuestion& question) {
  if (question.data == nullptr) return refuse(Refusal::kInvalidValue);
  if (question.attribute == kAccessedBy) {
    if (question.bytes == 0 || question.bytes % sizeof(int) != 0)
      return refuse(Refusal::kInvalidValue);
    std::vector<int> devices;
    if (advice.by_device) devices.push_back(0);
    if (advice.by_host) devices.push_back(PagePlace::kHostId);
    devices.resize(question.bytes / sizeof(int), PagePlace::kNoId);
    std::memcpy(question.data, devices.data(), question.bytes);
    return {};
  }
  // What has no device's number is told as none.
  const auto device = [](const PagePlace& place) {
    return place.kind == PagePlace::Kind::kHostNode ? PagePlace::kNoId : place.id;
  };
  int value = 0;
  switch (question.attribute) {
    case kReadMostly:
      value = advice.read_mostly ? 1 : 0;
      break;
    case kPreferred:
      value = device(advice.preferred);
      break;
    case kLastPrefetch:
      value = device(advice.prefetched);
      break;
    case kPreferredType:
      value = static_cast<int>(advice.preferred.kind);
      break;
    case kPreferredId:
      value = advice.preferred.id;
      break;
    case kLastPrefetchType:
      value = static_cast<int>(advice.prefetched.kind);
      break;
    case kLastPrefetchId:
      value = advice.prefetched.id;
      break;
    default:
      return refuse(Refusal::kInvalidValue);
  }
  if (question.bytes != sizeof(value)) return refuse(Refusal::kInvalidValue);
  std::memcpy(question.data, &value, sizeof(value));
  return {};
}

}  // namespace

LocationName location_of_device(int device) {
  if (device == PagePlace::kHostId) return {kLocationOfHost, 0};
  return {kLocationOfDevice, device};
}

Allowed<void> prefetch_managed(Session& session, const ManagedSpan& memory,
                               const LocationName& location, std::uint64_t stream) {
  const auto pages = managed_pages(session, memory.address, memory.bytes);
  if (!pages) return std::unexpected(pages.error());
  const auto place = place_of(location, true);
  if (!place) return std::unexpected(place.error());
  if (auto ok = check_stream(session, stream); !ok) return ok;
  session.host_memory().advice().change(pages->begin, pages->end,
                                        [&](PageAdvice& advice) { advice.prefetched = *place; });
  return {};
}

Allowed<void> advise_managed(Session& session, const ManagedSpan& memory, int advice,
                             const LocationName& location) {
  const auto pages = managed_pages(session, memory.address, memory.bytes);
  if (!pages) return std::unexpected(pages.error());
  const auto change = [&](const std::function<void(PageAdvice&)>& how) -> Allowed<void> {
    session.host_memory().advice().change(pages->begin, pages->end, how);
    return {};
  };
  switch (advice) {
    case kSetReadMostly:
    case kUnsetReadMostly:
      return change([&](PageAdvice& of) { of.read_mostly = advice == kSetReadMostly; });
    case kUnsetPreferred:
      return change([](PageAdvice& of) { of.preferred = {}; });
    case kSetPreferred: {
      const auto place = place_of(location, true);
      if (!place) return std::unexpected(place.error());
      return change([&](PageAdvice& of) { of.preferred = *place; });
    }
    case kSetAccessedBy:
    case kUnsetAccessedBy: {
      const auto place = place_of(location, false);
      if (!place) return std::unexpected(place.error());
      const bool set = advice == kSetAccessedBy;
      return change([&](PageAdvice& of) {
        (place->kind == PagePlace::Kind::kDevice ? of.by_device : of.by_host) = set;
      });
    }
    default:
      return refuse(Refusal::kInvalidValue);
  }
}

Allowed<void> run_hint_batch(Session& session, const HintBatch& batch, bool prefetches,
                             std::uint64_t stream) {
  if (batch.memory.empty() || stream == ipc::kDefaultStream) return refuse(Refusal::kInvalidValue);
  std::vector<ManagedPages> ranges;
  for (const ManagedSpan& memory : batch.memory) {
    const auto pages = managed_pages(session, memory.address, memory.bytes);
    if (!pages) return std::unexpected(pages.error());
    ranges.push_back(*pages);
  }
  const auto places = prefetches ? places_of(batch) : Allowed<std::vector<PagePlace>>();
  if (!places) return std::unexpected(places.error());
  if (auto ok = check_stream(session, stream); !ok) return ok;
  for (std::size_t i = 0; prefetches && i < ranges.size(); ++i) {
    session.host_memory().advice().change(ranges[i].begin, ranges[i].end, [&](PageAdvice& advice) {
      advice.prefetched = (*places)[i];
    });
  }
  return {};
}

Allowed<void> tell_managed(Session& session, const ManagedSpan& memory,
                           std::span<const ManagedQuestion> questions) {
  const auto pages = managed_pages(session, memory.address, memory.bytes);
  if (!pages) return std::unexpected(pages.error());
  const PageAdvice advice = session.host_memory().advice().common(pages->begin, pages->end);
  for (const ManagedQuestion& question : questions) {
    if (auto told = tell(advice, question); !told) return told;
  }
  return {};
}

Allowed<void> attach_managed(Session& session, const ManagedSpan& memory, unsigned flags,
                             std::uint64_t stream) {
  const auto range = find_managed(session, memory.address);
  const bool known = flags == kAttachGlobal || flags == kAttachHost || flags == kAttachSingle;
  if (!known || !range || range->address != memory.address ||
      (memory.bytes != 0 && memory.bytes != range->bytes)) {
    return refuse(Refusal::kInvalidValue);
  }
  if (flags == kAttachSingle && stream == ipc::kDefaultStream)
    return refuse(Refusal::kInvalidValue);
  return check_stream(session, stream);  // host and device may use it at any time
}

}  // namespace slate::client
