// Wire: sends the session's wire structs to the daemon, and makes the ids in them. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <type_traits>

#include "base/result.h"
#include "ipc/channel.h"

namespace slate::client {

/// The body or the reply of a command without one.
struct Nothing {};

template <typename T>
std::span<const std::byte> body_of(const T& value) {
  if constexpr (std::is_empty_v<T>) {
    return {};
  } else {
    return ipc::bytes_of(value);
  }
}

class Wire {
 public:
  /// `serial`: the session's. Ids in handle tables start with it, so that another session's are
  /// never taken for this one's.
  Wire(std::unique_ptr<ipc::ClientChannel> channel, std::uint64_t serial)
      : channel_(std::move(channel)), serial_(serial), handle_counter_(serial << kSerialShift) {}

  ipc::ClientChannel& channel() { return *channel_; }
  const ipc::ClientChannel& channel() const { return *channel_; }
  std::uint64_t serial() const { return serial_; }
  /// A new id for a module, a function, host memory or a gate.
  std::uint64_t next_id() { return ++next_id_; }
  /// The counter for the tables of handles.
  std::atomic<std::uint64_t>& handle_counter() { return handle_counter_; }
  /// Whether a number from that counter is an earlier session's.
  bool counted_earlier(std::uint64_t number) const {
    const std::uint64_t serial = number >> kSerialShift;
    return serial != 0 && serial < serial_;
  }

  template <typename Body>
  Result<void> post(ipc::CommandType type, const Body& body) {
    return channel_->post(type, body_of(body));
  }
  template <typename Reply, typename Body>
  Result<Reply> call(ipc::CommandType type, const Body& body, std::string_view tail = {}) {
    static_assert(std::is_trivially_copyable_v<Reply>);
    Reply reply{};
    std::span<std::byte> into;
    if constexpr (!std::is_empty_v<Reply>) into = std::as_writable_bytes(std::span(&reply, 1));
    auto ok = channel_->call(type, body_of(body), std::as_bytes(std::span(tail)), into);
    if (!ok) return std::unexpected(ok.error());
    return reply;
  }

 private:
  /// Leaves a session more handles than any program makes.
  static constexpr int kSerialShift = 32;

  const std::unique_ptr<ipc::ClientChannel> channel_;
  const std::uint64_t serial_;
  std::atomic<std::uint64_t> next_id_{0};
  std::atomic<std::uint64_t> handle_counter_;
};

}  // namespace slate::client
