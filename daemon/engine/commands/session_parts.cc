#include "daemon/engine/commands/session_parts.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "base/out_of_memory.h"
#include "daemon/engine/commands/command_reach.h"
#include "daemon/engine/saved_memory.h"

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
      fence_(spec.fence),
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
      retirement_(streams_, ground.completer, ground.group,
                  [&channel = ground.channel] { channel.poke(); }),
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
               .book = spec.book,
               .faults = ground.faults,
               .fence = fence_,
               .is_over = ground.is_over,
               .wake = [&channel = ground.channel] { channel.poke(); },
               .leaves_first = ground.leaves_first,
               .with_free = ground.with_free,
               .residency = spec.residency.get(),
               .tenant = {.session = spec.id,
                          .weight = spec.weight * spec.user_weight,
                          .priority = spec.priority,
                          .wake = [&channel = ground.channel] { channel.poke(); },
                          .busy = [&group = ground.group] { return !group.empty(); }}},
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
      reach_(memory_, host_memory_, mapped_, code_),
      launches_(context_, memory_, host_memory_, code_, sharing_, mapped_),
      host_functions_(context_),
      reports_(ground.unsupported) {
  // The client does not hear that work is done which has violated the fence. First in the book:
  // what the client knows to be done is not done again.
  streams_.watches().publish([this, &channel = ground.channel, book = context_.book](
                                 const LogicalStream& stream, std::uint64_t position) {
    context_.look_at_fence();
    if (book) book->book().done(stream.book_row, position);
    channel.publish_completed(stream.progress, position);
  });
  if (context_.book) {
    streams_.on_gone([book = context_.book](std::uint32_t row) { book->book().give_stream(row); });
  }
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

Result<void> SessionParts::set_up_again(std::uint64_t limit,
                                        std::unique_ptr<MemoryLedger::Account> account,
                                        std::chrono::milliseconds wait) {
  SessionBook& book = *context_.book;
  const auto entries = book.book().entries();
  PastMemory memory;
  for (const auto& [key, entry] : entries) {
    const auto [kind, number] = key;
    if (kind == BookKind::kArena) {
      memory.arena = entry.as<device::AddressRange>().value_or(memory.arena);
    } else if (kind == BookKind::kSegment) {
      const auto segment = entry.as<BookSegment>().value_or(BookSegment{});
      const int whole = book.held(key);
      memory.segments.push_back(
          {{number, segment.bytes},
           segment.dedicated != 0,
           whole,
           book.held({BookKind::kSaved, number}),
           whole < 0 ? book.pieces_in({number, segment.bytes}) : std::vector<PastPiece>()});
    } else if (kind == BookKind::kBlock) {
      const auto block = entry.as<BookBlock>().value_or(BookBlock{});
      memory.blocks.push_back({{number, block.bytes}, block.retired != 0});
    }
  }
  auto done = memory_.start_again(limit, std::move(account), wait, std::move(memory));
  book.note_again(true);
  if (done) {
    arrays_.start();
    mapped_.start();
    code_.start();
  }
  for (auto entry = entries.begin(); done && entry != entries.end(); ++entry)
    done = make_again(entry->first, entry->second);
  book.note_again(false);
  book.forget_held();
  return done;
}

Result<void> SessionParts::make_again(const Book::Key& key, const Book::Entry& entry) {
  const auto damaged = [] { return fail(ErrorCode::kUnavailable, "its book is damaged"); };
  switch (key.first) {
    case BookKind::kArena:
    case BookKind::kSegment:
    case BookKind::kPiece:
    case BookKind::kBlock:
      return {};  // done first
    case BookKind::kHost: {
      const auto block = entry.as<BookHost>();
      if (!block) return damaged();
      return host_memory_.make_again(key.second, *block, context_.book->held(key));
    }
    case BookKind::kImage: {
      const auto image = entry.as<BookImage>();
      return image ? load_again(key.second, *image) : damaged();
    }
    case BookKind::kUpload:
      if (!context_.book->book().has(BookKind::kImage, key.second))
        code_.upload_was_lost(key.second);
      return {};
    default: {
      const auto number =
          static_cast<std::uint32_t>(key.first) - static_cast<std::uint32_t>(BookKind::kCommands);
      return carry_out_again(static_cast<ipc::CommandType>(number), entry);
    }
  }
}

Result<void> SessionParts::load_again(std::uint64_t module, const BookImage& image) {
  std::vector<std::byte> bytes(image.bytes);
  std::string source(image.source_bytes, '\0');
  const int memory = context_.book->held({BookKind::kImage, module});
  const auto read = [memory](void* to, std::uint64_t size, std::uint64_t from) {
    return ::pread(memory, to, size, static_cast<off_t>(from)) == static_cast<ssize_t>(size);
  };
  if (!read(bytes.data(), bytes.size(), 0) || !read(source.data(), source.size(), bytes.size()))
    return fail_errno("the image of a module");
  return context_.checked(code_.modules().load_whole(
      module, {static_cast<std::uint32_t>(image.kind), std::move(bytes), std::move(source)},
      image.home == 0 ? std::nullopt : std::optional(image.home)));
}

Result<void> SessionParts::carry_out_again(ipc::CommandType type, const Book::Entry& entry) {
  std::span<const std::byte> body = entry.payload;
  std::uint32_t row = 0;
  const bool is_stream = type == ipc::CommandType::kStreamCreate;
  const bool is_event = type == ipc::CommandType::kEventCreate;
  if (is_stream || is_event) {
    if (body.size() <
        sizeof(row) + (is_stream ? sizeof(ipc::StreamCreate) : sizeof(ipc::EventCreate)))
      return fail(ErrorCode::kUnavailable, "its book is damaged");
    std::memcpy(&row, body.data(), sizeof(row));
    body = body.subspan(sizeof(row));
  }
  const ipc::Command command{.header = {.bytes = 0,
                                        .type = type,
                                        .reply_slot = ipc::kNoReply,
                                        .reply_sequence = 0,
                                        .body_bytes = static_cast<std::uint32_t>(body.size())},
                             .body = {body.begin(), body.end()}};
  Present present;
  if (const auto done = carry_out(command, nullptr, present); !done) return done;
  if (is_event) events_.go_on(command.as<ipc::EventCreate>()->id, row);
  if (!is_stream) return {};
  const auto stream = streams_.find(command.as<ipc::StreamCreate>()->id);
  if (!stream) return std::unexpected(stream.error());
  (*stream)->book_row = row;
  context_.book->book().use_stream(row);
  return {};
}

std::optional<std::string> SessionParts::why_not_again(std::span<const Book::Open> commands) {
  std::vector<ReachedRanges> all;
  for (const Book::Open& open : commands) {
    if (open.begun || open.done) all.push_back(reach_.of(open));
  }
  return slate::daemon::why_not_again(all);
}

Result<void> SessionParts::save_memory() {
  SessionBook& book = *context_.book;
  std::vector<std::pair<BookKind, device::AddressRange>> saved;
  Result<void> done;
  for (const auto& [kind, range] : book.on_device()) {
    const auto memory = daemon::save_memory(context_.device, range);
    done = memory ? book.save(range.base, memory->get()) : std::unexpected(memory.error());
    if (!done) break;
    saved.emplace_back(kind, range);
  }
  for (const auto& [kind, range] : saved) {
    if (done) {
      book.drop_device_memory(kind, range.base);
    } else {
      book.drop_saved(range.base);
    }
  }
  return context_.checked(done);
}

Result<void> SessionParts::free_retired() {
  if (const auto done = memory_.free_retired(); !done) return done;
  return host_memory_.free_retired();
}

void SessionParts::release() {
  context_.executor.drop_lanes(*client_);
  fence_.release();
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

/// Work goes into the journal before the device can begin it. A gate waits until the client opens
/// it.
template <typename Row>
void SessionParts::write_down(const ipc::Command& command, const LogicalStream* stream,
                              bool is_written) {
  if constexpr (Row::kHasStream) {
    if (!context_.book) return;
    Book& book = context_.book->book();
    constexpr bool kBegins = Row::kType != ipc::CommandType::kHostGate;
    if (!is_written) {
      book.write(streams_.position(), stream->book_row, command, kBegins);
    } else if (kBegins) {
      book.begun(streams_.position());
    }
  }
}

template <typename Row>
std::uint32_t SessionParts::row_of_new(const typename Row::Body& body) {
  if constexpr (Row::kType == ipc::CommandType::kStreamCreate) {
    const auto stream = streams_.find(body.id);
    return stream ? (*stream)->book_row : Book::kNoStream;
  } else if constexpr (Row::kType == ipc::CommandType::kEventCreate) {
    const auto record = events_.find(body.id);
    return record ? (*record)->time_row : EventTimes::kNoRow;
  } else {
    return Book::kNoStream;
  }
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
    write_down<Row>(command, present.stream, kept != nullptr);
    done = hand_over(
        Call<Row::kType>{command.header, *body, tail, present.stream, kept, present.reply}, memory_,
        host_memory_, code_, sharing_, mapped_, arrays_, events_, stream_commands_, copies_,
        launches_, host_functions_, reports_);
  }
  if (done && context_.book) context_.book->template note<Row>(*body, tail, row_of_new<Row>(*body));
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
  if (command.header.type == ipc::CommandType::kModuleUnload) reach_.forget();
  return done;
}

std::uint32_t SessionParts::book_row_of(const ipc::Command& command) {
  return ipc::visit_row<std::uint32_t>(
      command.header.type,
      [&]<typename Row>() -> std::uint32_t {
        if constexpr (Row::kHasStream) {
          const auto body = command.as<typename Row::Body>();
          const auto stream = body ? streams_.find(Row::stream_of(*body)) : streams_.find(0);
          if (body && stream) return (*stream)->book_row;
        }
        return Book::kNoStream;
      },
      [] { return Book::kNoStream; });
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
