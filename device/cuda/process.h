// Runs a program to its end: no shell, no inherited descriptor, a time limit, its output kept. For
// a process of many threads that holds a CUDA context, which must never fork by itself. Thread:
// any; the caller waits.
#pragma once

#include <chrono>
#include <filesystem>
#include <span>
#include <string>
#include <utility>

#include "base/result.h"

namespace slate::cuda {

/// A directory of our own (0700) below the system's temporary one; destruction removes it with all
/// that is in it.
class WorkDirectory {
 public:
  /// Errors: kIo.
  static Result<WorkDirectory> make();
  /// Removes directories older than an hour that killed processes of this user left.
  static void remove_leftovers();
  WorkDirectory(WorkDirectory&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  WorkDirectory& operator=(WorkDirectory&&) = delete;
  ~WorkDirectory();

  const std::filesystem::path& path() const { return path_; }

 private:
  explicit WorkDirectory(std::filesystem::path path) : path_(std::move(path)) {}

  std::filesystem::path path_;  // empty once moved from
};

/// How a program ended.
struct Ended {
  int status = 0;     // as of waitpid()
  std::string words;  // the first 8 KiB of stdout and stderr
};

/// Runs `program` (a path) with `arguments` in a process group of its own, and waits for its end.
/// Its output goes through the file `words`, which must not exist. After `limit` the whole group is
/// killed. After `most_cpu` of processor time, rounded up to seconds, the system ends it by
/// SIGXCPU. It has 8 GiB of memory and 64 descriptors at most. Errors: kIo when it cannot be
/// started or `limit` has passed.
Result<Ended> run_program(const std::string& program, std::span<const std::string> arguments,
                          const std::filesystem::path& words, std::chrono::milliseconds limit,
                          std::chrono::milliseconds most_cpu);

/// The contents of a file, up to `most_bytes`. Errors: kIo when it cannot be read.
Result<std::string> read_file(const std::filesystem::path& path,
                              std::size_t most_bytes = std::string::npos);

}  // namespace slate::cuda
