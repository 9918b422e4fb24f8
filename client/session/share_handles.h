// Handles of memory and events that processes share, as bytes in the handles of CUDA's APIs.
#pragma once

#include <cstring>

#include "ipc/commands.h"

namespace slate::client {

template <typename Handle>
ipc::ShareHandle share_of(const Handle& handle) {
  ipc::ShareHandle share{};
  static_assert(sizeof(handle.reserved) == sizeof(share.bytes));
  std::memcpy(share.bytes, handle.reserved, sizeof(share.bytes));
  return share;
}
template <typename Handle>
Handle handle_with(const ipc::ShareHandle& share) {
  Handle handle{};
  static_assert(sizeof(handle.reserved) == sizeof(share.bytes));
  std::memcpy(handle.reserved, share.bytes, sizeof(share.bytes));
  return handle;
}

}  // namespace slate::client
