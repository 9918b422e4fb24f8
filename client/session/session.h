// Session: one program's connection to the daemon, in driver-level objects. It connects, ends and
// finds errors; its parts do the rest, each with its own state. It knows no CUDA API: the fronts
// (cudart/) are built on it. Thread-safe. A session ends by abandon() only. After that every call
// fails with kUnavailable.
//
// Order of locks: each comes before those below it.
//   an executable graph's, that of all graphs, that of the graphs' memory (graph_exec.h, graph.h)
//   the process's (process.h), then the two of its code (code.h)
//   HostFunctions' order, Printing's, KernelHeap's, DeviceMemory's imports, VirtualMemory's
//   HostPool's, ManagedMemory's
//   ManagedGuard's, HostFunctions' own, and those of the tables
//   the channel's
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/device_info.h"
#include "base/result.h"
#include "client/session/arrays.h"
#include "client/session/copies.h"
#include "client/session/device_memory.h"
#include "client/session/events.h"
#include "client/session/host_functions.h"
#include "client/session/host_memory.h"
#include "client/session/kernel_heap.h"
#include "client/session/kernels.h"
#include "client/session/modules.h"
#include "client/session/printing.h"
#include "client/session/streams.h"
#include "client/session/virtual_memory.h"
#include "client/session/waiting.h"
#include "client/session/wire.h"
#include "ipc/channel.h"

namespace slate::client {

class Captures;

/// More than 15 members and 25 functions, because each part is a member with a function that gives
/// it.
class Session {
 public:
  /// Connects. `serial` distinguishes the process's sessions.
  static Result<std::unique_ptr<Session>> open(const std::string& runtime_dir,
                                               const ipc::Patience& patience, std::uint64_t serial);
  Session(std::unique_ptr<ipc::ClientChannel> channel, std::uint64_t serial);
  ~Session();

  std::uint64_t serial() const { return serial_; }
  const DeviceInfo& device() const { return wire_.channel().status().device; }
  std::uint32_t capability() const;  // 90 for 9.0
  bool runs_ptx_only() const { return device().is_simulated != 0; }
  /// Takes the error of an earlier command without a reply, else returns the session's lasting
  /// error.
  Result<void> check();
  /// Takes only the error of an earlier command. For calls that send a command, which itself checks
  /// the lasting error.
  Result<void> earlier_error();
  /// Reports a call of a function that slate does not have, for the daemon's count.
  Result<void> report_unsupported(std::string_view function);
  /// Runs the host functions that are left, then hangs up: the daemon frees everything. In a forked
  /// child it leaves the parent's session alone. Requires: the caller is no host function.
  void abandon();

  Wire& wire() { return wire_; }
  Streams& streams() { return streams_; }
  Events& events() { return events_; }
  Arrays& arrays() { return arrays_; }
  DeviceMemory& memory() { return memory_; }
  HostMemory& host_memory() { return host_memory_; }
  Waiting& waiting() { return waiting_; }
  HostFunctions& host_functions() { return host_functions_; }
  Copies& copies() { return copies_; }
  Modules& modules() { return modules_; }
  Kernels& kernels() { return kernels_; }
  VirtualMemory& virtual_memory() { return virtual_memory_; }
  Printing& printing() { return printing_; }
  KernelHeap& heap() { return heap_; }
  Captures& captures() { return *captures_; }

 private:
  const std::uint64_t serial_;
  Wire wire_;
  Streams streams_;
  Events events_;
  Arrays arrays_;
  DeviceMemory memory_;
  HostMemory host_memory_;
  Waiting waiting_;
  HostFunctions host_functions_;
  Copies copies_;
  Modules modules_;
  Kernels kernels_;
  VirtualMemory virtual_memory_;
  Printing printing_;
  KernelHeap heap_;
  std::unique_ptr<Captures> captures_;
};

}  // namespace slate::client
