// FakeDaemon: a meeting point and one engine thread a session, with host memory for a device:
// enough for libslate to connect and for copies and fills to work. Kernels are described but do
// nothing.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "ipc/channel.h"
#include "ipc/meeting.h"

namespace slate::test {

class FakeDaemon {
 public:
  explicit FakeDaemon(const std::string& directory);
  /// Hangs up on every client, as a killed daemon does.
  ~FakeDaemon();
  FakeDaemon(const FakeDaemon&) = delete;
  FakeDaemon& operator=(const FakeDaemon&) = delete;

  int sessions() const { return sessions_; }
  std::vector<ipc::Launch> launches() const;
  /// Makes the next command without a reply fail every session for good.
  void fault_next() { fault_next_ = true; }
  /// Answers every command of a type that wants a reply with this error; kNone: no longer.
  void refuse(ipc::CommandType type, const Error& error);
  /// What every kernel is said to be, with parameters of these sizes, one after the other.
  void describe(ipc::FunctionReply function, std::vector<std::uint32_t> parameter_sizes);
  /// Makes the next command without a reply fail with this error, which the client's next call
  /// takes.
  void report_next(ErrorCode code) { report_next_ = code; }
  /// How many commands of this type have come.
  int count(ipc::CommandType type) const;
  /// How many copies have come from, or to, a place of this kind.
  int copies_from(PlaceKind kind) const;
  int copies_to(PlaceKind kind) const;

  static constexpr std::uint64_t kMemoryBytes = 64 << 20;

 private:
  struct Served;
  void meet(ipc::Visitor visitor);
  void listen();
  void serve(Served& served);
  void execute(Served& served, const ipc::Command& command);
  void answer(Served& served, const ipc::Command& command);

  std::string directory_;
  std::unique_ptr<ipc::MeetingPoint> point_;
  std::atomic<bool> stop_{false};
  std::atomic<bool> fault_next_{false};
  std::atomic<ErrorCode> report_next_{ErrorCode::kNone};
  std::atomic<int> sessions_{0};
  mutable std::mutex mutex_;
  std::vector<ipc::Launch> launches_;
  std::map<ipc::CommandType, Error> refusals_;
  std::map<ipc::CommandType, int> counts_;
  std::vector<ipc::Copy> copies_;
  ipc::FunctionReply function_{1024, 0, 49152, 0, 0, 16, 90, 90, 1, 8};
  std::vector<std::uint32_t> parameter_sizes_{8};
  std::vector<std::unique_ptr<Served>> served_;
  std::thread thread_;
};

}  // namespace slate::test
