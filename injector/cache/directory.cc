#include "injector/cache/directory.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "injector/cache/cache.h"
#include "injector/cache/entry.h"

namespace slate::cache {
namespace {

constexpr std::int64_t kLeftoverSeconds = 300;

struct File {
  timespec used;
  std::string name;
  std::uint64_t bytes;

  bool operator<(const File& other) const {
    return std::tie(used.tv_sec, used.tv_nsec, name) <
           std::tie(other.used.tv_sec, other.used.tv_nsec, other.name);
  }
};

/// Also the folders above it, closed to others as the XDG rules want it.
bool make_directories(const std::filesystem::path& path) {
  if (::mkdir(path.c_str(), 0700) == 0 || errno == EEXIST) return true;
  if (errno != ENOENT || !path.has_parent_path() || path.parent_path() == path) return false;
  return make_directories(path.parent_path()) &&
         (::mkdir(path.c_str(), 0700) == 0 || errno == EEXIST);
}

std::unexpected<Error> refuse(const std::filesystem::path& path, const char* why) {
  return fail(ErrorCode::kPermission, "compile cache " + path.string() + ": " + why);
}

/// The entries; leftovers of a crash are removed on the way.
std::vector<File> list(int directory) {
  std::vector<File> files;
  UniqueFd copy(::openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const auto close = [](DIR* each) { ::closedir(each); };
  const std::unique_ptr<DIR, decltype(close)> stream(copy ? ::fdopendir(copy.get()) : nullptr);
  if (!stream) return files;
  copy.release();  // closedir() closes it
  const std::int64_t now = std::time(nullptr);
  while (const dirent* each = ::readdir(stream.get())) {
    const std::string name = each->d_name;
    const bool is_entry = is_entry_name(name);
    struct stat facts {};
    if ((!is_entry && !is_temporary_name(name)) ||
        ::fstatat(directory, name.c_str(), &facts, AT_SYMLINK_NOFOLLOW) != 0) {
      continue;  // not ours, or gone by now
    }
    if (is_entry) {
      files.push_back({facts.st_mtim, name, static_cast<std::uint64_t>(facts.st_size)});
    } else if (now - facts.st_mtim.tv_sec > kLeftoverSeconds) {
      ::unlinkat(directory, name.c_str(), 0);
    }
  }
  return files;
}

std::filesystem::path environment_path(const char* variable) {
  // secure_getenv: libslate may be inside a program that runs with more rights than its caller.
  const char* value = ::secure_getenv(variable);
  return value == nullptr ? "" : value;
}

}  // namespace

Result<UniqueFd> open_directory(const std::filesystem::path& path) {
  if (path.empty()) return fail(ErrorCode::kIo, "compile cache: no directory is known for it");
  if (!make_directories(path)) return fail_errno("compile cache " + path.string());
  // What is checked is what is used from here on: the open directory, not the path.
  UniqueFd directory(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!directory && (errno == ENOTDIR || errno == ELOOP)) return refuse(path, "not a directory");
  if (!directory) return fail_errno("compile cache " + path.string());
  struct stat facts {};
  if (::fstat(directory.get(), &facts) != 0) return fail_errno("compile cache " + path.string());
  if (facts.st_uid != ::geteuid()) return refuse(path, "it belongs to somebody else");
  if ((facts.st_mode & (S_IWGRP | S_IWOTH)) != 0) return refuse(path, "others may write to it");
  return directory;
}

Swept sweep(int directory, std::uint64_t most_bytes, std::string_view keep) {
  std::vector<File> files = list(directory);
  Swept swept;
  for (const File& file : files) swept.bytes += file.bytes;
  if (swept.bytes <= most_bytes) return swept;
  std::ranges::sort(files, std::less<>());
  const std::uint64_t target = most_bytes - most_bytes / 8;
  for (const File& file : files) {
    if (swept.bytes <= target) break;
    if (file.name == keep) continue;
    // Another process may be doing the same: what it removed is gone as well.
    const bool removed = ::unlinkat(directory, file.name.c_str(), 0) == 0;
    if (!removed && errno != ENOENT) continue;
    if (removed) ++swept.evicted;
    swept.bytes -= file.bytes;
  }
  return swept;
}

std::filesystem::path default_directory(std::string_view system_directory) {
  if (auto given = environment_path("SLATE_CACHE_DIR"); !given.empty()) return given;
  if (::geteuid() == 0 && !system_directory.empty()) return system_directory;
  // By the XDG rules a path that is not absolute counts as none.
  if (const auto xdg = environment_path("XDG_CACHE_HOME"); xdg.is_absolute()) return xdg / "slate";
  if (const auto home = environment_path("HOME"); home.is_absolute()) {
    return home / ".cache" / "slate";
  }
  return {};
}

}  // namespace slate::cache
