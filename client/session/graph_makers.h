// Makers of graph nodes' work from what programs pass: (Session&) -> Allowed<Work>. CUDA's APIs
// have structs with members of the same names. Requires: the caller does not hold Graphs::mutex.
#pragma once

#include <cstdint>
#include <utility>

#include "client/session/graph_shape.h"
#include "client/session/graph_work.h"
#include "client/session/numbers.h"
#include "client/session/pools.h"
#include "client/session/program_streams.h"

namespace slate::client {

inline auto empty_maker() {
  return [](Session&) -> Allowed<Work> { return EmptyNode{}; };
}
/// `EventNode`: RecordNode or WaitNode. `event`: a handle.
template <typename EventNode>
auto event_maker(const void* event) {
  return [event](Session& session) -> Allowed<Work> {
    const auto id = event_of(session, address_of(event));
    if (!id) return std::unexpected(id.error());
    return EventNode{*id};
  };
}
/// Makes a copy of the graph as it is now.
inline auto child_maker(GraphHandle child) {
  return [child](Session&) { return child_work(child); };
}
/// Allocates, and writes the address to the params.
template <typename Params>
auto allocate_maker(Params* params) {
  return [params](Session& session) -> Allowed<Work> {
    if (params == nullptr) return refuse(Refusal::kInvalidValue);
    if (auto ok = check_pool(params->poolProps); !ok) return std::unexpected(ok.error());
    auto work = allocate_work(session, params->bytesize);
    if (!work) return work;
    using Address = decltype(params->dptr);
    params->dptr = address_as<Address>(std::get<AllocateNode>(*work).memory->address());
    return work;
  };
}
/// `address`: a pointer or a number.
template <typename Address>
auto free_maker(Address address) {
  return [address](Session& session) { return free_work(session, address_of(address)); };
}

/// Work of any kind but an allocation, from the struct that has all kinds. `work_of` makes that of
/// kernels, copies, fills and child graphs from their parts of it.
template <typename Params, typename WorkOf>
auto any_work(Session& session, const Params& params, const WorkOf& work_of)
    -> decltype(work_of(params.kernel)) {
  switch (static_cast<NodeKind>(number_of(params.type))) {
    case NodeKind::kKernel:
      return work_of(params.kernel);
    case NodeKind::kCopy:
      return work_of(params.memcpy);
    case NodeKind::kFill:
      return work_of(params.memset);
    case NodeKind::kHost:
      return host_work(params.host.fn, params.host.userData);
    case NodeKind::kChild:
      return work_of(params.graph);
    case NodeKind::kFree:
      return free_maker(params.free.dptr)(session);
    case NodeKind::kEmpty:
      return EmptyNode{};
    case NodeKind::kRecord:
      return event_maker<RecordNode>(params.eventRecord.event)(session);
    case NodeKind::kWait:
      return event_maker<WaitNode>(params.eventWait.event)(session);
    case NodeKind::kAllocate:
      break;
  }
  return std::unexpected<Refused>(
      Error{ErrorCode::kNotSupported, "this type of graph node is not supported yet"});
}

}  // namespace slate::client
