// Stream capture.
#include <cstring>

#include "client/cudart/graph_handles.h"

namespace slate::cudart {
namespace {

using client::CaptureMode;
using client::CaptureState;

static_assert(static_cast<int>(CaptureMode::kGlobal) == cudaStreamCaptureModeGlobal &&
              static_cast<int>(CaptureMode::kThreadLocal) == cudaStreamCaptureModeThreadLocal &&
              static_cast<int>(CaptureMode::kRelaxed) == cudaStreamCaptureModeRelaxed &&
              static_cast<unsigned>(Captures::Change::kAdd) == cudaStreamAddCaptureDependencies &&
              static_cast<unsigned>(Captures::Change::kReplace) ==
                  cudaStreamSetCaptureDependencies);

CaptureMode mode_of(cudaStreamCaptureMode mode) {
  int number = 0;  // a program may give one that is none of the enum's
  std::memcpy(&number, &mode, sizeof(number));
  return static_cast<CaptureMode>(number);
}

cudaStreamCaptureStatus status_of(CaptureState state) {
  switch (state) {
    case CaptureState::kActive:
      return cudaStreamCaptureStatusActive;
    case CaptureState::kInvalid:
      return cudaStreamCaptureStatusInvalidated;
    case CaptureState::kNone:
      break;
  }
  return cudaStreamCaptureStatusNone;
}

/// Runs `body`, a (Captures&, std::uint64_t stream) -> Answer.
template <typename Body>
cudaError_t about_capture(cudaStream_t stream, DefaultStream zero, const Body& body) {
  return with_session([&](Session& session) -> Answer {
    const auto id = stream_id(session, stream, zero);
    if (!id) return std::unexpected(id.error());
    return body(session.captures(), *id);
  });
}

cudaError_t begin(cudaStream_t stream, cudaStreamCaptureMode mode, DefaultStream zero) {
  return about_capture(stream, zero, [&](Captures& captures, std::uint64_t id) -> Answer {
    return captures.begin(id, mode_of(mode));
  });
}

cudaError_t begin_to_graph(cudaStream_t stream, cudaGraph_t graph, const cudaGraphNode_t* nodes,
                           std::size_t count, cudaStreamCaptureMode mode, DefaultStream zero) {
  return about_capture(stream, zero, [&](Captures& captures, std::uint64_t id) -> Answer {
    return captures.begin_in(id, mode_of(mode), graph, handles_of(nodes, count));
  });
}

cudaError_t end_capture(cudaStream_t stream, cudaGraph_t* graph, DefaultStream zero) {
  return about_capture(stream, zero, [&](Captures& captures, std::uint64_t id) -> Answer {
    if (graph == nullptr) return deny(cudaErrorInvalidValue);
    *graph = nullptr;
    const auto captured = captures.end(id);
    if (!captured) return std::unexpected<Failure>(captured.error());
    *graph = handle_of<cudaGraph_t>(*captured);
    return {};
  });
}

cudaError_t tell_status(cudaStream_t stream, cudaStreamCaptureStatus* status, DefaultStream zero) {
  return about_capture(stream, zero, [&](Captures& captures, std::uint64_t id) -> Answer {
    if (status == nullptr) return deny(cudaErrorInvalidValue);
    const auto state = captures.state(id);
    if (!state) return std::unexpected<Failure>(state.error());
    *status = status_of(*state);
    return {};
  });
}

struct InfoPlaces {
  cudaStreamCaptureStatus* status;
  unsigned long long* id;
  cudaGraph_t* graph;
  const cudaGraphNode_t** nodes;
  const cudaGraphEdgeData** edges;
  std::size_t* count;
};

cudaError_t tell_info(cudaStream_t stream, const InfoPlaces& to, DefaultStream zero) {
  return about_capture(stream, zero, [&](Captures& captures, std::uint64_t id) -> Answer {
    if (to.status == nullptr) return deny(cudaErrorInvalidValue);
    const auto info = captures.info(id);
    if (!info) return std::unexpected<Failure>(info.error());
    *to.status = status_of(info->state);
    if (info->state != CaptureState::kActive) return {};
    if (to.id != nullptr) *to.id = info->id;
    if (to.graph != nullptr) *to.graph = handle_of<cudaGraph_t>(info->graph);
    // A cudaGraphNode_t is the node's address.
    if (to.nodes != nullptr) {
      *to.nodes = reinterpret_cast<const cudaGraphNode_t*>(
          const_cast<void* const*>(info->dependencies.data()));
    }
    if (to.edges != nullptr) *to.edges = nullptr;  // all are plain
    if (to.count != nullptr) *to.count = info->dependencies.size();
    return {};
  });
}

cudaError_t set_dependencies(cudaStream_t stream, const cudaGraphNode_t* nodes, std::size_t count,
                             unsigned flags, DefaultStream zero) {
  return about_capture(stream, zero, [&](Captures& captures, std::uint64_t id) -> Answer {
    const auto change = static_cast<Captures::Change>(flags);
    return captures.set_dependencies(id, handles_of(nodes, count), change);
  });
}

}  // namespace
}  // namespace slate::cudart

using namespace slate::cudart;

extern "C" {

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  return begin(stream, mode, kLegacy);
}
cudaError_t cudaStreamBeginCapture_ptsz(cudaStream_t stream, cudaStreamCaptureMode mode) {
  return begin(stream, mode, kPerThread);
}
cudaError_t cudaStreamBeginCaptureToGraph(cudaStream_t stream, cudaGraph_t graph,
                                          const cudaGraphNode_t* nodes, const cudaGraphEdgeData*,
                                          std::size_t count, cudaStreamCaptureMode mode) {
  return begin_to_graph(stream, graph, nodes, count, mode, kLegacy);
}
cudaError_t cudaStreamBeginCaptureToGraph_ptsz(cudaStream_t stream, cudaGraph_t graph,
                                               const cudaGraphNode_t* nodes,
                                               const cudaGraphEdgeData*, std::size_t count,
                                               cudaStreamCaptureMode mode) {
  return begin_to_graph(stream, graph, nodes, count, mode, kPerThread);
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  return end_capture(stream, graph, kLegacy);
}
cudaError_t cudaStreamEndCapture_ptsz(cudaStream_t stream, cudaGraph_t* graph) {
  return end_capture(stream, graph, kPerThread);
}
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  return tell_status(stream, status, kLegacy);
}
cudaError_t cudaStreamIsCapturing_ptsz(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  return tell_status(stream, status, kPerThread);
}
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                     unsigned long long* id, cudaGraph_t* graph,
                                     const cudaGraphNode_t** nodes, const cudaGraphEdgeData** edges,
                                     std::size_t* count) {
  return tell_info(stream, {status, id, graph, nodes, edges, count}, kLegacy);
}
cudaError_t cudaStreamGetCaptureInfo_ptsz(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                          unsigned long long* id, cudaGraph_t* graph,
                                          const cudaGraphNode_t** nodes,
                                          const cudaGraphEdgeData** edges, std::size_t* count) {
  return tell_info(stream, {status, id, graph, nodes, edges, count}, kPerThread);
}
cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t stream, cudaGraphNode_t* nodes,
                                                const cudaGraphEdgeData*, std::size_t count,
                                                unsigned flags) {
  return set_dependencies(stream, nodes, count, flags, kLegacy);
}
cudaError_t cudaStreamUpdateCaptureDependencies_ptsz(cudaStream_t stream, cudaGraphNode_t* nodes,
                                                     const cudaGraphEdgeData*, std::size_t count,
                                                     unsigned flags) {
  return set_dependencies(stream, nodes, count, flags, kPerThread);
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  return answer([&]() -> Answer {
    if (mode == nullptr) return deny(cudaErrorInvalidValue);
    const auto wanted = mode_of(*mode);
    if (wanted < CaptureMode::kGlobal || wanted > CaptureMode::kRelaxed) {
      return deny(cudaErrorInvalidValue);
    }
    *mode = static_cast<cudaStreamCaptureMode>(slate::client::exchange_capture_mode(wanted));
    return {};
  });
}

}  // extern "C"
