#include "base/spawn.h"

#include <signal.h>
#include <unistd.h>

#include <vector>

namespace slate {

Spawn::Spawn() {
  posix_spawn_file_actions_init(&files_);
  posix_spawnattr_init(&attributes_);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes_, &none);
  posix_spawnattr_setsigdefault(&attributes_, &all);
  posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
}

Spawn::~Spawn() {
  posix_spawnattr_destroy(&attributes_);
  posix_spawn_file_actions_destroy(&files_);
}

void Spawn::in_own_group() {
  posix_spawnattr_setpgroup(&attributes_, 0);
  posix_spawnattr_setflags(&attributes_,
                           POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
}

Result<pid_t> Spawn::start(const std::string& program, std::span<const std::string> words) const {
  std::vector<std::string> texts(words.begin(), words.end());  // posix_spawn wants to write
  std::vector<char*> argv;
  for (std::string& text : texts) argv.push_back(text.data());
  argv.push_back(nullptr);
  pid_t pid = 0;
  const int error = posix_spawn(&pid, program.c_str(), &files_, &attributes_, argv.data(), environ);
  if (error != 0) return fail_errno("starting " + program, error);
  return pid;
}

}  // namespace slate
