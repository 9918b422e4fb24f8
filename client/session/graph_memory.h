// GraphMemory: memory that nodes of graphs allocate. It has its address and its place on the device
// as long as the node lives, so that each launch finds it there. Its last owner frees it: the
// program, while it has it allocated, else the last graph with the node.
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
  /// Allocates the memory on the device. kInvalidValue for 0 bytes.
  static Allowed<std::shared_ptr<GraphMemory>> make(Session& session, std::uint64_t bytes);
  /// Frees it on the device, unless the program still has it or its session is over.
  ~GraphMemory();
  GraphMemory(const GraphMemory&) = delete;
  GraphMemory& operator=(const GraphMemory&) = delete;

  std::uint64_t address() const { return address_; }
  std::uint64_t bytes() const { return bytes_; }
  /// Whether the program has it: from the launch of the allocating node to that of the freeing one.
  bool is_allocated() const;
  void set_allocated(bool allocated);

  /// Whether some graph's memory begins here; also of a destroyed graph that left it to the
  /// program.
  static bool is_of_graphs(Session& session, std::uint64_t address);
  /// Frees such memory for the program. False when it is none and must be freed as any other.
  /// kInvalidValue when it is not allocated.
  static Allowed<bool> free_by_program(Session& session, std::uint64_t address);

  struct Totals {
    std::uint64_t used = 0, used_high = 0, reserved = 0, reserved_high = 0;
  };
  static Totals totals();
  // Attributes of a device, numbered as in all of CUDA's APIs. kInvalidValue for others. A
  // high-water mark can be set to 0 only, which takes it back to the present.
  static Allowed<std::uint64_t> attribute(int number);
  static Allowed<void> set_attribute(int number, std::uint64_t value);
  /// fork(): lock before, unlock after on both sides. Graphs does this, as its lock comes first.
  static void lock_for_fork() SLATE_NO_THREAD_SAFETY_ANALYSIS;
  static void unlock_after_fork() SLATE_NO_THREAD_SAFETY_ANALYSIS;

 private:
  GraphMemory(std::uint64_t session, std::uint64_t address, std::uint64_t bytes)
      : session_(session), address_(address), bytes_(bytes) {}
  /// The graph memory that begins here; null when there is none.
  static std::shared_ptr<GraphMemory> find(Session& session, std::uint64_t address);

  const std::uint64_t session_;  // serial
  const std::uint64_t address_;
  const std::uint64_t bytes_;
  bool allocated_ = false;
};

}  // namespace slate::client
