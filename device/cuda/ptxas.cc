#include "device/cuda/ptxas.h"

#include <fmt/core.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <span>
#include <utility>

#include "device/cuda/image.h"
#include "device/cuda/one_line.h"
#include "device/cuda/process.h"

namespace slate::cuda {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds kVersionLimit{60};

bool can_be_started(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored) && ::access(path.c_str(), X_OK) == 0;
}

std::string_view environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

/// Removes spaces and comments from the front of PTX.
void skip_blank(std::string_view& text) {
  for (;;) {
    text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n\f\v"), text.size()));
    const bool line = text.starts_with("//");
    if (!line && !text.starts_with("/*")) return;
    const std::string_view end = line ? "\n" : "*/";
    const std::size_t at = text.find(end, 2);
    text.remove_prefix(at == std::string_view::npos ? text.size() : at + end.size());
  }
}

std::string_view take_word(std::string_view& text) {
  skip_blank(text);
  const std::string_view word = text.substr(0, text.find_first_of(" \t\r\n\f\v,/"));
  text.remove_prefix(word.size());
  return word;
}

/// "release 13.0" in what --version prints; 0 if it is not there.
int major_version(std::string_view words) {
  constexpr std::string_view kBefore = "release ";
  const std::size_t at = words.find(kBefore);
  if (at == std::string_view::npos) return 0;
  const std::string_view number = words.substr(at + kBefore.size());
  int major = 0;
  std::from_chars(number.data(), number.data() + number.size(), major);
  return major;
}

/// What it said, with our name for its input.
std::string told(std::string words, const std::string& input) {
  std::size_t at = input.empty() ? std::string::npos : words.find(input);
  for (; at != std::string::npos; at = words.find(input, at)) {
    words.replace(at, input.size(), "input");
  }
  return one_line(words);
}

Result<void> check_end(const std::string& program, const Ended& ended, const std::string& input) {
  const std::string words = told(ended.words, input);
  if (WIFSIGNALED(ended.status) && WTERMSIG(ended.status) == SIGXCPU)
    return fail(ErrorCode::kLimit, program + " was ended: it took too much processor time");
  if (WIFSIGNALED(ended.status)) {
    return fail(ErrorCode::kInternal,
                fmt::format("{} was ended by signal {} ({}): {}", program, WTERMSIG(ended.status),
                            sigabbrev_np(WTERMSIG(ended.status)), words));
  }
  if (WEXITSTATUS(ended.status) == 0) return {};
  return fail(ErrorCode::kInvalidPtx, fmt::format("{} ended with status {}: {}", program,
                                                  WEXITSTATUS(ended.status), words));
}

}  // namespace

Result<std::string> find_ptxas(const std::string& configured) {
  if (!configured.empty()) {
    if (can_be_started(configured)) return configured;
    return fail(ErrorCode::kNotSupported,
                fmt::format("ptxas = '{}' is no program that can be started", configured));
  }
  std::vector<fs::path> places;
  if (const auto home = environment("CUDA_HOME"); !home.empty()) {
    places.push_back(fs::path(home) / "bin");
  }
  std::string_view path = environment("PATH");
  while (!path.empty()) {
    const std::string_view entry = path.substr(0, path.find(':'));
    path.remove_prefix(std::min(entry.size() + 1, path.size()));
    if (entry.starts_with('/')) places.emplace_back(entry);
  }
  places.emplace_back("/usr/local/cuda/bin");
  for (const fs::path& place : places) {
    if (can_be_started(place / "ptxas")) return (place / "ptxas").string();
  }
  return fail(ErrorCode::kNotSupported,
              "there is no ptxas in $CUDA_HOME/bin, $PATH or /usr/local/cuda/bin");
}

std::string architecture_for(std::string_view ptx, int major, int minor) {
  std::string architecture = fmt::format("sm_{}{}", major, minor);
  std::string_view text = ptx;
  // Only the header's directives come before the target.
  for (int words = 0; words < 8; ++words) {
    const std::string_view word = take_word(text);
    if (word.empty()) break;
    if (word != ".target") continue;
    const std::string_view target = take_word(text);
    if (target.starts_with("sm_") && target.back() >= 'a' && target.back() <= 'z') {
      architecture += target.back();
    }
    break;
  }
  return architecture;
}

Result<std::string> Ptxas::identity() const {
  const Result<Program>& found = program();
  if (!found) return std::unexpected(found.error());
  return found->identity;
}

const Result<Ptxas::Program>& Ptxas::program() const {
  std::call_once(looked_, [this] { program_ = look(); });
  return *program_;
}

Result<Ptxas::Program> Ptxas::look() const {
  const auto useless = [](const std::string& why) { return fail(ErrorCode::kNotSupported, why); };
  auto path = find_ptxas(settings_.path);
  if (!path) return std::unexpected(std::move(path.error()));
  WorkDirectory::remove_leftovers();
  const auto directory = WorkDirectory::make();
  if (!directory) return useless(directory.error().message);
  const std::string arguments[] = {"--version"};
  const auto ended =
      run_program(*path, arguments, directory->path() / "words", kVersionLimit, kVersionLimit);
  if (!ended) return useless(ended.error().message);
  if (const auto good = check_end(*path, *ended, ""); !good) return useless(good.error().message);
  const std::string words = one_line(ended->words);
  const int major = major_version(words);
  if (major == 0) return useless(*path + " does not say its version: " + words);
  if (const int most = settings_.driver_version / 1000; major > most) {
    return useless(
        fmt::format("{} is of CUDA {}, but the driver knows CUDA {} at most", *path, major, most));
  }
  return Program{.path = std::move(*path),
                 .identity = fmt::format("{}; sm_{}{}", words, settings_.major, settings_.minor)};
}

namespace {

/// Writes `ptx` where the assembler finds it.
Result<void> write_text(const std::string& path, std::string_view ptx) {
  std::ofstream file(path, std::ios::binary);
  file.write(ptx.data(), static_cast<std::streamsize>(ptx.size()));
  file.close();
  return file ? Result<void>() : fail(ErrorCode::kIo, "cannot write " + path);
}

Result<std::vector<std::byte>> read_code(const std::string& program, const std::string& path) {
  const auto written = read_file(path);
  if (!written)
    return fail(ErrorCode::kInternal, program + " wrote no code: " + written.error().message);
  const auto bytes = std::as_bytes(std::span(*written));
  if (const auto code = checked_image(device::ImageKind::kCubin, bytes); !code)
    return fail(ErrorCode::kInternal, program + " wrote no code: " + code.error().message);
  return std::vector<std::byte>(bytes.begin(), bytes.end());
}

}  // namespace

/// To its end, which must be a good one.
Result<void> Ptxas::run(const std::string& program, std::span<const std::string> arguments,
                        const std::string& input, const fs::path& words,
                        std::chrono::milliseconds most_cpu) const {
  const auto ended = run_program(program, arguments, words, settings_.most_wait, most_cpu);
  if (!ended) return std::unexpected(ended.error());
  return check_end(program, *ended, input);
}

Result<std::vector<std::byte>> Ptxas::compile(std::string_view ptx,
                                              std::chrono::milliseconds most_cpu) const {
  const Result<Program>& program = this->program();
  if (!program) return std::unexpected(program.error());
  const auto directory = WorkDirectory::make();
  if (!directory) return std::unexpected(directory.error());
  const std::string input = directory->path() / "input.ptx";
  const std::string output = directory->path() / "output.cubin";
  if (const auto done = write_text(input, ptx); !done) return std::unexpected(done.error());
  // Whole programs, at the assembler's own level of optimisation: as the driver compiles.
  const std::string arguments[] = {
      "-arch=" + architecture_for(ptx, settings_.major, settings_.minor), input, "-o", output};
  const auto done = run(program->path, arguments, input, directory->path() / "words", most_cpu);
  if (!done) return std::unexpected(done.error());
  return read_code(program->path, output);
}

Result<Ptxas::Linker> Ptxas::find_linker() const {
  const Result<Program>& program = this->program();
  if (!program) return std::unexpected(program.error());
  const fs::path folder = fs::path(program->path).parent_path();
  const fs::path linker = folder / "nvlink";
  if (!can_be_started(linker))
    return fail(ErrorCode::kNotSupported, "there is no nvlink beside " + program->path);
  for (const char* place :
       {"../lib64", "../lib", "../targets/x86_64-linux/lib", "../targets/sbsa-linux/lib",
        "../lib/x86_64-linux-gnu", "../lib/aarch64-linux-gnu"}) {
    const fs::path library = folder / place / "libcudadevrt.a";
    std::error_code ignored;
    if (fs::is_regular_file(library, ignored)) return Linker{linker, library};
  }
  return fail(ErrorCode::kNotSupported,
              "there is no libcudadevrt.a in the toolkit of " + program->path);
}

Result<void> Ptxas::can_link() const {
  const auto linker = find_linker();
  return linker ? Result<void>() : std::unexpected(linker.error());
}

Result<std::vector<std::byte>> Ptxas::link(std::span<const std::string> ptx,
                                           std::chrono::milliseconds most_cpu) const {
  const auto linker = find_linker();
  if (!linker) return std::unexpected(linker.error());
  const auto directory = WorkDirectory::make();
  if (!directory) return std::unexpected(directory.error());
  const fs::path& folder = directory->path();
  const std::string architecture =
      "-arch=" + architecture_for(ptx.front(), settings_.major, settings_.minor);
  const std::string output = folder / "output.cubin";
  std::vector<std::string> objects = {architecture};
  for (std::size_t i = 0; i < ptx.size(); ++i) {
    const std::string input = folder / fmt::format("input{}.ptx", i);
    objects.push_back(folder / fmt::format("object{}.o", i));
    if (const auto done = write_text(input, ptx[i]); !done) return std::unexpected(done.error());
    const std::string arguments[] = {architecture, "-c", input, "-o", objects.back()};
    const auto done =
        run(program()->path, arguments, input, folder / fmt::format("words{}", i), most_cpu);
    if (!done) return std::unexpected(done.error());
  }
  objects.insert(objects.end(), {linker->library, "-o", output});
  const auto done = run(linker->path, objects, "", folder / "words", most_cpu);
  if (!done) return std::unexpected(done.error());
  return read_code(linker->path, output);
}

}  // namespace slate::cuda
