// Restart: whether a launch that was broken off anywhere may run again from its beginning, with the
// same result. LaunchReach: the allocations that a launch can reach. Both follow from the kernel's
// reach and the launch's own parameters. Rules: docs/injector.md. They err only towards "no" and
// "everything". Pure functions. Thread: any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "injector/analysis/reach.h"

namespace slate::injector {

using AllocationId = std::uint64_t;

/// What the caller knows of memory.
struct MemoryMap {
  /// The allocation, or the module's variable, that holds the byte at this address; nothing if none
  /// is known to. Addresses that share memory (mapped twice) have one id.
  std::function<std::optional<AllocationId>(std::uint64_t address)> allocation_at;
  /// The allocation behind the handle of a texture or surface. May be null: none is known.
  std::function<std::optional<AllocationId>(std::uint64_t handle)> allocation_of_image;
  /// What allocation_at() says of the addresses of the kernel's variable with this name; nothing if
  /// it knows none of them. May be null: it knows no variable.
  std::function<std::optional<AllocationId>(const std::string& variable)> variable_named = nullptr;
};

/// What one launch can reach.
struct LaunchReach {
  struct Place {
    AllocationId allocation = 0;
    bool read = false;
    bool written = false;
  };
  bool everything = false;             // an address is not known: any memory can be reached
  bool writes_everything = false;      // the same of an address that is written
  std::vector<Place> allocations;      // distinct, in the order of the text
  std::vector<std::string> variables;  // of the module
};

/// `parameters`: as they are launched, without padding at the end. Words beyond their end are not
/// known.
LaunchReach reach_of_launch(const Reach& reach, std::span<const std::byte> parameters,
                            const MemoryMap& memory);

struct Restart {
  std::string why_not;  // one sentence, with a line of the PTX; empty: it may be restarted
  bool restartable() const { return why_not.empty(); }
};

/// A restart requires that nothing of the first run is under way any more, and that no later work
/// has written to what it reads. The answer holds for any blocks of the launch, too: blocks that
/// have ended, that were broken off and that were never begun may each run again, or not, as long
/// as all have ended at last.
Restart may_restart(const Reach& reach, std::span<const std::byte> parameters,
                    const MemoryMap& memory);

/// The answer for a launch whose pointers are all to allocations of their own.
Restart may_restart_if_distinct(const Reach& reach);

}  // namespace slate::injector
