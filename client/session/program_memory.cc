#include "client/session/program_memory.h"

#include <algorithm>

#include "client/session/captures.h"

namespace slate::client {
namespace {

/// The memory has its address at once, and is allocated by the launch of the graph.
Allowed<std::uint64_t> capture_allocation(Session& session, std::uint64_t bytes,
                                          std::uint64_t stream) {
  if (bytes == 0) return 0;
  auto work = allocate_work(session, bytes);
  if (!work) return std::unexpected(work.error());
  const std::uint64_t address = std::get<AllocateNode>(*work).memory->address();
  const auto taken = session.captures().add(stream, std::move(*work));
  if (!taken) return refuse(Refusal::kIllegalState);  // ended by another thread meanwhile
  if (!*taken) return std::unexpected(taken->error());
  return address;
}

/// Graphs free what graphs have allocated.
Allowed<void> capture_free(Session& session, std::uint64_t address, std::uint64_t stream) {
  auto work = free_work(session, address);
  if (!work) return std::unexpected(work.error());
  const auto taken = session.captures().add(stream, std::move(*work));
  return taken ? *taken : refuse(Refusal::kIllegalState);  // ended by another thread meanwhile
}

/// For work that was submitted so far it stays as it was.
Allowed<void> free_at_once(Session& session, std::uint64_t address) {
  const auto of_graph = GraphMemory::free_by_program(session, address);
  if (!of_graph) return std::unexpected(of_graph.error());
  if (*of_graph) return {};
  session.memory().pools().freed(address);
  const auto range = session.memory().table().find(address);
  if (auto freed = session.memory().free(address); !freed) return freed;
  if (range && range->tag == kTagManaged) {
    session.host_memory().advice().forget(range->address, range->address + range->bytes);
  }
  return {};
}

/// Rows begin at multiples of this, as on every GPU since 2010.
constexpr std::uint64_t kPitchAlign = 512;

}  // namespace

Allowed<std::uint64_t> allocate_in_order(Session& session, std::uint64_t bytes,
                                         std::optional<std::uint64_t> pool, std::uint64_t stream) {
  if (session.captures().takes(stream)) return capture_allocation(session, bytes, stream);
  Pools& pools = session.memory().pools();
  const std::uint64_t from = pool ? *pool : pools.current_pool();
  const auto taken = pools.take(from, bytes);
  if (taken == Pools::Take::kNoPool) return refuse(Refusal::kInvalidHandle);
  if (taken == Pools::Take::kFull) return refuse(Refusal::kOutOfMemory);
  if (bytes == 0) return 0;
  auto made = session.memory().allocate(bytes);
  if (!made) {
    pools.give_back(from, bytes);
    return std::unexpected<Refused>(std::move(made.error()));
  }
  pools.allocated(from, *made, bytes);
  return *made;
}

Allowed<void> free_in_order(Session& session, std::uint64_t address, std::uint64_t stream) {
  if (address == 0) return {};
  if (session.captures().takes(stream)) return capture_free(session, address, stream);
  return free_at_once(session, address);
}

Allowed<Place> allocate_pitched(Session& session, std::uint64_t width, std::uint64_t rows) {
  const std::uint64_t pitch = (width + kPitchAlign - 1) / kPitchAlign * kPitchAlign;
  std::uint64_t bytes = 0;
  if (pitch < width || __builtin_mul_overflow(pitch, rows, &bytes)) {
    return refuse(Refusal::kOutOfMemory);
  }
  auto made = session.memory().allocate(bytes);
  if (!made) return std::unexpected<Refused>(std::move(made.error()));
  return Place::on_device(*made, pitch);
}

std::optional<Range> find_managed(Session& session, std::uint64_t address) {
  const auto range = session.memory().table().find(address);
  const bool managed = range && (range->tag == kTagManaged || range->tag == kTagManagedVariable);
  return managed ? range : std::nullopt;
}

Allowed<ManagedPages> managed_pages(Session& session, std::uint64_t address, std::uint64_t bytes) {
  constexpr std::uint64_t kPage = HostBlocks::kPage;
  const auto range = find_managed(session, address);
  if (bytes == 0 || !range || bytes > range->bytes - (address - range->address)) {
    return refuse(Refusal::kInvalidValue);
  }
  const std::uint64_t last = (address + bytes + kPage - 1) / kPage * kPage;
  return ManagedPages{std::max(address / kPage * kPage, range->address),
                      std::min(last, range->address + range->bytes)};
}

Allowed<ipc::ShareHandle> export_program_memory(Session& session, std::uint64_t address) {
  const auto range = session.memory().table().find(address);
  if (!range || range->tag != kTagMemory) return refuse(Refusal::kInvalidValue);
  return session.memory().export_memory(address);
}

Allowed<void> free_program_memory(Session& session, std::uint64_t address) {
  if (auto waited = session.waiting().wait_to_free(); !waited) return waited;
  return free_at_once(session, address);
}

}  // namespace slate::client
