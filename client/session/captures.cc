#include "client/session/captures.h"

#include <algorithm>

#include "ipc/commands.h"

namespace slate::client {
namespace {

thread_local CaptureMode thread_mode = CaptureMode::kGlobal;

template <typename Frontier>
void join(Frontier& into, const std::vector<Node*>& nodes) {
  for (Node* node : nodes) {
    if (std::ranges::find(into.nodes, node) == into.nodes.end()) into.nodes.push_back(node);
  }
}

/// Whether the stream takes part in the default stream's order.
bool is_blocking(const HandleTable& streams, std::uint64_t stream) {
  const auto entry = streams.find(stream);
  return entry && (entry->flags & ipc::kStreamNonBlocking) == 0;
}

std::uint64_t next_capture_id() {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

}  // namespace

/// One beginning and all streams that joined it.
struct Captures::Capture {
  std::uint64_t id = next_capture_id();
  std::uint64_t origin = 0;  // a stream
  std::thread::id thread = std::this_thread::get_id();
  CaptureMode mode = CaptureMode::kGlobal;
  std::shared_ptr<Graph> graph;
  bool owns_graph = true;  // else the graph is the program's
  bool invalid = false;
  bool blocking = false;  // some stream of it takes part in the default stream's order
};

void Captures::recount() {
  active_.store(static_cast<int>(frontiers_.size() + events_.size()));
  ended_events_.store(static_cast<int>(ended_.size()));
}

Captures::Frontier* Captures::frontier_of(std::uint64_t stream) {
  const auto at = frontiers_.find(stream);
  return at == frontiers_.end() ? nullptr : &at->second;
}

/// Work for the default stream would have to wait for a blocking stream that captures.
bool Captures::would_break(std::uint64_t stream) const {
  return stream == ipc::kDefaultStream && std::ranges::any_of(frontiers_, [](const auto& one) {
           return one.second.capture->blocking;
         });
}

/// The same of work that comes: what it breaks is lost.
bool Captures::breaks(std::uint64_t stream) {
  if (!would_break(stream)) return false;
  for (auto& [id, frontier] : frontiers_) {
    if (frontier.capture->blocking) frontier.capture->invalid = true;
  }
  return true;
}

/// Forgets all that is of this capture.
void Captures::forget(const CapturePointer& capture) {
  std::erase_if(frontiers_, [&](const auto& one) { return one.second.capture == capture; });
  std::erase_if(events_, [&](const auto& one) {
    if (one.second.capture != capture) return false;
    ended_.insert(one.first);
    return true;
  });
  recount();
}

/// True when some stream of the capture did work that the origin does not wait for.
bool Captures::has_unjoined_work(const CapturePointer& capture) const {
  std::set<const Node*> reached;
  const auto& last = frontiers_.at(capture->origin).nodes;
  std::vector<const Node*> todo(last.begin(), last.end());
  while (!todo.empty()) {
    const Node* node = todo.back();
    todo.pop_back();
    if (!reached.insert(node).second) continue;
    todo.insert(todo.end(), node->before.begin(), node->before.end());
  }
  for (const auto& [id, frontier] : frontiers_) {
    if (frontier.capture != capture || id == capture->origin) continue;
    for (const Node* node : frontier.nodes) {
      if (!reached.contains(node)) return true;
    }
  }
  return false;
}

bool Captures::takes_slowly(std::uint64_t stream) {
  const MutexLock lock(Graphs::get().mutex);
  return frontier_of(stream) != nullptr || breaks(stream);
}

std::optional<Allowed<void>> Captures::add(std::uint64_t stream, Work work) {
  if (active_.load(std::memory_order_relaxed) == 0) [[likely]]
    return std::nullopt;
  const MutexLock lock(Graphs::get().mutex);
  if (breaks(stream)) return refuse(Refusal::kCaptureImplicit);
  Frontier* frontier = frontier_of(stream);
  if (frontier == nullptr) return std::nullopt;
  if (frontier->capture->invalid) return refuse(Refusal::kCaptureInvalid);
  if (auto ok = frontier->capture->graph->check_new(work); !ok) return ok;
  frontier->nodes = {frontier->capture->graph->add(std::move(work), frontier->nodes)};
  return Allowed<void>();
}

std::unexpected<Refused> Captures::refuse_work(std::uint64_t stream) {
  const MutexLock lock(Graphs::get().mutex);
  if (stream == ipc::kDefaultStream) return refuse(Refusal::kCaptureImplicit);
  if (Frontier* frontier = frontier_of(stream)) frontier->capture->invalid = true;
  return refuse(Refusal::kCaptureRefused);
}

std::optional<Allowed<void>> Captures::record(std::uint64_t stream, std::uint64_t event) {
  if (no_event_captured()) [[likely]]
    return std::nullopt;
  const MutexLock lock(Graphs::get().mutex);
  if (breaks(stream)) return refuse(Refusal::kCaptureImplicit);
  const Frontier* frontier = frontier_of(stream);
  if (frontier == nullptr) {
    events_.erase(event);
    ended_.erase(event);
    recount();
    return std::nullopt;
  }
  if (frontier->capture->invalid) return refuse(Refusal::kCaptureInvalid);
  events_[event] = *frontier;
  ended_.erase(event);
  recount();
  return Allowed<void>();
}

std::optional<Allowed<void>> Captures::wait(std::uint64_t stream, std::uint64_t event) {
  if (no_event_captured()) [[likely]]
    return std::nullopt;
  const MutexLock lock(Graphs::get().mutex);
  if (breaks(stream)) return refuse(Refusal::kCaptureImplicit);
  if (ended_.contains(event)) return refuse(Refusal::kInvalidValue);
  const auto recorded = events_.find(event);
  Frontier* frontier = frontier_of(stream);
  if (recorded == events_.end()) {
    if (frontier == nullptr) return std::nullopt;
    frontier->capture->invalid = true;  // waits for something outside
    return refuse(Refusal::kCaptureIsolation);
  }
  const CapturePointer capture = recorded->second.capture;
  if (capture->invalid) return refuse(Refusal::kCaptureInvalid);
  if (stream == ipc::kDefaultStream) {
    capture->invalid = true;
    return refuse(Refusal::kCaptureImplicit);
  }
  if (frontier == nullptr) {
    frontiers_[stream] = recorded->second;
    capture->blocking |= is_blocking(streams_, stream);
    recount();
    return Allowed<void>();
  }
  if (frontier->capture != capture) {
    capture->invalid = frontier->capture->invalid = true;
    return refuse(Refusal::kCaptureMerge);
  }
  join(*frontier, recorded->second.nodes);
  return Allowed<void>();
}

Allowed<void> Captures::check_event(std::uint64_t event, Asks asks) {
  if (no_event_captured()) [[likely]]
    return {};
  const MutexLock lock(Graphs::get().mutex);
  if (ended_.contains(event)) return refuse(Refusal::kInvalidValue);
  const auto recorded = events_.find(event);
  if (recorded == events_.end()) return {};
  if (asks == Asks::kHowFar) recorded->second.capture->invalid = true;
  return refuse(Refusal::kCapturedEvent);
}

Allowed<void> Captures::check_allows() {
  if (active_.load(std::memory_order_relaxed) == 0) [[likely]]
    return {};
  if (thread_mode == CaptureMode::kRelaxed) return {};
  const MutexLock lock(Graphs::get().mutex);
  bool forbidden = false;
  for (auto& [id, frontier] : frontiers_) {
    Capture& capture = *frontier.capture;
    const bool mine = capture.thread == std::this_thread::get_id();
    // A thread in thread-local mode has only its own captures to mind.
    const bool counts =
        mine ? capture.mode != CaptureMode::kRelaxed
             : capture.mode == CaptureMode::kGlobal && thread_mode == CaptureMode::kGlobal;
    if (counts) capture.invalid = forbidden = true;
  }
  if (forbidden) return refuse(Refusal::kCaptureRefused);
  return {};
}

Allowed<CaptureMode> exchange_capture_mode(CaptureMode mode) {
  if (mode < CaptureMode::kGlobal || mode > CaptureMode::kRelaxed)
    return refuse(Refusal::kInvalidValue);
  return std::exchange(thread_mode, mode);
}

void Captures::stream_ends(std::uint64_t stream) {
  if (active_.load(std::memory_order_relaxed) == 0) [[likely]]
    return;
  const MutexLock lock(Graphs::get().mutex);
  const Frontier* frontier = frontier_of(stream);
  if (frontier == nullptr) return;
  const CapturePointer capture = frontier->capture;
  // What another stream's capture has of this one goes on waiting to be joined.
  if (capture->origin == stream) forget(capture);
}

void Captures::event_ends(std::uint64_t event) {
  if (no_event_captured()) return;
  const MutexLock lock(Graphs::get().mutex);
  events_.erase(event);
  ended_.erase(event);
  recount();
}

/// Requires: Graphs::mutex is held.
Allowed<void> Captures::start(std::uint64_t stream, CaptureMode mode, std::shared_ptr<Graph> graph,
                              std::vector<Node*> first) {
  if (mode < CaptureMode::kGlobal || mode > CaptureMode::kRelaxed) {
    return refuse(Refusal::kInvalidValue);
  }
  if (stream == ipc::kDefaultStream) return refuse(Refusal::kCaptureRefused);
  if (frontiers_.contains(stream)) return refuse(Refusal::kIllegalState);
  auto capture = std::make_shared<Capture>();
  capture->origin = stream;
  capture->mode = mode;
  capture->owns_graph = graph == nullptr;
  capture->graph = graph ? std::move(graph) : std::make_shared<Graph>();
  capture->blocking = is_blocking(streams_, stream);
  frontiers_[stream] = {std::move(capture), std::move(first), {}};
  recount();
  return {};
}

Allowed<void> Captures::begin(std::uint64_t stream, CaptureMode mode) {
  const MutexLock lock(Graphs::get().mutex);
  return start(stream, mode, nullptr, {});
}

Allowed<void> Captures::begin_in(std::uint64_t stream, CaptureMode mode, GraphHandle graph,
                                 std::span<const NodeHandle> first) {
  const MutexLock lock(Graphs::get().mutex);
  auto its = Graphs::get().find(graph);
  if (!its) return refuse(Refusal::kInvalidValue);
  auto nodes = Graphs::get().find_nodes(*its, first);
  if (!nodes) return std::unexpected(nodes.error());
  return start(stream, mode, std::move(its), std::move(*nodes));
}

Allowed<GraphHandle> Captures::end(std::uint64_t stream) {
  const MutexLock lock(Graphs::get().mutex);
  const Frontier* frontier = frontier_of(stream);
  if (frontier == nullptr) return refuse(Refusal::kIllegalState);
  const CapturePointer capture = frontier->capture;
  if (capture->origin != stream) {
    capture->invalid = true;
    return refuse(Refusal::kCaptureUnmatched);
  }
  if (capture->mode != CaptureMode::kRelaxed && capture->thread != std::this_thread::get_id()) {
    return refuse(Refusal::kCaptureWrongThread);
  }
  const bool unjoined = has_unjoined_work(capture);
  forget(capture);
  if (capture->invalid) return refuse(Refusal::kCaptureInvalid);
  if (unjoined) return refuse(Refusal::kCaptureUnjoined);
  if (capture->owns_graph) return Graphs::get().enter(capture->graph);
  return capture->graph.get();
}

Allowed<CaptureState> Captures::state(std::uint64_t stream) {
  const MutexLock lock(Graphs::get().mutex);
  if (would_break(stream)) return refuse(Refusal::kCaptureImplicit);
  const Frontier* frontier = frontier_of(stream);
  if (frontier == nullptr) return CaptureState::kNone;
  return frontier->capture->invalid ? CaptureState::kInvalid : CaptureState::kActive;
}

Allowed<Captures::Info> Captures::info(std::uint64_t stream) {
  const MutexLock lock(Graphs::get().mutex);
  if (would_break(stream)) return refuse(Refusal::kCaptureImplicit);
  Frontier* frontier = frontier_of(stream);
  if (frontier == nullptr) return Info{};
  const Capture& capture = *frontier->capture;
  if (capture.invalid) return Info{CaptureState::kInvalid, 0, nullptr, {}};
  frontier->told.assign(frontier->nodes.begin(), frontier->nodes.end());
  const GraphHandle graph =
      capture.owns_graph ? Graphs::get().lend(capture.graph) : capture.graph.get();
  return Info{CaptureState::kActive, capture.id, graph, frontier->told};
}

Allowed<void> Captures::set_dependencies(std::uint64_t stream, std::span<const NodeHandle> handles,
                                         Change change) {
  const MutexLock lock(Graphs::get().mutex);
  Frontier* frontier = frontier_of(stream);
  if (frontier == nullptr) return refuse(Refusal::kIllegalState);
  if (frontier->capture->invalid) return refuse(Refusal::kCaptureInvalid);
  if (change > Change::kReplace) return refuse(Refusal::kInvalidValue);
  auto nodes = Graphs::get().find_nodes(*frontier->capture->graph, handles);
  if (!nodes) return std::unexpected(nodes.error());
  if (change == Change::kReplace) frontier->nodes.clear();
  join(*frontier, *nodes);
  return {};
}

}  // namespace slate::client
