#include "daemon/engine/again.h"

#include <fmt/format.h>

#include <algorithm>

namespace slate::daemon {
namespace {

bool reads_what_is_written(const ReachedRanges& reader, const ReachedRanges& writer) {
  if (reader.reads_anything) return writer.writes_anything || !writer.written.empty();
  if (writer.writes_anything) return !reader.read.empty();
  return std::ranges::any_of(reader.read, [&](const auto& read) {
    return std::ranges::any_of(writer.written,
                               [&](const auto& written) { return read.overlaps(written); });
  });
}

}  // namespace

std::optional<std::string> why_not_again(std::span<const ReachedRanges> commands) {
  for (std::size_t i = 0; i < commands.size(); ++i) {
    const ReachedRanges& command = commands[i];
    if (command.is_done) continue;
    if (!command.why_not.empty()) return fmt::format("{}: {}", command.name, command.why_not);
    for (const ReachedRanges& later : commands.subspan(i)) {
      if (!reads_what_is_written(command, later)) continue;
      if (&later == &command) return fmt::format("{} writes what it reads", command.name);
      return fmt::format("{} reads what {}, which came behind it, writes", command.name,
                         later.name);
    }
  }
  return std::nullopt;
}

}  // namespace slate::daemon
