#include "tools/run_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "ipc/meeting.h"

namespace slate::tools {
namespace {

namespace fs = std::filesystem;

struct Stand {
  Front front;
  const char* name;
  const char* library;
  const char* in_build;   // folder beside slatectl's in the build tree
  const char* installed;  // the same once installed, and where the package puts it
  const char* packaged;
};
constexpr Stand kStands[] = {
    {Front::kDriver, "driver", "libcuda.so.1", "../lib/driver",
     "../" SLATE_INSTALLED_FRONTS "/driver", "../lib/slate/driver"},
    {Front::kCudart, "cudart", "libcudart.so.13", "../lib/cudart", "../" SLATE_INSTALLED_FRONTS,
     "../lib/slate"},
};

const Stand& stand_of(Front front) {
  return kStands[front == Front::kDriver ? 0 : 1];
}

/// NVIDIA's libraries bring a cudart of their own, which ends in libcuda.
constexpr const char* kLibraries[] = {
    "libcuda.so",  "libcublas", "libcudnn", "libcufft",  "libcurand", "libcusolver", "libcusparse",
    "libcutensor", "libnccl",   "libnpp",   "libnvjpeg", "libnvrtc",  "libnvinfer",  "libtorch"};

std::string environment(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr ? value : "";
}

std::string before(const std::string& value, const std::string& others) {
  return others.empty() ? value : value + ":" + others;
}

std::string own_path() {
  std::error_code error;
  return fs::read_symlink("/proc/self/exe", error).string();
}

/// `value` as one word of a shell.
std::string in_quotes(const std::string& value) {
  std::string text = "'";
  for (const char c : value) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
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

std::optional<Front> front_named(const std::string& name) {
  for (const Stand& each : kStands) {
    if (name == each.name) return each.front;
  }
  return std::nullopt;
}

Front front_for(const ElfFacts& program) {
  if (!program.needs("libcudart.so.13")) return Front::kDriver;
  for (const char* library : kLibraries) {
    if (program.needs(library)) return Front::kDriver;
  }
  return Front::kCudart;
}

Result<std::string> find_front_folder(const std::string& own_path, Front front) {
  const fs::path own_folder = fs::path(own_path).parent_path();
  const Stand& stand = stand_of(front);
  for (const char* place : {stand.in_build, stand.installed, stand.packaged}) {
    std::error_code error;
    const fs::path folder = fs::weakly_canonical(own_folder / place, error);
    if (!error && fs::exists(folder / stand.library, error)) return folder.string();
  }
  return fail(ErrorCode::kIo, fmt::format("slate's {} is not where it was installed, near {}",
                                          stand.library, own_folder.string()));
}

Result<Variables> variables_for(const std::string& own_path, Front front, bool has_rpath,
                                const std::string& library_path, const std::string& preload) {
  const auto driver = find_front_folder(own_path, Front::kDriver);
  if (!driver) return std::unexpected(driver.error());
  // What the program starts may need the driver's front, whatever it needs itself.
  std::string path = before(*driver, library_path);
  Variables variables;
  if (front == Front::kCudart) {
    const auto cudart = find_front_folder(own_path, front);
    if (!cudart) return std::unexpected(cudart.error());
    path = before(*cudart, path);
    if (has_rpath) {
      const std::string library = *cudart + "/" + stand_of(front).library;
      variables.emplace_back("LD_PRELOAD", before(library, preload));
    }
  }
  variables.emplace_back("LD_LIBRARY_PATH", path);
  return variables;
}

int run_command(const std::string& runtime_dir, const std::string& front,
                const std::vector<std::string>& command) {
  const std::string& name = command.front();
  const auto program = find_program(name, environment("PATH"));
  if (!program) {
    fmt::print(stderr, "slatectl: {}: not found\n", name);
    return 127;
  }
  // A file that may be executed but not read cannot be looked at.
  const auto facts = inspect_elf_file(*program).value_or(ElfFacts{});
  const auto variables =
      variables_for(own_path(), front_named(front).value_or(front_for(facts)), facts.has_rpath,
                    environment("LD_LIBRARY_PATH"), environment("LD_PRELOAD"));
  if (!variables) {
    fmt::print(stderr, "slatectl: {}\n", variables.error().message);
    return 1;
  }
  for (const auto& [variable, value] : *variables) setenv(variable.c_str(), value.c_str(), 1);
  setenv("SLATE_RUNTIME_DIR", ipc::runtime_directory(runtime_dir).c_str(), 1);
  std::vector<char*> arguments;
  for (const std::string& argument : command)
    arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  execvp(program->c_str(), arguments.data());
  fmt::print(stderr, "slatectl: {}: {}\n", name, std::strerror(errno));
  return errno == ENOENT ? 127 : 126;
}

int env_command(const std::string& runtime_dir, const std::string& front) {
  const auto variables =
      variables_for(own_path(), front_named(front).value_or(Front::kDriver), false,
                    environment("LD_LIBRARY_PATH"), environment("LD_PRELOAD"));
  if (!variables) {
    fmt::print(stderr, "slatectl: {}\n", variables.error().message);
    return 1;
  }
  for (const auto& [variable, value] : *variables)
    fmt::print("export {}={}\n", variable, in_quotes(value));
  fmt::print("export SLATE_RUNTIME_DIR={}\n", in_quotes(ipc::runtime_directory(runtime_dir)));
  return 0;
}

}  // namespace slate::tools
