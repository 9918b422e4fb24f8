// Captures: what the program sends to a capturing stream of a session becomes a node of a graph
// instead. The calls that can be captured ask here first; while no stream captures, that is one
// atomic load. Thread-safe: guarded by Graphs::mutex.
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

/// Which threads' unsafe calls a capture forbids: those of all, its own, none.
/// Programs give any number for it.
enum class CaptureMode : int { kGlobal = 0, kThreadLocal = 1, kRelaxed = 2 };
enum class CaptureState { kNone, kActive, kInvalid };

/// Sets this thread's mode, and gives the one before.
CaptureMode exchange_capture_mode(CaptureMode mode);

class Captures {
 public:
  /// `streams` tells which of them take part in the default stream's order.
  explicit Captures(const HandleTable& streams) : streams_(streams) {}

  // Work of the program, on its way to a stream.
  /// True when the stream captures, or the work would break a capture.
  bool takes(std::uint64_t stream) {
    if (active_.load(std::memory_order_relaxed) == 0) [[likely]]
      return false;
    return takes_slowly(stream);
  }
  /// Nothing when `stream` does not capture and the work is to be done now; otherwise the work
  /// became a node, and the value is the call's answer.
  std::optional<Allowed<void>> add(std::uint64_t stream, Work work);
  /// For what cannot be captured: the capture is lost, and the answer is kCaptureRefused.
  std::unexpected<Refused> refuse_work(std::uint64_t stream);
  /// An answer when recording or waiting concerns a capture.
  std::optional<Allowed<void>> record(std::uint64_t stream, std::uint64_t event);
  std::optional<Allowed<void>> wait(std::uint64_t stream, std::uint64_t event);

  /// Nothing can wait for an event by itself whose last recording was captured: kCapturedEvent
  /// during the capture, which is then lost if the caller asks how far the work has come, and
  /// kInvalidValue after it.
  enum class Asks { kHowFar, kWhen };
  Allowed<void> check_event(std::uint64_t event, Asks asks);
  /// For calls that CUDA holds unsafe during a capture, as they may wait for the whole device:
  /// kCaptureRefused while this thread may not make them (the mode of a capture and that of the
  /// thread decide), and the captures that forbid them are lost.
  Allowed<void> check_allows();

  /// The stream is no more: a capture that began there ends without a graph.
  void stream_ends(std::uint64_t stream);
  void event_ends(std::uint64_t event);

  // What the program asks of captures.
  /// Into a graph of the capture's own, or into `graph` behind the nodes `first` of it.
  Allowed<void> begin(std::uint64_t stream, CaptureMode mode);
  Allowed<void> begin_in(std::uint64_t stream, CaptureMode mode, GraphHandle graph,
                         std::span<const NodeHandle> first);
  Allowed<GraphHandle> end(std::uint64_t stream);
  Allowed<CaptureState> state(std::uint64_t stream);
  struct Info {
    CaptureState state = CaptureState::kNone;
    // Of an active one only.
    std::uint64_t id = 0;
    GraphHandle graph = nullptr;               // to be looked at and added to meanwhile
    std::span<const NodeHandle> dependencies;  // of the next node; until the stream's next info()
  };
  Allowed<Info> info(std::uint64_t stream);
  /// Changes what the stream's next node depends on. Programs give any number for it.
  enum class Change : unsigned { kAdd = 0, kReplace = 1 };
  Allowed<void> set_dependencies(std::uint64_t stream, std::span<const NodeHandle> nodes,
                                 Change change);

 private:
  struct Capture;
  using CapturePointer = std::shared_ptr<Capture>;
  /// How far a stream, or an event recorded on it, has come in a capture.
  struct Frontier {
    CapturePointer capture;
    std::vector<Node*> nodes;      // what the next node depends on
    std::vector<NodeHandle> told;  // of the stream's last info()
  };

  /// True while no capture has to do with any event.
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
  std::atomic<int> active_{0};        // capturing streams and captured events: 0 nearly always
  std::atomic<int> ended_events_{0};  // ended_
  // Guarded by Graphs::mutex.
  std::map<std::uint64_t, Frontier> frontiers_;  // by stream
  std::map<std::uint64_t, Frontier> events_;
  std::set<std::uint64_t> ended_;  // events, last recorded in a capture that is over
};

}  // namespace slate::client
