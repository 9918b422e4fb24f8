// Spawn: starting another program, with posix_spawn: no signal is blocked or ignored in it,
// whatever this process does with its own.
#pragma once

#include <spawn.h>
#include <sys/types.h>

#include <span>
#include <string>

#include "base/result.h"

namespace slate {

class Spawn {
 public:
  Spawn();
  ~Spawn();
  Spawn(const Spawn&) = delete;
  Spawn& operator=(const Spawn&) = delete;

  /// What the child's descriptors are: add to it with posix_spawn_file_actions_add*().
  posix_spawn_file_actions_t* files() { return &files_; }
  /// The child leads a process group, its own.
  void in_own_group();

  /// `program` is a path; `words` its arguments, the first one its name for itself. Errors: those
  /// of posix_spawn().
  Result<pid_t> start(const std::string& program, std::span<const std::string> words) const;

 private:
  posix_spawn_file_actions_t files_{};
  posix_spawnattr_t attributes_{};
};

}  // namespace slate
