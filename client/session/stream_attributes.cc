#include "client/session/stream_attributes.h"

namespace slate::client {

std::optional<StreamAttributes::Value> StreamAttributes::find(std::uint64_t stream,
                                                              int attribute) const {
  const MutexLock lock(mutex_);
  const auto its = values_.find(stream);
  if (its == values_.end()) return std::nullopt;
  const auto at = its->second.find(attribute);
  return at == its->second.end() ? std::nullopt : std::optional(at->second);
}

void StreamAttributes::set(std::uint64_t stream, int attribute, const Value& value) {
  const MutexLock lock(mutex_);
  values_[stream][attribute] = value;
}

void StreamAttributes::copy(std::uint64_t to, std::uint64_t from) {
  const MutexLock lock(mutex_);
  const auto source = values_.find(from);
  const auto copied = source == values_.end() ? std::map<int, Value>() : source->second;
  values_[to] = copied;
}

void StreamAttributes::forget(std::uint64_t stream) {
  const MutexLock lock(mutex_);
  values_.erase(stream);
}

}  // namespace slate::client
