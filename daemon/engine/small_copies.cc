#include "daemon/engine/small_copies.h"

#include <cstdlib>
#include <cstring>

namespace slate::daemon {
namespace {

constexpr std::size_t kPage = 4096;

}  // namespace

void SmallCopies::Free::operator()(std::byte* memory) const {
  std::free(memory);
}

SmallCopies::~SmallCopies() {
  if (registered_) device_.unregister_host(memory_.get());
}

const std::byte* SmallCopies::put(std::span<const std::byte> bytes,
                                  const std::shared_ptr<LogicalStream>& stream) {
  if (!memory_) {
    constexpr std::size_t kBytes = kPlaces * ipc::kMostInlineBytes;
    static_assert(kBytes % kPage == 0);
    memory_.reset(static_cast<std::byte*>(std::aligned_alloc(kPage, kBytes)));
    if (!memory_) return nullptr;
    registered_ = device_.register_host(memory_.get(), kBytes).has_value();
  }
  Place& place = places_[next_];
  if (place.stream && place.stream->completed.load() < place.until) return nullptr;
  std::byte* const at = memory_.get() + next_ * ipc::kMostInlineBytes;
  next_ = (next_ + 1) % kPlaces;
  place = {stream, stream->submitted.load() + 1};
  std::memcpy(at, bytes.data(), bytes.size());
  return at;
}

}  // namespace slate::daemon
