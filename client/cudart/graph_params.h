// From the parameters of graph nodes, in CUDA runtime's structs, to the node's work, and back.
// Makers are (Session&) -> Maybe<Work>. Requires: the caller does not hold Graphs::mutex.
#pragma once

#include "client/cudart/box.h"
#include "client/cudart/front.h"
#include "client/cudart/graph_handles.h"
#include "client/session/graph_makers.h"

namespace slate::cudart {

using client::allocate_maker;
using client::child_maker;
using client::event_maker;
using client::free_maker;
using client::Work;

Maybe<Work> work_of(Session& session, const cudaKernelNodeParams& params);
Maybe<Work> work_of(Session& session, const cudaMemcpy3DParms& params);
Maybe<Work> work_of(Session& session, const cudaMemsetParams& params);
Maybe<Work> work_of(Session& session, const cudaHostNodeParams& params);
/// Work of any kind, except a node that allocates.
Maybe<Work> work_of(Session& session, const cudaGraphNodeParams& params);

/// Of one of the structs above.
template <typename Params>
auto maker(const Params* params) {
  return [params](Session& session) -> Maybe<Work> {
    if (params == nullptr) return deny(cudaErrorInvalidValue);
    return work_of(session, *params);
  };
}
inline auto line_maker(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  return [=](Session& session) -> Maybe<Work> {
    return client::copy_work(session, client::line_copy(to, from, bytes, direction_of(kind)));
  };
}

}  // namespace slate::cudart
