// Call: a command as its handler gets it: parsed, and with its stream found. Reply: the handler's
// answer. The dispatcher (session_parts.h) makes both, once for each command.
//
// A handler is a function on(const Call<type>&) of one part of the session. The row in
// ipc/commands.h names its body. A row with no handler, or with two, does not compile.
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

/// The answer to a command, with one payload at most.
struct Reply {
  std::array<std::byte, ipc::kReplyPayloadBytes> bytes;
  std::size_t size = 0;
  bool deferred = false;    // whether the completer answers later
  bool unfinished = false;  // whether the command's place in its stream is not passed yet

  template <typename T>
  void set(const T& value) {
    static_assert(sizeof(T) <= ipc::kReplyPayloadBytes);
    __builtin_memcpy(bytes.data(), &value, sizeof(T));
    size = sizeof(T);
  }
};

/// What the dispatcher knows of the present command.
struct Present {
  LogicalStream* stream = nullptr;  // null: the command has no stream
  Reply reply;
};

template <ipc::CommandType kType>
struct Call {
  const ipc::CommandHeader& header;
  const ipc::BodyOf<kType>& body;
  std::span<const std::byte> tail;  // bytes behind the body
  LogicalStream* stream;            // null: the command has no stream
  const HeldCommands::Kept* kept;   // null: the command was not kept
  Reply& reply;
};

}  // namespace slate::daemon
