// What a row of the table of commands (commands.h) says of its command, and the rules of order that
// a row chooses from. Plain values, no table here.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <type_traits>

namespace slate::ipc {

/// What a command must come after while streams are held, and what must come after it. A stream is
/// held by a host function of the client, or by a launch that can be called back.
struct Order {
  std::optional<std::uint64_t> stream = {};  // after earlier work on it; 0 is the default stream
  std::uint64_t event = 0;                   // after earlier commands that write it; 0: no event
  bool all = false;                          // after all earlier work
  bool writes = false;      // the event: it is recorded, or ends, and so is written
  bool only_waits = false;  // nothing comes after it: another thread may go on meanwhile
  bool frees = false;       // gives memory back once it is done
};

// --- Rules of order: each makes an Order of a command's body

/// It waits for nothing.
struct AtOnce {
  static constexpr bool kInStream = false;
  static Order of(const auto& /*body*/) { return {}; }
};
/// It is work on its stream, in the order of that stream.
struct InStream {
  static constexpr bool kInStream = true;
  static Order of(const auto& /*body*/) { return {}; }
};
/// The same. It may hold a staging slot until its copy is done, or was refused: slot_of(body).
struct InStreamWithSlot : InStream {
  static constexpr bool kHoldsSlot = true;
};
/// Work on its stream that records an event.
template <auto kEvent>
struct Records {
  static constexpr bool kInStream = true;
  static Order of(const auto& body) { return {.event = body.*kEvent, .writes = true}; }
};
/// Work on its stream that waits for an event.
template <auto kEvent>
struct Awaits {
  static constexpr bool kInStream = true;
  static Order of(const auto& body) { return {.event = body.*kEvent}; }
};
/// It comes after the last recording of an event.
template <auto kEvent>
struct AfterEvent {
  static constexpr bool kInStream = false;
  static Order of(const auto& body) { return {.event = body.*kEvent, .only_waits = true}; }
};
/// It ends an event, after all that records or uses it.
template <auto kEvent>
struct EndsEvent {
  static constexpr bool kInStream = false;
  static Order of(const auto& body) { return {.event = body.*kEvent, .writes = true}; }
};
/// It ends a stream, after all work on it.
template <auto kStream>
struct EndsStream {
  static constexpr bool kInStream = false;
  static Order of(const auto& body) { return {.stream = body.*kStream}; }
};
/// It comes after all earlier work.
struct AfterAll {
  static constexpr bool kInStream = false;
  static Order of(const auto& /*body*/) { return {.all = true, .only_waits = true}; }
};
/// The same, and it gives memory back.
struct GivesBack {
  static constexpr bool kInStream = false;
  static Order of(const auto& /*body*/) { return {.all = true, .only_waits = true, .frees = true}; }
};
/// It comes after what the body itself names, by order_of(body).
struct AsNamed {
  static constexpr bool kInStream = false;
  static Order of(const auto& body) { return order_of(body); }
};

/// In place of a member of the body, for commands that are about no stream.
inline constexpr std::nullptr_t kNoStream = nullptr;
/// The body of a command that has none.
struct NoBody {};

/// Whether the session could not be rebuilt without the command. kMakes: it makes an object, or
/// changes one for good. kEnds: it ends one, and what made that is needed no longer.
enum class Object { kNeither, kMakes, kEnds };

/// A slot that a command holds, and the turn of it.
struct SlotTurn {
  std::uint32_t slot = 0;
  std::uint64_t sequence = 0;
  bool awaited = false;  // the client waits for the slot, and hears there of a refusal
};

/// `kStreamOf`: the member of the body that names the stream whose order the command is in.
template <auto kTypeOf, typename BodyType, auto kStreamOf, typename Rule, Object kObjectOf>
struct Row {
  static constexpr auto kType = kTypeOf;
  using Body = BodyType;
  static constexpr bool kHasStream = !std::is_null_pointer_v<decltype(kStreamOf)>;
  static constexpr bool kHoldsSlot = requires { Rule::kHoldsSlot; };
  static constexpr Object kObject = kObjectOf;

  static std::uint64_t stream_of(const Body& body) requires kHasStream { return body.*kStreamOf; }
  static Order order_of(const Body& body) {
    Order order = Rule::of(body);
    if constexpr (kHasStream) order.stream = stream_of(body);
    return order;
  }

  static_assert(std::is_trivially_copyable_v<Body>);
  static_assert(kHasStream == Rule::kInStream, "a stream and a rule that is not of streams");
  static_assert(
      kHasStream || !requires(Body body) { body.stream; }, "a body's stream is not named");
  static_assert(
      kHoldsSlot ==
          requires(Body body) {
            { slot_of(body) } -> std::same_as<std::optional<SlotTurn>>;
          },
      "a body with a slot, or a row that says so, without the other");
};

}  // namespace slate::ipc
