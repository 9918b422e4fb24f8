// Memory that the nodes of graphs allocate. It has its address from the day the node is made, and
// its place on the device as long: a graph that is launched again finds it where it was. Its owner
// at the end frees it: the program, while it is allocated as the program sees it, else the last
// graph that has the node.
//
// Guarded by a mutex of its own.
#pragma once

#include <cstdint>
#include <memory>

#include "client/session/refused.h"
#include "client/session/session.h"

namespace slate::client {

class GraphMemory {
 public:
  /// Allocates it on the device. kInvalidValue for no bytes.
  static Allowed<std::shared_ptr<GraphMemory>> make(Session& session, std::uint64_t bytes);
  /// Frees it on the device unless the program still has it, or its session is over.
  ~GraphMemory();
  GraphMemory(const GraphMemory&) = delete;
  GraphMemory& operator=(const GraphMemory&) = delete;

  std::uint64_t address() const { return address_; }
  std::uint64_t bytes() const { return bytes_; }
  /// True from the launch of the node that allocates it to that of the one that frees it.
  bool is_allocated() const;
  void set_allocated(bool allocated);

  /// Memory of some graph that begins here, also of one that is gone and left it to the program.
  static bool is_of_graphs(Session& session, std::uint64_t address);
  /// The program frees what may be such memory. False when it is not and has to be freed as any
  /// other; kInvalidValue when it is not allocated.
  static Allowed<bool> free_by_program(Session& session, std::uint64_t address);

  struct Totals {
    std::uint64_t used = 0, used_high = 0, reserved = 0, reserved_high = 0;
  };
  static Totals totals();
  static void reset_high_used();
  static void reset_high_reserved();
  /// fork(): lock before, unlock after on both sides. Graphs does this, as its lock comes first.
  static void lock_for_fork();
  static void unlock_after_fork();

 private:
  GraphMemory(std::uint64_t session, std::uint64_t address, std::uint64_t bytes)
      : session_(session), address_(address), bytes_(bytes) {}
  /// The memory of some graph that begins here; null when it is none's.
  static std::shared_ptr<GraphMemory> find(Session& session, std::uint64_t address);

  const std::uint64_t session_;  // serial
  const std::uint64_t address_;
  const std::uint64_t bytes_;
  bool allocated_ = false;
};

}  // namespace slate::client
