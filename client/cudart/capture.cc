#include "client/cudart/capture.h"

#include <pthread.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <set>
#include <string>
#include <thread>

namespace slate::cudart {
namespace {

constexpr auto kLegacy = DefaultStream::kLegacy;
constexpr auto kPerThread = DefaultStream::kPerThread;

/// One cudaStreamBeginCapture and all streams that joined it.
struct Capture {
  unsigned long long id = 0;
  std::uint64_t origin = 0;  // a stream
  std::thread::id thread;
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  std::shared_ptr<Graph> graph;
  bool owns_graph = true;  // else cudaStreamBeginCaptureToGraph
  bool invalid = false;
  bool blocking = false;  // some stream of it takes part in the legacy default stream's order
};
using CapturePointer = std::shared_ptr<Capture>;

/// How far a stream, or an event recorded on it, has come in a capture.
struct Frontier {
  CapturePointer capture;
  std::vector<Node*> nodes;           // what the next node depends on
  std::vector<cudaGraphNode_t> told;  // of the stream's last cudaStreamGetCaptureInfo
};

/// All captures of the process. Guarded by Graphs::mutex.
struct Captures {
  std::uint64_t session = 0;  // whose streams these are
  std::map<std::uint64_t, Frontier> streams;
  std::map<cudaEvent_t, Frontier> events;
  std::set<cudaEvent_t> ended;  // last recorded in a capture that is over
  unsigned long long last_id = 0;
};

Captures& captures() {
  static Captures* const instance = new Captures;
  return *instance;
}

/// Capturing streams and captured events: 0 nearly always.
std::atomic<int> active{0};
/// Captures::ended.
std::atomic<int> ended_events{0};
thread_local cudaStreamCaptureMode thread_mode = cudaStreamCaptureModeGlobal;

void recount(const Captures& all) {
  active.store(static_cast<int>(all.streams.size() + all.events.size()));
  ended_events.store(static_cast<int>(all.ended.size()));
}

Captures& captures_of(Session& session) {
  Captures& all = captures();
  if (all.session != session.serial()) {
    all.streams.clear();
    all.events.clear();
    all.ended.clear();
    all.session = session.serial();
    recount(all);
  }
  return all;
}

Frontier* frontier_of(Session& session, std::uint64_t stream) {
  Captures& all = captures_of(session);
  const auto at = all.streams.find(stream);
  return at == all.streams.end() ? nullptr : &at->second;
}

bool is_blocking(Session& session, std::uint64_t stream) {
  const auto entry = session.streams().find(stream);
  return entry && (entry->flags & ipc::kStreamNonBlocking) == 0;
}

/// Work for the legacy default stream would have to wait for a blocking stream that captures.
bool would_break_capture(Session& session, std::uint64_t stream) {
  return stream == ipc::kDefaultStream &&
         std::ranges::any_of(captures_of(session).streams,
                             [](const auto& one) { return one.second.capture->blocking; });
}

/// The same of work that comes: what it breaks is lost.
bool breaks_capture(Session& session, std::uint64_t stream) {
  if (!would_break_capture(session, stream)) return false;
  for (auto& [id, frontier] : captures_of(session).streams) {
    if (frontier.capture->blocking) frontier.capture->invalid = true;
  }
  return true;
}

void join(Frontier& into, const std::vector<Node*>& nodes) {
  for (Node* node : nodes) {
    if (std::ranges::find(into.nodes, node) == into.nodes.end()) into.nodes.push_back(node);
  }
}

/// Forgets all that is of this capture.
void end(Captures& all, const CapturePointer& capture) {
  std::erase_if(all.streams, [&](const auto& one) { return one.second.capture == capture; });
  std::erase_if(all.events, [&](const auto& one) {
    if (one.second.capture != capture) return false;
    all.ended.insert(one.first);
    return true;
  });
  recount(all);
}

/// True when some stream of the capture did work that the origin does not wait for.
bool has_unjoined_work(const Captures& all, const CapturePointer& capture) {
  std::set<const Node*> reached;
  std::vector<const Node*> todo;
  const auto origin = all.streams.find(capture->origin);
  todo.assign(origin->second.nodes.begin(), origin->second.nodes.end());
  while (!todo.empty()) {
    const Node* node = todo.back();
    todo.pop_back();
    if (!reached.insert(node).second) continue;
    todo.insert(todo.end(), node->before.begin(), node->before.end());
  }
  for (const auto& [id, frontier] : all.streams) {
    if (frontier.capture != capture || id == capture->origin) continue;
    for (const Node* node : frontier.nodes) {
      if (!reached.contains(node)) return true;
    }
  }
  return false;
}

template <typename Body>
cudaError_t about_capture(cudaStream_t stream, DefaultStream zero, const Body& body) {
  return with_session([&](Session& session) -> Answer {
    auto id = stream_id(session, stream, zero);
    if (!id) return std::unexpected(id.error());
    const std::lock_guard lock(Graphs::get().mutex);
    return body(session, *id);
  });
}

Answer begin(Session& session, std::uint64_t stream, cudaStreamCaptureMode mode,
             std::shared_ptr<Graph> graph, std::vector<Node*> first) {
  const int number = mode;
  if (number < cudaStreamCaptureModeGlobal || number > cudaStreamCaptureModeRelaxed) {
    return deny(cudaErrorInvalidValue);
  }
  if (stream == ipc::kDefaultStream) return deny(cudaErrorStreamCaptureUnsupported);
  Captures& all = captures_of(session);
  if (all.streams.contains(stream)) return deny(cudaErrorIllegalState);
  auto capture = std::make_shared<Capture>();
  capture->id = ++all.last_id;
  capture->origin = stream;
  capture->thread = std::this_thread::get_id();
  capture->mode = mode;
  capture->owns_graph = graph == nullptr;
  capture->graph = graph ? std::move(graph) : std::make_shared<Graph>();
  capture->blocking = is_blocking(session, stream);
  all.streams[stream] = {capture, std::move(first), {}};
  recount(all);
  return {};
}

cudaError_t end_capture(cudaStream_t stream, cudaGraph_t* graph, DefaultStream zero) {
  return about_capture(stream, zero, [&](Session& session, std::uint64_t id) -> Answer {
    if (graph == nullptr) return deny(cudaErrorInvalidValue);
    *graph = nullptr;
    const Frontier* frontier = frontier_of(session, id);
    if (frontier == nullptr) return deny(cudaErrorIllegalState);
    const CapturePointer capture = frontier->capture;
    if (capture->origin != id) {
      capture->invalid = true;
      return deny(cudaErrorStreamCaptureUnmatched);
    }
    if (capture->mode != cudaStreamCaptureModeRelaxed &&
        capture->thread != std::this_thread::get_id()) {
      return deny(cudaErrorStreamCaptureWrongThread);
    }
    Captures& all = captures();
    const bool unjoined = has_unjoined_work(all, capture);
    end(all, capture);
    if (capture->invalid) return deny(cudaErrorStreamCaptureInvalidated);
    if (unjoined) return deny(cudaErrorStreamCaptureUnjoined);
    *graph = capture->owns_graph ? Graphs::get().enter(capture->graph)
                                 : reinterpret_cast<cudaGraph_t>(capture->graph.get());
    return {};
  });
}

cudaError_t tell_status(cudaStream_t stream, cudaStreamCaptureStatus* status, DefaultStream zero) {
  return about_capture(stream, zero, [&](Session& session, std::uint64_t id) -> Answer {
    if (status == nullptr) return deny(cudaErrorInvalidValue);
    if (would_break_capture(session, id)) return deny(cudaErrorStreamCaptureImplicit);
    const Frontier* frontier = frontier_of(session, id);
    *status = frontier == nullptr          ? cudaStreamCaptureStatusNone
              : frontier->capture->invalid ? cudaStreamCaptureStatusInvalidated
                                           : cudaStreamCaptureStatusActive;
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
  return about_capture(stream, zero, [&](Session& session, std::uint64_t id) -> Answer {
    if (to.status == nullptr) return deny(cudaErrorInvalidValue);
    if (would_break_capture(session, id)) return deny(cudaErrorStreamCaptureImplicit);
    Frontier* frontier = frontier_of(session, id);
    if (frontier == nullptr) {
      *to.status = cudaStreamCaptureStatusNone;
      return {};
    }
    *to.status = frontier->capture->invalid ? cudaStreamCaptureStatusInvalidated
                                            : cudaStreamCaptureStatusActive;
    if (frontier->capture->invalid) return {};
    if (to.id != nullptr) *to.id = frontier->capture->id;
    if (to.graph != nullptr) {
      // To be looked at and added to while the capture goes on.
      const auto& graph = frontier->capture->graph;
      *to.graph = frontier->capture->owns_graph ? Graphs::get().lend(graph)
                                                : reinterpret_cast<cudaGraph_t>(graph.get());
    }
    std::vector<cudaGraphNode_t>& told = frontier->told;
    told.clear();
    for (const Node* node : frontier->nodes) told.push_back(handle_of(node));
    if (to.nodes != nullptr) *to.nodes = told.data();
    if (to.edges != nullptr) *to.edges = nullptr;  // all are plain
    if (to.count != nullptr) *to.count = told.size();
    return {};
  });
}

cudaError_t set_dependencies(cudaStream_t stream, const cudaGraphNode_t* handles, std::size_t count,
                             unsigned flags, DefaultStream zero) {
  return about_capture(stream, zero, [&](Session& session, std::uint64_t id) -> Answer {
    Frontier* frontier = frontier_of(session, id);
    if (frontier == nullptr) return deny(cudaErrorIllegalState);
    if (frontier->capture->invalid) return deny(cudaErrorStreamCaptureInvalidated);
    if (flags > cudaStreamSetCaptureDependencies) return deny(cudaErrorInvalidValue);
    auto nodes = nodes_of(*frontier->capture->graph, handles, count);
    if (!nodes) return std::unexpected(nodes.error());
    if (flags == cudaStreamSetCaptureDependencies) frontier->nodes.clear();
    join(*frontier, *nodes);
    return {};
  });
}

cudaError_t begin_plain(cudaStream_t stream, cudaStreamCaptureMode mode, DefaultStream zero) {
  return about_capture(stream, zero, [&](Session& session, std::uint64_t id) -> Answer {
    return begin(session, id, mode, nullptr, {});
  });
}

cudaError_t begin_to_graph(cudaStream_t stream, cudaGraph_t graph, const cudaGraphNode_t* handles,
                           std::size_t count, cudaStreamCaptureMode mode, DefaultStream zero) {
  return about_capture(stream, zero, [&](Session& session, std::uint64_t id) -> Answer {
    auto its = Graphs::get().find(graph);
    if (!its) return deny(cudaErrorInvalidValue);
    auto first = nodes_of(*its, handles, count);
    if (!first) return std::unexpected(first.error());
    return begin(session, id, mode, std::move(its), std::move(*first));
  });
}

/// True while no capture has to do with any event.
bool no_event_captured() {
  return active.load(std::memory_order_relaxed) == 0 &&
         ended_events.load(std::memory_order_relaxed) == 0;
}

}  // namespace

bool is_capturing(Session& session, std::uint64_t stream) {
  if (active.load(std::memory_order_relaxed) == 0) [[likely]]
    return false;
  const std::lock_guard lock(Graphs::get().mutex);
  return frontier_of(session, stream) != nullptr || breaks_capture(session, stream);
}

std::optional<Answer> capture(Session& session, std::uint64_t stream, Work work) {
  if (active.load(std::memory_order_relaxed) == 0) [[likely]]
    return std::nullopt;
  const std::lock_guard lock(Graphs::get().mutex);
  if (breaks_capture(session, stream)) return deny(cudaErrorStreamCaptureImplicit);
  Frontier* frontier = frontier_of(session, stream);
  if (frontier == nullptr) return std::nullopt;
  if (frontier->capture->invalid) return deny(cudaErrorStreamCaptureInvalidated);
  if (auto ok = frontier->capture->graph->check_new(work); !ok) return ok;
  frontier->nodes = {frontier->capture->graph->add(std::move(work), frontier->nodes)};
  return Answer();
}

Answer refuse_capture(Session& session, std::uint64_t stream, const char* what) {
  {
    const std::lock_guard lock(Graphs::get().mutex);
    if (stream == ipc::kDefaultStream) return deny(cudaErrorStreamCaptureImplicit);
    if (Frontier* frontier = frontier_of(session, stream)) frontier->capture->invalid = true;
  }
  if (what == nullptr) return deny(cudaErrorStreamCaptureUnsupported);
  return std::unexpected<Failure>(
      Error{ErrorCode::kNotSupported, std::string(what) + " cannot be captured yet"});
}

std::optional<Answer> capture_record(Session& session, std::uint64_t stream, cudaEvent_t event) {
  if (no_event_captured()) [[likely]]
    return std::nullopt;
  const std::lock_guard lock(Graphs::get().mutex);
  if (breaks_capture(session, stream)) return deny(cudaErrorStreamCaptureImplicit);
  Captures& all = captures_of(session);
  const Frontier* frontier = frontier_of(session, stream);
  if (frontier == nullptr) {
    all.events.erase(event);
    all.ended.erase(event);
    recount(all);
    return std::nullopt;
  }
  if (frontier->capture->invalid) return deny(cudaErrorStreamCaptureInvalidated);
  all.events[event] = *frontier;
  all.ended.erase(event);
  recount(all);
  return Answer();
}

std::optional<Answer> capture_wait(Session& session, std::uint64_t stream, cudaEvent_t event) {
  if (no_event_captured()) [[likely]]
    return std::nullopt;
  const std::lock_guard lock(Graphs::get().mutex);
  if (breaks_capture(session, stream)) return deny(cudaErrorStreamCaptureImplicit);
  Captures& all = captures_of(session);
  if (all.ended.contains(event)) return deny(cudaErrorInvalidValue);
  const auto recorded = all.events.find(event);
  Frontier* frontier = frontier_of(session, stream);
  if (recorded == all.events.end()) {
    if (frontier == nullptr) return std::nullopt;
    frontier->capture->invalid = true;  // waits for something outside
    return deny(cudaErrorStreamCaptureIsolation);
  }
  const CapturePointer capture = recorded->second.capture;
  if (capture->invalid) return deny(cudaErrorStreamCaptureInvalidated);
  if (stream == ipc::kDefaultStream) {
    capture->invalid = true;
    return deny(cudaErrorStreamCaptureImplicit);
  }
  if (frontier == nullptr) {
    all.streams[stream] = recorded->second;
    capture->blocking |= is_blocking(session, stream);
    recount(all);
    return Answer();
  }
  if (frontier->capture != capture) {
    capture->invalid = frontier->capture->invalid = true;
    return deny(cudaErrorStreamCaptureMerge);
  }
  join(*frontier, recorded->second.nodes);
  return Answer();
}

void end_captures_of(Session& session, std::uint64_t stream) {
  if (active.load(std::memory_order_relaxed) == 0) [[likely]]
    return;
  const std::lock_guard lock(Graphs::get().mutex);
  const Frontier* frontier = frontier_of(session, stream);
  if (frontier == nullptr) return;
  const CapturePointer capture = frontier->capture;
  // What another stream's capture has of this one goes on waiting to be joined.
  if (capture->origin == stream) end(captures_of(session), capture);
}

void forget_event(Session& session, cudaEvent_t event) {
  if (no_event_captured()) return;
  const std::lock_guard lock(Graphs::get().mutex);
  Captures& all = captures_of(session);
  all.events.erase(event);
  all.ended.erase(event);
  recount(all);
}

Answer check_event(Session& session, cudaEvent_t event, Asks asks) {
  if (no_event_captured()) [[likely]]
    return {};
  const std::lock_guard lock(Graphs::get().mutex);
  const Captures& all = captures_of(session);
  if (all.ended.contains(event)) return deny(cudaErrorInvalidValue);
  const auto recorded = all.events.find(event);
  if (recorded == all.events.end()) return {};
  if (asks == Asks::kHowFar) recorded->second.capture->invalid = true;
  return deny(cudaErrorCapturedEvent);
}

Answer check_capture_allows(Session& session) {
  if (active.load(std::memory_order_relaxed) == 0) [[likely]]
    return {};
  if (thread_mode == cudaStreamCaptureModeRelaxed) return {};
  const std::lock_guard lock(Graphs::get().mutex);
  bool forbidden = false;
  for (auto& [id, frontier] : captures_of(session).streams) {
    Capture& capture = *frontier.capture;
    const bool mine = capture.thread == std::this_thread::get_id();
    // A thread in thread-local mode has only its own captures to mind.
    const bool counts = mine ? capture.mode != cudaStreamCaptureModeRelaxed
                             : capture.mode == cudaStreamCaptureModeGlobal &&
                                   thread_mode == cudaStreamCaptureModeGlobal;
    if (counts) capture.invalid = forbidden = true;
  }
  if (forbidden) return deny(cudaErrorStreamCaptureUnsupported);
  return {};
}

}  // namespace slate::cudart

using namespace slate::cudart;

extern "C" {

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  return begin_plain(stream, mode, kLegacy);
}
cudaError_t cudaStreamBeginCapture_ptsz(cudaStream_t stream, cudaStreamCaptureMode mode) {
  return begin_plain(stream, mode, kPerThread);
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
    int number = 0;
    std::memcpy(&number, mode, sizeof(number));
    if (number < cudaStreamCaptureModeGlobal || number > cudaStreamCaptureModeRelaxed) {
      return deny(cudaErrorInvalidValue);
    }
    std::swap(*mode, thread_mode);
    return {};
  });
}

}  // extern "C"
