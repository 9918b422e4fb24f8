// StreamAttributes: attributes of streams that are hints to a GPU's caches and memory, or say how a
// thread waits. They are kept and returned, without effect. Thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

#include "base/mutex.h"

namespace slate::client {

class StreamAttributes {
 public:
  /// Any attribute's value, as CUDA's APIs lay it out.
  using Value = std::array<std::byte, 64>;

  std::optional<Value> find(std::uint64_t stream, int attribute) const;
  void set(std::uint64_t stream, int attribute, const Value& value);
  /// Replaces one stream's attributes by another's.
  void copy(std::uint64_t to, std::uint64_t from);
  /// The stream was destroyed.
  void forget(std::uint64_t stream);

 private:
  mutable Mutex mutex_;
  // By stream and attribute.
  std::map<std::uint64_t, std::map<int, Value>> values_ SLATE_GUARDED_BY(mutex_);
};

}  // namespace slate::client
