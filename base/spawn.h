// Spawn: starts another program with posix_spawn(). No signal is blocked or ignored in the program,
// whatever this process does with its own. It does not wait for the program. Thread: one at a time
// for each object.
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

  /// Descriptors of the child: add actions with posix_spawn_file_actions_add*().
  posix_spawn_file_actions_t* files() { return &files_; }
  /// Lets the child lead a process group of its own.
  void in_own_group();

  /// Starts `program`, a path. `words` are its arguments, the first one its name for itself.
  /// Returns its pid, which the caller waits for. Errors: kIo with the text of posix_spawn()'s
  /// error.
  Result<pid_t> start(const std::string& program, std::span<const std::string> words) const;

 private:
  posix_spawn_file_actions_t files_{};
  posix_spawnattr_t attributes_{};
};

}  // namespace slate
