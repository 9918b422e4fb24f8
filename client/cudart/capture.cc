// Stream capture.
#include "client/cudart/graph_handles.h"

namespace slate::cudart {
namespace {

using client::CaptureMode;
using client::CaptureState;

static_assert(static_cast<int>(CaptureMode::kGlobal) == cudaStreamCaptureModeGlobal &&
              static_cast<int>(CaptureMode::kThreadLocal) == cudaStreamCaptureModeThreadLocal &&
              static_cast<int>(CaptureMode::kRelaxed) == cudaStreamCaptureModeRelaxed &&
              static_cast<int>(CaptureState::kActive) == cudaStreamCaptureStatusActive &&
              static_cast<int>(CaptureState::kInvalid) == cudaStreamCaptureStatusInvalidated &&
              static_cast<unsigned>(Captures::Change::kAdd) == cudaStreamAddCaptureDependencies &&
              static_cast<unsigned>(Captures::Change::kReplace) ==
                  cudaStreamSetCaptureDependencies);

CaptureMode mode_of(const cudaStreamCaptureMode& mode) {
  return static_cast<CaptureMode>(number_of(mode));
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
    return client::hand_over(graph, captures.end(id));
  });
}

cudaError_t tell_status(cudaStream_t stream, cudaStreamCaptureStatus* status, DefaultStream zero) {
  return about_capture(stream, zero, [&](Captures& captures, std::uint64_t id) -> Answer {
    if (status == nullptr) return deny(cudaErrorInvalidValue);
    return give(status, captures.state(id));
  });
}

using InfoPlaces = client::CapturePlaces<cudaStreamCaptureStatus, unsigned long long, cudaGraph_t,
                                         cudaGraphNode_t, cudaGraphEdgeData>;

cudaError_t tell_info(cudaStream_t stream, const InfoPlaces& to, DefaultStream zero) {
  return about_capture(stream, zero, [&](Captures& captures, std::uint64_t id) -> Answer {
    return client::tell_capture(captures, id, to);
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
    return give(mode, slate::client::exchange_capture_mode(mode_of(*mode)));
  });
}

}  // extern "C"
