// Captures: work that the program sends to a capturing stream becomes a node of a graph instead.
// The calls that can be captured ask here first. While no stream captures, that is one atomic load.
// Thread-safe: guarded by Graphs::mutex.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "client/session/graph.h"
#include "client/session/handle_table.h"
#include "client/session/refused.h"

namespace slate::client {

/// Whose unsafe calls a capture forbids: all threads', its own thread's, none. Programs pass any
/// number.
enum class CaptureMode : int { kGlobal = 0, kThreadLocal = 1, kRelaxed = 2 };
/// Numbered as in all of CUDA's APIs.
enum class CaptureState : int { kNone = 0, kActive = 1, kInvalid = 2 };

/// Sets this thread's mode, and returns the one before. kInvalidValue for a number that is none.
Allowed<CaptureMode> exchange_capture_mode(CaptureMode mode);

class Captures {
 public:
  /// `streams` knows which streams take part in the default stream's order.
  explicit Captures(const HandleTable& streams) : streams_(streams) {}

  // Work of the program, on its way to a stream.
  /// Whether the stream captures, or the work would break a capture.
  bool takes(std::uint64_t stream) {
    if (active_.load(std::memory_order_relaxed) == 0) [[likely]]
      return false;
    return takes_slowly(stream);
  }
  /// Nothing when `stream` does not capture and the work must be done now. Otherwise the work
  /// became a node, and the value is the call's answer.
  std::optional<Allowed<void>> add(std::uint64_t stream, Work work);
  /// For work that cannot be captured: the capture is lost, and the answer is kCaptureRefused.
  std::unexpected<Refused> refuse_work(std::uint64_t stream);
  /// As add(), for recording an event and waiting for it.
  std::optional<Allowed<void>> record(std::uint64_t stream, std::uint64_t event);
  std::optional<Allowed<void>> wait(std::uint64_t stream, std::uint64_t event);

  /// Refuses to wait for an event whose last record was captured:
  /// - During the capture kCapturedEvent; the capture is lost if the caller asks for progress.
  /// - After the capture kInvalidValue.
  enum class Asks { kHowFar, kWhen };
  Allowed<void> check_event(std::uint64_t event, Asks asks);
  /// For calls that CUDA holds unsafe during a capture, as they may wait for the whole device.
  /// Returns kCaptureRefused while this thread may not make them, by the modes of captures and
  /// thread. The captures that forbid them are lost.
  Allowed<void> check_allows();

  /// The stream is destroyed: a capture that began there ends without a graph.
  void stream_ends(std::uint64_t stream);
  void event_ends(std::uint64_t event);

  // What the program asks of captures.
  /// Captures into a new graph, or into `graph` behind its nodes `first`.
  Allowed<void> begin(std::uint64_t stream, CaptureMode mode);
  Allowed<void> begin_in(std::uint64_t stream, CaptureMode mode, GraphHandle graph,
                         std::span<const NodeHandle> first);
  Allowed<GraphHandle> end(std::uint64_t stream);
  Allowed<CaptureState> state(std::uint64_t stream);
  struct Info {
    CaptureState state = CaptureState::kNone;
    // Only for an active capture.
    std::uint64_t id = 0;
    GraphHandle graph = nullptr;  // the graph; may be read and added to meanwhile
    /// Of the next node; valid until the stream's next info().
    std::span<const NodeHandle> dependencies;
  };
  Allowed<Info> info(std::uint64_t stream);
  /// How the dependencies of the stream's next node change. Programs pass any number.
  enum class Change : unsigned { kAdd = 0, kReplace = 1 };
  Allowed<void> set_dependencies(std::uint64_t stream, std::span<const NodeHandle> nodes,
                                 Change change);

 private:
  struct Capture;
  using CapturePointer = std::shared_ptr<Capture>;
  /// The end of a capture in one stream, or at an event recorded on it.
  struct Frontier {
    CapturePointer capture;
    std::vector<Node*> nodes;      // dependencies of the next node
    std::vector<NodeHandle> told;  // dependencies in the stream's last info()
  };

  /// Whether no event is part of a capture.
  bool no_event_captured() const {
    return active_.load(std::memory_order_relaxed) == 0 &&
           ended_events_.load(std::memory_order_relaxed) == 0;
  }
  bool takes_slowly(std::uint64_t stream);
  void recount();
  Frontier* frontier_of(std::uint64_t stream);
  bool would_break(std::uint64_t stream) const;
  bool breaks(std::uint64_t stream);
  Allowed<void> start(std::uint64_t stream, CaptureMode mode, std::shared_ptr<Graph> graph,
                      std::vector<Node*> first);
  void forget(const CapturePointer& capture);
  bool has_unjoined_work(const CapturePointer& capture) const;

  const HandleTable& streams_;
  std::atomic<int> active_{0};        // capturing streams and captured events; nearly always 0
  std::atomic<int> ended_events_{0};  // size of ended_
  // Guarded by Graphs::mutex.
  std::map<std::uint64_t, Frontier> frontiers_;  // by stream
  std::map<std::uint64_t, Frontier> events_;
  std::set<std::uint64_t> ended_;  // events last recorded in a capture that is over
};

}  // namespace slate::client
