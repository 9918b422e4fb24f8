// StreamAttributes: what was set of streams' attributes that are hints to a GPU's caches and
// memory, or say how a thread is to wait: kept and told, and without effect here. Thread-safe.
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
  /// Gives one stream all that was set of another, and no more.
  void copy(std::uint64_t to, std::uint64_t from);
  /// The stream is no more.
  void forget(std::uint64_t stream);

 private:
  mutable std::mutex mutex_;
  std::map<std::uint64_t, std::map<int, Value>> values_;  // by stream and attribute
};

}  // namespace slate::client
