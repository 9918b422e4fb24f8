#include "tools/whole_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace slate::tools {
namespace {

namespace fs = std::filesystem;

/// Errors call the file `name`.
Result<void> write(const std::string& path, std::string_view text, const std::string& name) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  if (!file) return fail_errno(name);
  file << text;
  file.close();
  if (!file) return fail_errno(name);
  return {};
}

}  // namespace

Result<void> write_whole(const std::string& path, std::string_view text) {
  std::error_code error;
  const bool is_link = fs::is_symlink(path, error);
  if ((is_link || fs::exists(path, error)) && !fs::is_regular_file(path, error))
    return write(path, text, path);
  const std::string target = is_link ? fs::canonical(path, error).string() : path;
  // A link into another process's files, as /dev/stdout may be one, need not lead to a name.
  if (is_link && error) return write(path, text, path);
  const std::string beside = fmt::format("{}.{}.part", target, ::getpid());
  if (const auto written = write(beside, text, path); !written) {
    fs::remove(beside, error);
    return written;
  }
  fs::rename(beside, target, error);
  if (!error) return {};
  const auto failure = fail(ErrorCode::kIo, path + ": " + error.message());
  fs::remove(beside, error);
  return failure;
}

}  // namespace slate::tools
