// Call: a command as its handler gets it: parsed, and with its stream found. Reply: what a handler
// answers. The dispatcher (session_parts.h) makes both, once a command.
//
// A handler is a function on(const Call<type>&) of one part of the session. The row in
// ipc/commands.h says which body it gets; a row that no part handles, or that two do, does not
// compile.
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "base/result.h"
#include "daemon/engine/held_commands.h"
#include "daemon/engine/stream_order.h"
#include "ipc/commands.h"
#include "ipc/segment.h"

namespace slate::daemon {

/// At most one payload.
struct Reply {
  std::array<std::byte, ipc::kReplyPayloadBytes> bytes;
  std::size_t size = 0;
  bool deferred = false;    // the completer answers later
  bool unfinished = false;  // the command's place in its stream is not passed yet

  template <typename T>
  void set(const T& value) {
    static_assert(sizeof(T) <= ipc::kReplyPayloadBytes);
    __builtin_memcpy(bytes.data(), &value, sizeof(T));
    size = sizeof(T);
  }
};

/// What the dispatcher knows of the command that is carried out.
struct Present {
  LogicalStream* stream = nullptr;  // null: the command is about none
  Reply reply;
};

template <ipc::CommandType kType>
struct Call {
  const ipc::CommandHeader& header;
  const ipc::BodyOf<kType>& body;
  std::span<const std::byte> tail;  // the bytes behind the body
  LogicalStream* stream;            // null for a command that is about none
  const HeldCommands::Kept* kept;   // null for a command that was not kept
  Reply& reply;
};

}  // namespace slate::daemon
