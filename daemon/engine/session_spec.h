// SessionSpec: what an engine gets to know of a new session. Plain data.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "daemon/engine/memory_ledger.h"
#include "ipc/meeting.h"
#include "ipc/segment.h"

namespace slate::daemon {

class Exports;
class FenceMemory;
class ImageStore;
class LocalMemory;
class Residency;
class ResumeOrder;
class SessionBook;
class StagingBudget;

struct SessionSpec {
  std::uint64_t id = 0;
  std::uint32_t pid = 0;
  std::uint32_t uid = 0;
  std::string program;
  std::uint64_t memory_limit = 0;
  std::unique_ptr<MemoryLedger::Account> account;  // of its user's memory; null: none
  double weight = 1;
  double user_weight = 1;
  int priority = 0;
  /// The longest time that its work may keep other users' launches waiting; 0: no bound.
  std::chrono::milliseconds most_blocking{0};
  ipc::DaemonEnds ends;
  ipc::Segment segment;
  /// Of its user's pinned memory, and of the engine's memory for his code; null: none.
  std::shared_ptr<MemoryLedger::Account> pinned{}, code{};
  /// How long an allocation waits for memory that others have.
  std::chrono::milliseconds memory_wait{0};
  /// Shared with the other sessions, as are the next three; null: one for this session only.
  std::shared_ptr<LocalMemory> local{};
  std::shared_ptr<StagingBudget> staging{};
  std::shared_ptr<Exports> exports{};
  std::shared_ptr<ImageStore> images{};
  std::shared_ptr<FenceMemory> fence{};    // of the engine; null: no kernel is fenced
  std::shared_ptr<Residency> residency{};  // of the engine; null: all memory is on the device
  /// What another engine needs to go on with the session; null: none can.
  std::shared_ptr<SessionBook> book{};
  std::shared_ptr<ResumeOrder> order{};  // of the engine; null: no session is a suspect
  /// The fault with which the last engine's device was lost, where its work may have been the
  /// cause; kNone: it was not.
  ErrorCode suspected_of = ErrorCode::kNone;
};

}  // namespace slate::daemon
