// StreamAttributes: attributes of streams that are hints to a GPU's caches and memory, or say how a
// thread waits. They are kept and returned, without effect. Thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>

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
  mutable std::mutex mutex_;
  std::map<std::uint64_t, std::map<int, Value>> values_;  // by stream and attribute
};

}  // namespace slate::client
