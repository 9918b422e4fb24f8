#include "daemon/engine/commands/session_parts.h"

#include <fmt/format.h>

#include "base/check.h"
#include "base/log.h"
#include "base/out_of_memory.h"

namespace slate::daemon {
namespace {

template <typename Part, typename Command>
concept Handles = requires(Part part, const Command& call) {
  part.on(call);
};

/// The first of these parts that handles the command.
template <typename Command, typename First, typename... Rest>
auto& part_for(First& first, Rest&... rest) {
  if constexpr (Handles<First, Command>) {
    return first;
  } else {
    return part_for<Command>(rest...);
  }
}

/// Hands the command to the part that handles it.
template <typename Command, typename... Parts>
Result<void> hand_over(const Command& call, Parts&... parts) {
  static_assert((int{Handles<Parts, Command>} + ...) >= 1, "a command that no part handles");
  static_assert((int{Handles<Parts, Command>} + ...) <= 1, "a command that two parts handle");
  return part_for<Command>(parts...).on(call);
}

}  // namespace

SessionParts::SessionParts(const Ground& ground, const SessionSpec& spec)
    : streams_(ground.device, ground.completer, ground.group,
               [&faults = ground.faults](const Error& error) { faults.on_device_error(error); }),
      client_(ground.executor.add({.session = spec.id,
                                   .pid = spec.pid,
                                   .uid = spec.uid,
                                   .program = spec.program,
                                   .weight = spec.weight,
                                   .user_weight = spec.user_weight,
                                   .priority = spec.priority,
                                   .most_blocking = spec.most_blocking,
                                   .lane_ended = [&channel = ground.channel] { channel.poke(); },
                                   .lost_client = ground.lost_client},
                                  streams_, ground.group)),
      retirement_(streams_, ground.completer, ground.group),
      held_(
          [this](std::uint64_t id) {
            const auto stream = streams_.find(id);
            return stream && (*stream)->blocking;
          },
          ground.is_crowded),
      budget_(spec.staging ? spec.staging : std::make_shared<StagingBudget>()),
      staging_(ground.device, ground.channel, *budget_, spec.uid),
      context_{.session = spec.id,
               .uid = spec.uid,
               .device = ground.device,
               .executor = ground.executor,
               .client = *client_,
               .completer = ground.completer,
               .group = ground.group,
               .streams = streams_,
               .retirement = retirement_,
               .held = held_,
               .exports = spec.exports ? spec.exports : std::make_shared<Exports>(),
               .faults = ground.faults,
               .is_over = ground.is_over},
      memory_(context_, spec.local ? spec.local : std::make_shared<LocalMemory>(ground.device)),
      host_memory_(context_, spec.pinned,
                   [&channel = ground.channel](std::uint64_t id, int memory) {
                     return channel.send_memory(id, memory);
                   }),
      code_(context_, ground.compiler, memory_, host_memory_, spec.images, spec.code),
      sharing_(context_),
      mapped_(context_, memory_),
      ranges_(memory_, code_, host_memory_, sharing_, mapped_),
      arrays_(context_, memory_, ranges_),
      events_(context_),
      stream_commands_(context_, events_,
                       [&channel = ground.channel](const ipc::CommandHeader& header,
                                                   const Result<void>& outcome) {
                         if (outcome) {
                           channel.reply(header.reply_slot, header.reply_sequence, {});
                         } else {
                           channel.reply_error(header.reply_slot, header.reply_sequence,
                                               outcome.error());
                         }
                       }),
      copies_(context_, host_memory_, arrays_, ranges_, staging_),
      launches_(context_, memory_, host_memory_, code_, sharing_, mapped_),
      host_functions_(context_),
      reports_(ground.unsupported) {
  streams_.watches().publish(
      [&channel = ground.channel](std::uint32_t progress, std::uint64_t position) {
        channel.publish_completed(progress, position);
      });
  streams_.report_refusals([this, &channel = ground.channel](const Error& error) {
    log_debug("session {}: {}", context_.session, error.message);
    (void)context_.checked(std::unexpected(error));
    channel.set_async_error(error);
  });
}

SessionParts::~SessionParts() {
  context_.executor.remove(client_);
}

Result<void> SessionParts::set_up(std::uint64_t limit,
                                  std::unique_ptr<MemoryLedger::Account> account,
                                  std::chrono::milliseconds wait) {
  if (const auto made = memory_.start(limit, std::move(account), wait); !made) return made;
  arrays_.start();
  mapped_.start();
  code_.start();
  return {};
}

void SessionParts::release() {
  context_.executor.drop_lanes(*client_);
  events_.release();
  // One rest for all the calls that take one.
  context_.executor.begin_rest();
  arrays_.release();
  code_.release();
  sharing_.release();
  context_.exports->withdraw_all(context_.session);
  mapped_.release();
  memory_.release();
  streams_.destroy_all();
  staging_.release();
  copies_.release();
  host_memory_.release();
  context_.executor.end_rest();
  SLATE_CHECK(arrays_.count() == 0 && code_.module_count() == 0 && streams_.count() == 0);
}

template <typename Row>
Result<void> SessionParts::dispatch(const ipc::Command& command, const HeldCommands::Kept* kept,
                                    Present& present) {
  std::span<const std::byte> tail;
  const auto body = command.as<typename Row::Body>(&tail);
  if (!body) return std::unexpected(body.error());
  Result<void> done;
  if constexpr (Row::kHasStream) {
    const auto stream = streams_.find(Row::stream_of(*body));
    if (stream) present.stream = *stream;
    if (!stream) done = std::unexpected(stream.error());
  }
  if (done) {
    done = hand_over(
        Call<Row::kType>{command.header, *body, tail, present.stream, kept, present.reply}, memory_,
        host_memory_, code_, sharing_, mapped_, arrays_, events_, stream_commands_, copies_,
        launches_, host_functions_, reports_);
  }
  if constexpr (Row::kHoldsSlot) {
    if (!done && done.error().code != ErrorCode::kProtocol) return refuse(slot_of(*body), done);
  }
  return done;
}

/// Refuses a copy: gives its slot back, so that the client never waits in vain.
Result<void> SessionParts::refuse(const std::optional<ipc::SlotTurn>& turn,
                                  const Result<void>& refused) {
  if (!turn) return refused;
  staging_.give_back(turn->slot, turn->sequence, refused.error().code);
  if (!turn->awaited) return refused;
  log_debug("session {}: {}", context_.session, refused.error().message);
  return {};  // its own call is told, and no later one
}

/// Without memory for a command, only this session fails: its own state may be half changed.
/// Commands that can be refused whole are refused in their handlers.
Result<void> SessionParts::carry_out(const ipc::Command& command, const HeldCommands::Kept* kept,
                                     Present& present) {
  bool whole = false;
  auto done = or_out_of_memory([&] {
    const auto unknown = [&]() -> Result<void> {
      const auto type = static_cast<unsigned>(command.header.type);
      return fail(ErrorCode::kProtocol, fmt::format("unknown command {}", type));
    };
    auto result = ipc::visit_row<Result<void>>(
        command.header.type, [&]<typename Row>() { return dispatch<Row>(command, kept, present); },
        unknown);
    whole = true;
    return result;
  });
  if (!whole) context_.faults.fail(done.error());
  return done;
}

void SessionParts::give_slot_back(const ipc::Command& command, ErrorCode reason) {
  ipc::visit_row<void>(
      command.header.type,
      [&]<typename Row>() {
        if constexpr (Row::kHoldsSlot) {
          if (const auto body = command.as<typename Row::Body>()) {
            if (const auto turn = slot_of(*body))
              staging_.give_back(turn->slot, turn->sequence, reason);
          }
        }
      },
      [] {});
}

}  // namespace slate::daemon
