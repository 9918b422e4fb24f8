#include "tools/run_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "ipc/rendezvous.h"
#include "tools/elf_file.h"

namespace slate::tools {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLibrary = "libcudart.so.13";

std::string environment(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr ? value : "";
}

/// Puts `value` before what the variable says already.
void prepend(const char* name, const std::string& value) {
  const std::string before = environment(name);
  setenv(name, before.empty() ? value.c_str() : (value + ":" + before).c_str(), 1);
}

bool is_program(const std::string& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored) && access(path.c_str(), X_OK) == 0;
}

}  // namespace

std::optional<std::string> find_program(const std::string& name, const std::string& path_variable) {
  if (name.empty()) return std::nullopt;
  std::error_code ignored;
  if (name.find('/') != std::string::npos) {
    return fs::exists(name, ignored) ? std::optional(name) : std::nullopt;
  }
  std::size_t begin = 0;
  while (begin <= path_variable.size()) {
    const std::size_t end = std::min(path_variable.find(':', begin), path_variable.size());
    const std::string folder = path_variable.substr(begin, end - begin);
    const std::string candidate = (folder.empty() ? "." : folder) + "/" + name;
    if (is_program(candidate)) return candidate;
    begin = end + 1;
  }
  return std::nullopt;
}

Result<std::string> find_cudart_folder(const std::string& own_path) {
  const fs::path own_folder = fs::path(own_path).parent_path();
  // In the build tree, beside an installed slatectl, and where the package puts it.
  for (const char* place : {"../lib/cudart", "../" SLATE_INSTALLED_CUDART, "../lib/slate"}) {
    std::error_code error;
    const fs::path folder = fs::weakly_canonical(own_folder / place, error);
    if (!error && fs::exists(folder / kLibrary, error)) return folder.string();
  }
  return fail(ErrorCode::kIo, fmt::format("slate's {} is not where it was installed, near {}",
                                          kLibrary, own_folder.string()));
}

int run_command(const std::string& runtime_dir, const std::vector<std::string>& command) {
  const std::string& name = command.front();
  const auto program = find_program(name, environment("PATH"));
  if (!program) {
    fmt::print(stderr, "slatectl: {}: not found\n", name);
    return 127;
  }
  std::error_code error;
  const auto cudart = find_cudart_folder(fs::read_symlink("/proc/self/exe", error).string());
  if (!cudart) {
    fmt::print(stderr, "slatectl: {}\n", cudart.error().message);
    return 1;
  }
  // A file that may be executed but not read cannot be looked at; it is started as it is.
  const auto facts = inspect_elf_file(*program).value_or(ElfFacts{});
  if (facts.carries_runtime()) {
    fmt::print(stderr,
               "slatectl: {} carries the CUDA runtime inside (nvcc's default): relink with "
               "-cudart shared; it would run past slate\n",
               name);
    return 2;
  }
  prepend("LD_LIBRARY_PATH", *cudart);
  if (facts.has_rpath) prepend("LD_PRELOAD", *cudart + "/" + kLibrary);
  setenv("SLATE_RUNTIME_DIR", ipc::runtime_directory(runtime_dir).c_str(), 1);
  std::vector<char*> arguments;
  for (const std::string& argument : command)
    arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  execvp(program->c_str(), arguments.data());
  fmt::print(stderr, "slatectl: {}: {}\n", name, std::strerror(errno));
  return errno == ENOENT ? 127 : 126;
}

}  // namespace slate::tools
