// How Session sends a wire struct: the two templates behind its .cc files. Private to
// client/session.
#pragma once

#include <type_traits>

#include "client/session/session.h"

namespace slate::client {

/// The body, or the reply, of a command that has none.
struct Nothing {};

template <typename T>
std::span<const std::byte> body_of(const T& value) {
  if constexpr (std::is_empty_v<T>) {
    return {};
  } else {
    return ipc::bytes_of(value);
  }
}

template <typename Body>
Result<void> Session::post(ipc::CommandType type, const Body& body) {
  return channel_->post(type, body_of(body));
}

template <typename Body>
Result<void> Session::post_work(ipc::CommandType type, const Body& body, std::uint64_t stream,
                                std::span<const std::byte> tail, Sent* sent) {
  ipc::PlaceNote note = progress_.note_of(progress_of(stream));
  auto ok = channel_->post(type, body_of(body), tail, &note);
  if (sent != nullptr) *sent = {note.position, note.before};
  return ok;
}

template <typename Reply, typename Body>
Result<Reply> Session::call(ipc::CommandType type, const Body& body, std::string_view tail) {
  static_assert(std::is_trivially_copyable_v<Reply>);
  Reply reply{};
  std::span<std::byte> into;
  if constexpr (!std::is_empty_v<Reply>) into = std::as_writable_bytes(std::span(&reply, 1));
  auto ok = channel_->call(type, body_of(body), std::as_bytes(std::span(tail)), into);
  if (!ok) return std::unexpected(ok.error());
  return reply;
}

}  // namespace slate::client
