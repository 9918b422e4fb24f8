// SessionSpec: what an engine is told of a session that comes. Plain data.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "ipc/rendezvous.h"
#include "ipc/segment.h"

namespace slate::daemon {

class Exports;
class NamedBudget;
class StagingBudget;

struct SessionSpec {
  std::uint64_t id = 0;
  std::uint32_t pid = 0;
  std::uint32_t uid = 0;
  std::string program;
  std::uint64_t memory_limit = 0;
  double weight = 1;
  int priority = 0;
  ipc::SessionFifos fifos;
  ipc::Segment segment;
  /// Shared with the other sessions; null: it has one to itself.
  std::shared_ptr<StagingBudget> staging{};
  std::shared_ptr<Exports> exports{};           // likewise
  std::shared_ptr<NamedBudget> named_memory{};  // likewise
};

}  // namespace slate::daemon
