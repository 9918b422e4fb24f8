#include "client/session/streams.h"

namespace slate::client {

using ipc::CommandType;

Streams::Streams(Wire& wire)
    : wire_(wire), table_(wire.handle_counter()), progress_(wire.channel()) {}

Result<std::uint64_t> Streams::create(std::uint32_t flags, std::int32_t priority) {
  const bool ordered = (flags & ipc::kStreamNonBlocking) == 0;
  const std::uint32_t progress = progress_.take(ordered);
  const std::uint64_t id = table_.add({flags, priority, progress, 0});
  if (id == 0) {
    progress_.give_back(progress);
    return fail(ErrorCode::kLimit, "too many streams");
  }
  if (!ordered) unordered_.fetch_add(1);
  auto ok =
      wire_.post(CommandType::kStreamCreate, ipc::StreamCreate{id, flags, priority, progress, 0});
  if (ok) return id;
  if (!ordered) unordered_.fetch_sub(1);
  table_.remove(id);
  progress_.give_back(progress);
  return std::unexpected(ok.error());
}

Result<void> Streams::destroy(std::uint64_t stream) {
  const std::uint32_t progress = progress_of(stream);
  const auto entry = table_.find(stream);
  if (!table_.remove(stream)) return fail(ErrorCode::kInvalidHandle, "no such stream");
  if (entry && (entry->flags & ipc::kStreamNonBlocking) != 0) unordered_.fetch_sub(1);
  progress_.give_back(progress);
  return wire_.post(CommandType::kStreamDestroy, ipc::IdCommand{stream});
}

std::uint32_t Streams::progress_of(std::uint64_t stream) const {
  if (stream == ipc::kDefaultStream) return ProgressTable::kDefaultStream;
  const auto entry = table_.find(stream);
  return entry ? entry->progress : ipc::kNoProgress;
}

}  // namespace slate::client
