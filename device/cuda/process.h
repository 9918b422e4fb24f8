// Running a program to its end: no shell, no descriptor of ours, a time limit, its words kept. For
// a process of many threads that holds a CUDA context, which must never fork by itself. Any thread;
// the caller waits.
#pragma once

#include <chrono>
#include <filesystem>
#include <span>
#include <string>
#include <utility>

#include "base/result.h"

namespace slate::cuda {

/// A directory of our own (0700) below the system's temporary one, removed with all that is in it.
class WorkDirectory {
 public:
  static Result<WorkDirectory> make();
  /// Removes what killed processes of this user left: such directories older than an hour.
  static void remove_leftovers();
  WorkDirectory(WorkDirectory&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  WorkDirectory& operator=(WorkDirectory&&) = delete;
  ~WorkDirectory();

  const std::filesystem::path& path() const { return path_; }

 private:
  explicit WorkDirectory(std::filesystem::path path) : path_(std::move(path)) {}

  std::filesystem::path path_;  // empty once moved from
};

struct Ended {
  int status = 0;     // as of waitpid()
  std::string words;  // the first 8 KiB of what it wrote to stdout and stderr
};

/// Runs `program` (a path) with `arguments` in a process group of its own. What it says goes by way
/// of the file `words`, which must not be there yet. When `limit` is over the whole group is
/// killed, and that is kIo, as is a program that cannot be started. After `most_cpu` of processor
/// time, in whole seconds, the system ends it by SIGXCPU.
Result<Ended> run_program(const std::string& program, std::span<const std::string> arguments,
                          const std::filesystem::path& words, std::chrono::milliseconds limit,
                          std::chrono::milliseconds most_cpu);

/// All of a file. kIo when it cannot be read.
Result<std::string> read_file(const std::filesystem::path& path,
                              std::size_t most_bytes = std::string::npos);

}  // namespace slate::cuda
