// Again: whether commands that an engine had begun may be carried out again by the next one, from
// the first on, with the same result. A command may be half done, done without anybody knowing, or
// not begun. Pure functions on ranges of addresses. Thread: any.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "device/device.h"

namespace slate::daemon {

/// The memory that one command reads and writes.
struct ReachedRanges {
  std::vector<device::AddressRange> read, written;
  bool reads_anything = false;
  bool writes_anything = false;
  std::string name;      // of its kernel, or what it is
  std::string why_not;   // why it can never be carried out again; empty: see why_not_again()
  bool is_done = false;  // it is not carried out again
};

/// Why these commands, in their order, cannot be carried out again; nullopt: they can. No command
/// may read what itself or a later one writes: that may have happened already.
std::optional<std::string> why_not_again(std::span<const ReachedRanges> commands);

}  // namespace slate::daemon
