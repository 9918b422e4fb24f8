// Stream capture. All edges of captured graphs are plain, so that the versions of a function with
// and without data of edges mean the same.
#include <cstring>

#include "client/driver/front.h"
#include "client/session/graph_lists.h"

namespace slate::driver {
namespace {

using client::CaptureMode;
using client::CaptureState;
using client::handle_of;
using client::handles_of;

static_assert(static_cast<int>(CaptureMode::kGlobal) == CU_STREAM_CAPTURE_MODE_GLOBAL &&
              static_cast<int>(CaptureMode::kThreadLocal) == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL &&
              static_cast<int>(CaptureMode::kRelaxed) == CU_STREAM_CAPTURE_MODE_RELAXED &&
              static_cast<unsigned>(Captures::Change::kAdd) == CU_STREAM_ADD_CAPTURE_DEPENDENCIES &&
              static_cast<unsigned>(Captures::Change::kReplace) ==
                  CU_STREAM_SET_CAPTURE_DEPENDENCIES);

CaptureMode mode_of(CUstreamCaptureMode mode) {
  int number = 0;  // a program may give one that is none of the enum's
  std::memcpy(&number, &mode, sizeof(number));
  return static_cast<CaptureMode>(number);
}

CUstreamCaptureStatus status_of(CaptureState state) {
  switch (state) {
    case CaptureState::kActive:
      return CU_STREAM_CAPTURE_STATUS_ACTIVE;
    case CaptureState::kInvalid:
      return CU_STREAM_CAPTURE_STATUS_INVALIDATED;
    case CaptureState::kNone:
      break;
  }
  return CU_STREAM_CAPTURE_STATUS_NONE;
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

/// Where a program wants what is known of a capture. All but the status may be null.
struct InfoPlaces {
  CUstreamCaptureStatus* status;
  cuuint64_t* id;
  CUgraph* graph = nullptr;
  const CUgraphNode** nodes = nullptr;
  const CUgraphEdgeData** edges = nullptr;
  std::size_t* count = nullptr;
};

CUresult tell_info(CUstream stream, const InfoPlaces& to) noexcept {
  return about_capture(stream, [&](Captures& captures, std::uint64_t id) -> Answer {
    if (to.status == nullptr) return deny(CUDA_ERROR_INVALID_VALUE);
    const auto info = captures.info(id);
    if (!info) return std::unexpected<Failure>(info.error());
    *to.status = status_of(info->state);
    if (info->state != CaptureState::kActive) return {};
    if (to.id != nullptr) *to.id = info->id;
    if (to.graph != nullptr) *to.graph = handle_of<CUgraph>(info->graph);
    // A CUgraphNode is the node's address.
    if (to.nodes != nullptr) {
      *to.nodes =
          reinterpret_cast<const CUgraphNode*>(const_cast<void* const*>(info->dependencies.data()));
    }
    if (to.edges != nullptr) *to.edges = nullptr;  // all are plain
    if (to.count != nullptr) *to.count = info->dependencies.size();
    return {};
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
    const auto captured = captures.end(id);
    if (!captured) return std::unexpected<Failure>(captured.error());
    *graph = handle_of<CUgraph>(*captured);
    return {};
  });
}

CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus* status) {
  return about_capture(stream, [&](Captures& captures, std::uint64_t id) -> Answer {
    const auto state = captures.state(id);
    if (!state) return std::unexpected<Failure>(state.error());
    return give(status, status_of(*state));
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
    const auto wanted = mode_of(*mode);
    if (wanted < CaptureMode::kGlobal || wanted > CaptureMode::kRelaxed) {
      return deny(CUDA_ERROR_INVALID_VALUE);
    }
    *mode = static_cast<CUstreamCaptureMode>(slate::client::exchange_capture_mode(wanted));
    return {};
  });
}

}  // extern "C"
