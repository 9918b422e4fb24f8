// Stream capture. All edges of captured graphs are plain, so that the versions of a function with
// and without data of edges mean the same.
#include "client/driver/front.h"
#include "client/session/graph_lists.h"

namespace slate::driver {
namespace {

using client::CaptureMode;
using client::CaptureState;
using client::handles_of;

static_assert(static_cast<int>(CaptureMode::kGlobal) == CU_STREAM_CAPTURE_MODE_GLOBAL &&
              static_cast<int>(CaptureMode::kThreadLocal) == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL &&
              static_cast<int>(CaptureMode::kRelaxed) == CU_STREAM_CAPTURE_MODE_RELAXED &&
              static_cast<int>(CaptureState::kActive) == CU_STREAM_CAPTURE_STATUS_ACTIVE &&
              static_cast<int>(CaptureState::kInvalid) == CU_STREAM_CAPTURE_STATUS_INVALIDATED &&
              static_cast<unsigned>(Captures::Change::kAdd) == CU_STREAM_ADD_CAPTURE_DEPENDENCIES &&
              static_cast<unsigned>(Captures::Change::kReplace) ==
                  CU_STREAM_SET_CAPTURE_DEPENDENCIES);

CaptureMode mode_of(const CUstreamCaptureMode& mode) {
  return static_cast<CaptureMode>(number_of(mode));
}

/// Runs `body`, a (Captures&, std::uint64_t stream) -> Answer.
template <typename Body>
CUresult about_capture(CUstream stream, const Body& body,
                       const char* name = __builtin_FUNCTION()) noexcept {
  return with_session(
      [&](Session& session) -> Answer {
        const auto id = stream_id(session, stream);
        if (!id) return std::unexpected(id.error());
        return body(session.captures(), *id);
      },
      name);
}

CUresult begin(CUstream stream, CUstreamCaptureMode mode) noexcept {
  return about_capture(stream, [&](Captures& captures, std::uint64_t id) -> Answer {
    return captures.begin(id, mode_of(mode));
  });
}

using InfoPlaces =
    client::CapturePlaces<CUstreamCaptureStatus, cuuint64_t, CUgraph, CUgraphNode, CUgraphEdgeData>;

CUresult tell_info(CUstream stream, const InfoPlaces& to) noexcept {
  return about_capture(stream, [&](Captures& captures, std::uint64_t id) -> Answer {
    return client::tell_capture(captures, id, to);
  });
}

CUresult set_dependencies(CUstream stream, const CUgraphNode* nodes, std::size_t count,
                          unsigned flags) noexcept {
  return about_capture(stream, [&](Captures& captures, std::uint64_t id) -> Answer {
    const auto change = static_cast<Captures::Change>(flags);
    return captures.set_dependencies(id, handles_of(nodes, count), change);
  });
}

}  // namespace
}  // namespace slate::driver

using namespace slate::driver;

extern "C" {

CUresult cuStreamBeginCapture(CUstream stream) {
  return begin(stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
}
CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode) {
  return begin(stream, mode);
}
CUresult cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph, const CUgraphNode* nodes,
                                     const CUgraphEdgeData*, std::size_t count,
                                     CUstreamCaptureMode mode) {
  return about_capture(stream, [&](Captures& captures, std::uint64_t id) -> Answer {
    return captures.begin_in(id, mode_of(mode), graph, handles_of(nodes, count));
  });
}
CUresult cuStreamEndCapture(CUstream stream, CUgraph* graph) {
  return about_capture(stream, [&](Captures& captures, std::uint64_t id) -> Answer {
    if (graph == nullptr) return deny(CUDA_ERROR_INVALID_VALUE);
    *graph = nullptr;
    return slate::client::hand_over(graph, captures.end(id));
  });
}

CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus* status) {
  return about_capture(stream, [&](Captures& captures, std::uint64_t id) -> Answer {
    return give(status, captures.state(id));
  });
}
CUresult cuStreamGetCaptureInfo(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id) {
  return tell_info(stream, {status, id});
}
CUresult cuStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id,
                                   CUgraph* graph, const CUgraphNode** nodes, std::size_t* count) {
  return tell_info(stream, {status, id, graph, nodes, nullptr, count});
}
CUresult cuStreamGetCaptureInfo_v3(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id,
                                   CUgraph* graph, const CUgraphNode** nodes,
                                   const CUgraphEdgeData** edges, std::size_t* count) {
  return tell_info(stream, {status, id, graph, nodes, edges, count});
}

CUresult cuStreamUpdateCaptureDependencies(CUstream stream, CUgraphNode* nodes, std::size_t count,
                                           unsigned flags) {
  return set_dependencies(stream, nodes, count, flags);
}
CUresult cuStreamUpdateCaptureDependencies_v2(CUstream stream, CUgraphNode* nodes,
                                              const CUgraphEdgeData*, std::size_t count,
                                              unsigned flags) {
  return set_dependencies(stream, nodes, count, flags);
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  return initialised([&]() -> Answer {
    if (mode == nullptr) return deny(CUDA_ERROR_INVALID_VALUE);
    return give(mode, slate::client::exchange_capture_mode(mode_of(*mode)));
  });
}

}  // extern "C"
