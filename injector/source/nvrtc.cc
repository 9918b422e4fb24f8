#include "injector/source/nvrtc.h"

#include <dlfcn.h>
#include <nvrtc.h>

#include <cstdlib>
#include <filesystem>

#include "injector/source/headers.h"

namespace slate::source {

struct Nvrtc::Functions {
  decltype(&nvrtcVersion) version;
  decltype(&nvrtcGetErrorString) error_string;
  decltype(&nvrtcCreateProgram) create;
  decltype(&nvrtcDestroyProgram) destroy;
  decltype(&nvrtcCompileProgram) compile;
  decltype(&nvrtcGetPTXSize) ptx_size;
  decltype(&nvrtcGetPTX) ptx;
  decltype(&nvrtcGetProgramLogSize) log_size;
  decltype(&nvrtcGetProgramLog) log;
  decltype(&nvrtcAddNameExpression) add_name;
  decltype(&nvrtcGetLoweredName) lowered_name;
};

namespace {

template <typename Function>
bool load(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

std::vector<std::string> places() {
  std::vector<std::string> result{"libnvrtc.so.13"};
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
    if (const char* home = std::getenv(variable); home != nullptr && *home != '\0') {
      result.push_back(std::string(home) + "/lib64/libnvrtc.so.13");
    }
  }
  result.emplace_back("/usr/local/cuda/lib64/libnvrtc.so.13");
  return result;
}

/// include/ of the toolkit that the library at `path` belongs to, and CCCL's below it.
std::vector<std::string> includes_beside(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  std::vector<fs::path> homes;
  const fs::path real = fs::canonical(path, error);
  for (fs::path home = real.parent_path(); home.has_relative_path(); home = home.parent_path()) {
    homes.push_back(home);
    if (homes.size() > 4) break;
  }
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
    if (const char* home = std::getenv(variable)) homes.emplace_back(home);
  }
  homes.emplace_back("/usr/local/cuda");
  for (const auto& home : homes) {
    const fs::path include = home / "include";
    if (!fs::exists(include / "cuda_runtime.h", error)) continue;
    std::vector<std::string> found{include.string()};
    if (fs::exists(include / "cccl", error)) found.push_back((include / "cccl").string());
    return found;
  }
  return {};
}

/// NVRTC opens its other library by name alone, which the loader only finds where the toolkit is
/// among its folders; but what is open already it takes. Where this fails, NVRTC says so itself.
void open_builtins_beside(const std::string& path, std::pair<int, int> version) {
  const std::string name = "libnvrtc-builtins.so." + std::to_string(version.first) + "." +
                           std::to_string(version.second);
  (void)dlopen((std::filesystem::path(path).parent_path() / name).c_str(), RTLD_NOW | RTLD_LOCAL);
}

/// Destroys the program when it goes out of scope.
struct Program {
  nvrtcProgram handle = nullptr;
  decltype(&nvrtcDestroyProgram) destroy = nullptr;
  Program() = default;
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  ~Program() {
    if (handle != nullptr) destroy(&handle);
  }
};

}  // namespace

Result<Nvrtc> Nvrtc::open() {
  void* library = nullptr;
  std::string tried;
  for (const auto& place : places()) {
    library = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library != nullptr) break;
    tried += (tried.empty() ? "" : ", ") + place;
  }
  if (library == nullptr) {
    return fail(ErrorCode::kNotSupported, "NVRTC is needed for CUDA C++, and none of " + tried +
                                              " could be opened; set CUDA_HOME");
  }
  auto functions = std::make_shared<Functions>();
  const bool complete = load(library, "nvrtcVersion", functions->version) &&
                        load(library, "nvrtcGetErrorString", functions->error_string) &&
                        load(library, "nvrtcCreateProgram", functions->create) &&
                        load(library, "nvrtcDestroyProgram", functions->destroy) &&
                        load(library, "nvrtcCompileProgram", functions->compile) &&
                        load(library, "nvrtcGetPTXSize", functions->ptx_size) &&
                        load(library, "nvrtcGetPTX", functions->ptx) &&
                        load(library, "nvrtcGetProgramLogSize", functions->log_size) &&
                        load(library, "nvrtcGetProgramLog", functions->log) &&
                        load(library, "nvrtcAddNameExpression", functions->add_name) &&
                        load(library, "nvrtcGetLoweredName", functions->lowered_name);
  if (!complete) return fail(ErrorCode::kNotSupported, "this libnvrtc lacks functions");
  Nvrtc nvrtc;
  functions->version(&nvrtc.version_.first, &nvrtc.version_.second);
  Dl_info where{};
  if (dladdr(reinterpret_cast<void*>(functions->version), &where) != 0 && where.dli_fname) {
    nvrtc.includes_ = includes_beside(where.dli_fname);
    open_builtins_beside(where.dli_fname, nvrtc.version_);
  }
  nvrtc.functions_ = std::move(functions);
  return nvrtc;
}

Result<NvrtcOutput> Nvrtc::compile(const std::string& text, const std::string& name,
                                   const std::vector<std::string>& options,
                                   const std::vector<std::string>& expressions) const {
  const Functions& call = *functions_;
  std::vector<const char*> headers, header_names, arguments;
  for (const auto& header : stand_ins()) {
    headers.push_back(header.text.data());
    header_names.push_back(header.name.data());
  }
  for (const auto& option : options) arguments.push_back(option.c_str());
  const auto failed = [&](const char* what, nvrtcResult result) {
    return fail(ErrorCode::kInternal, std::string(what) + ": " + call.error_string(result));
  };
  Program program;
  program.destroy = call.destroy;
  nvrtcResult result =
      call.create(&program.handle, text.c_str(), name.c_str(), static_cast<int>(headers.size()),
                  headers.data(), header_names.data());
  if (result != NVRTC_SUCCESS) return failed("nvrtcCreateProgram", result);
  for (const auto& expression : expressions) {
    result = call.add_name(program.handle, expression.c_str());
    if (result != NVRTC_SUCCESS) return failed("nvrtcAddNameExpression", result);
  }
  NvrtcOutput output;
  result = call.compile(program.handle, static_cast<int>(arguments.size()), arguments.data());
  std::size_t size = 0;
  if (call.log_size(program.handle, &size) == NVRTC_SUCCESS && size > 1) {
    output.log.resize(size);
    call.log(program.handle, output.log.data());
    output.log.resize(size - 1);
  }
  const bool by_the_text = result == NVRTC_ERROR_COMPILATION ||
                           result == NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID ||
                           result == NVRTC_ERROR_INVALID_OPTION;
  if (result != NVRTC_SUCCESS && !by_the_text) return failed("nvrtcCompileProgram", result);
  if (result != NVRTC_SUCCESS) {
    if (output.log.empty()) output.log = call.error_string(result);
    return output;
  }
  result = call.ptx_size(program.handle, &size);
  if (result != NVRTC_SUCCESS) return failed("nvrtcGetPTXSize", result);
  output.ptx.resize(size);
  result = call.ptx(program.handle, output.ptx.data());
  if (result != NVRTC_SUCCESS) return failed("nvrtcGetPTX", result);
  while (!output.ptx.empty() && output.ptx.back() == '\0') output.ptx.pop_back();
  for (const auto& expression : expressions) {
    const char* lowered = nullptr;
    result = call.lowered_name(program.handle, expression.c_str(), &lowered);
    if (result != NVRTC_SUCCESS) return failed("nvrtcGetLoweredName", result);
    output.lowered.emplace_back(expression, lowered);
  }
  output.ok = true;
  return output;
}

}  // namespace slate::source
