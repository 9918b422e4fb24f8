// Code loaded at run time: modules and libraries are the same here, and so are functions and
// kernels. A module is loaded at once, a library when the first of its kernels is asked for.
#include "client/driver/module.h"

#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "client/driver/front.h"
#include "client/driver/jit_options.h"
#include "client/session/code_image.h"
#include "client/session/say.h"

namespace slate::driver {
namespace {

using client::FatBinary;

CUmodule module_handle(FatBinary* code) {
  return reinterpret_cast<CUmodule>(code);
}
CUlibrary library_handle(FatBinary* code) {
  return reinterpret_cast<CUlibrary>(code);
}

/// What the driver says of code that the device did not take. `text`: PTX that was given as such.
Failure refusal_of(const Error& error, std::string_view text) {
  constexpr unsigned kPtxMajor = 9, kPtxMinor = 0;  // newest PTX of CUDA 13.0
  const Failure refusal(error);
  if (text.empty()) return refusal;
  if (error.code == ErrorCode::kInvalidPtx && client::is_newer_ptx(text, kPtxMajor, kPtxMinor))
    return CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
  // Text for a newer device. Of a fat binary for others, CUDA_ERROR_NO_BINARY_FOR_GPU is said.
  if (error.code == ErrorCode::kNoKernelImage) return CUDA_ERROR_INVALID_PTX;
  return refusal;
}

Answer load_failed(const Error& error, const JitOptions& jit, std::string_view text = {}) {
  jit.write_logs(error.message);
  return std::unexpected(refusal_of(error, text));
}

/// The machine's code of a kernel by what was loaded: PTX, a cubin, a fat binary, nvcc's wrapper.
Maybe<client::Image> image_of(Session& session, const void* code, std::size_t readable,
                              const JitOptions& jit) {
  if (!client::is_code(code, readable)) return deny(CUDA_ERROR_INVALID_IMAGE);
  auto image = client::image_of_code(code, session.capability(), readable, session.runs_ptx_only());
  if (image) return std::move(*image);
  return std::unexpected(load_failed(image.error(), jit).error());
}

/// The code, if it is PTX as text.
std::string_view text_of(const void* code, std::size_t readable) {
  if (!client::is_ptx_text(code)) return {};
  const char* const text = static_cast<const char*>(code);
  return {text, ::strnlen(text, readable)};
}

Answer load_module(Session& session, CUmodule* module, const void* code, std::size_t readable,
                   const JitOptions& jit) {
  if (module == nullptr || code == nullptr || !are_options(jit.options, jit.values, jit.count))
    return deny(CUDA_ERROR_INVALID_VALUE);
  if (auto ok = session.captures().check_allows(); !ok) return ok;
  auto image = image_of(session, code, readable, jit);
  if (!image) return std::unexpected(image.error());
  client::Code& all = Process::get().code();
  FatBinary* const loaded = all.add_library(std::move(*image));
  if (auto ok = all.load(session, *loaded); !ok) {
    all.remove_binary(loaded, &session);
    return load_failed(ok.error(), jit, text_of(code, readable));
  }
  jit.write_logs({});
  *module = module_handle(loaded);
  return {};
}

Maybe<std::vector<char>> read_file(const char* name) {
  std::ifstream file(name, std::ios::binary);
  if (!file) return deny(CUDA_ERROR_FILE_NOT_FOUND);
  return std::vector<char>{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

/// Whether the caller promises that the code stays where it is. An option without a value is set:
/// cuBLASLt gives none.
bool is_preserved(const CUlibraryOption* options, void** values, unsigned count) {
  for (unsigned i = 0; i < count; ++i) {
    if (options[i] == CU_LIBRARY_BINARY_IS_PRESERVED)
      return values == nullptr || values[i] != nullptr;
  }
  return false;
}

Maybe<FatBinary*> code_of(const void* handle) {
  auto* const code = static_cast<FatBinary*>(const_cast<void*>(handle));
  if (!Process::get().code().is_library(code)) return deny(CUDA_ERROR_INVALID_HANDLE);
  return code;
}

/// `body`, a (Session&, FatBinary&) -> Answer, with a library or a module, as a (Session&) ->
/// Answer. Requires: `body` outlives it.
template <typename Body>
auto with_code(const void* handle, const Body& body) noexcept {
  return [handle, &body](Session& session) -> Answer {
    auto code = code_of(handle);
    if (!code) return std::unexpected(code.error());
    return body(session, **code);
  };
}

/// Runs `body` with a library. That takes no context.
template <typename Body>
CUresult about_library(CUlibrary handle, const Body& body,
                       const char* name = __builtin_FUNCTION()) noexcept {
  return without_context(with_code(handle, body), name);
}

template <typename Body>
CUresult about_module(CUmodule handle, const Body& body,
                      const char* name = __builtin_FUNCTION()) noexcept {
  return with_session(with_code(handle, body), name);
}

/// `absent`: the answer for a name that is not in the code.
Answer find_kernel(Session& session, FatBinary& code, const char* name, CUresult absent,
                   client::Kernel*& kernel) {
  if (name == nullptr) return deny(CUDA_ERROR_INVALID_VALUE);
  auto found = Process::get().code().library_kernel(session, code, name);
  if (found) {
    kernel = *found;
    return {};
  }
  if (found.error().code == ErrorCode::kSymbolNotFound) return deny(absent);
  return std::unexpected<Failure>(found.error());
}

Answer tell_place(const Result<client::Range>& place, CUdeviceptr* address, std::size_t* bytes) {
  if (!place) return std::unexpected<Failure>(place.error());
  if (address != nullptr) *address = place->address;
  if (bytes != nullptr) *bytes = place->bytes;
  return {};
}

/// A variable of the device.
Answer tell_variable(Session& session, FatBinary& code, const char* name, CUdeviceptr* address,
                     std::size_t* bytes) {
  if (name == nullptr) return deny(CUDA_ERROR_INVALID_VALUE);
  return tell_place(Process::get().code().library_variable(session, code, name), address, bytes);
}

Answer count_kernels(Session& session, FatBinary& code, unsigned* count) {
  const auto names = Process::get().code().library_kernels(session, code);
  if (!names) return std::unexpected<Failure>(names.error());
  return give(count, names->size());
}

}  // namespace

std::size_t enumerate_functions(CUmodule module, void (*callback)(void* user, CUfunction function),
                                void* user) {
  unsigned count = 0;
  if (cuModuleGetFunctionCount(&count, module) != CUDA_SUCCESS) return 0;
  std::vector<CUfunction> functions(count);
  if (cuModuleEnumerateFunctions(functions.data(), count, module) != CUDA_SUCCESS) return 0;
  for (const CUfunction each : functions) callback(user, each);
  return count;
}

}  // namespace slate::driver

using namespace slate::driver;
using namespace slate;

extern "C" {

CUresult cuModuleLoadData(CUmodule* module, const void* code) {
  return with_session(
      [&](Session& session) { return load_module(session, module, code, ~std::size_t{0}, {}); });
}

CUresult cuModuleLoadDataEx(CUmodule* module, const void* code, unsigned count,
                            CUjit_option* options, void** values) {
  return with_session([&](Session& session) {
    return load_module(session, module, code, ~std::size_t{0}, {count, options, values});
  });
}

CUresult cuModuleLoadFatBinary(CUmodule* module, const void* code) {
  return cuModuleLoadData(module, code);
}

CUresult cuModuleLoad(CUmodule* module, const char* name) {
  return with_session([&](Session& session) -> Answer {
    if (module == nullptr || name == nullptr) return deny(CUDA_ERROR_INVALID_VALUE);
    const auto bytes = read_file(name);
    if (!bytes) return std::unexpected(bytes.error());
    return load_module(session, module, bytes->data(), bytes->size(), {});
  });
}

CUresult cuModuleUnload(CUmodule module) {
  return about_module(module, [](Session& session, FatBinary& code) -> Answer {
    if (auto ok = session.captures().check_allows(); !ok) return ok;
    Process::get().code().remove_binary(&code, &session);
    return {};
  });
}

CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  return about_module(module, [&](Session& session, FatBinary& code) -> Answer {
    client::Kernel* kernel = nullptr;
    if (auto ok = find_kernel(session, code, name, CUDA_ERROR_NOT_FOUND, kernel); !ok) return ok;
    return give(function, reinterpret_cast<CUfunction>(kernel));
  });
}

CUresult cuModuleGetGlobal_v2(CUdeviceptr* address, std::size_t* bytes, CUmodule module,
                              const char* name) {
  return about_module(module, [&](Session& session, FatBinary& code) {
    return tell_variable(session, code, name, address, bytes);
  });
}

CUresult cuModuleGetFunctionCount(unsigned* count, CUmodule module) {
  return about_module(module, [&](Session& session, FatBinary& code) {
    return count_kernels(session, code, count);
  });
}

CUresult cuModuleEnumerateFunctions(CUfunction* functions, unsigned count, CUmodule module) {
  return about_module(module, [&](Session& session, FatBinary& code) -> Answer {
    return client::tell_kernels(session, code, functions, count);
  });
}

CUresult cuLibraryLoadData(CUlibrary* library, const void* code, CUjit_option* options,
                           void** values, unsigned count, CUlibraryOption* library_options,
                           void** library_values, unsigned library_count) {
  return with_device([&](Session& session) -> Answer {
    const JitOptions jit{count, options, values};
    if (library == nullptr || code == nullptr || !are_options(options, values, count) ||
        (library_count > 0 && library_options == nullptr)) {
      return deny(CUDA_ERROR_INVALID_VALUE);
    }
    if (client::is_wrapper(code) && is_preserved(library_options, library_values, library_count))
      return give(library, library_handle(Process::get().code().add_lazy_library(code)));
    auto image = image_of(session, code, ~std::size_t{0}, jit);
    if (!image) return std::unexpected(image.error());
    jit.write_logs({});
    return give(library, library_handle(Process::get().code().add_library(std::move(*image))));
  });
}

CUresult cuLibraryLoadFromFile(CUlibrary* library, const char* name, CUjit_option* options,
                               void** values, unsigned count, CUlibraryOption* library_options,
                               void**, unsigned library_count) {
  return with_device([&](Session& session) -> Answer {
    const JitOptions jit{count, options, values};
    if (library == nullptr || name == nullptr || !are_options(options, values, count) ||
        (library_count > 0 && library_options == nullptr)) {
      return deny(CUDA_ERROR_INVALID_VALUE);
    }
    const auto bytes = read_file(name);
    if (!bytes) return std::unexpected(bytes.error());
    auto image = image_of(session, bytes->data(), bytes->size(), jit);
    if (!image) return std::unexpected(image.error());
    jit.write_logs({});
    return give(library, library_handle(Process::get().code().add_library(std::move(*image))));
  });
}

CUresult cuLibraryUnload(CUlibrary library) {
  return about_library(library, [](Session& session, FatBinary& code) -> Answer {
    Process::get().code().remove_binary(&code, &session);
    return {};
  });
}

CUresult cuLibraryGetKernel(CUkernel* handle, CUlibrary library, const char* name) {
  return about_library(library, [&](Session& session, FatBinary& code) -> Answer {
    // The code of another device may have the kernel.
    const CUresult absent = code.wrapper != nullptr && client::has_several_codes(code.wrapper)
                                ? CUDA_ERROR_NO_BINARY_FOR_GPU
                                : CUDA_ERROR_NOT_FOUND;
    client::Kernel* kernel = nullptr;
    if (auto ok = find_kernel(session, code, name, absent, kernel); !ok) return ok;
    return give(handle, reinterpret_cast<CUkernel>(kernel));
  });
}

CUresult cuLibraryGetModule(CUmodule* module, CUlibrary library) {
  return about_library(library, [&](Session& session, FatBinary& code) -> Answer {
    if (auto ok = Process::get().code().load(session, code); !ok)
      return std::unexpected<Failure>(ok.error());
    return give(module, module_handle(&code));
  });
}

CUresult cuLibraryGetGlobal(CUdeviceptr* address, std::size_t* bytes, CUlibrary library,
                            const char* name) {
  return about_library(library, [&](Session& session, FatBinary& code) {
    return tell_variable(session, code, name, address, bytes);
  });
}

CUresult cuLibraryGetManaged(CUdeviceptr* address, std::size_t* bytes, CUlibrary library,
                             const char* name) {
  return about_library(library, [&](Session& session, FatBinary& code) -> Answer {
    if (name == nullptr) return deny(CUDA_ERROR_INVALID_VALUE);
    return tell_place(Process::get().code().library_managed(session, code, name), address, bytes);
  });
}

CUresult cuLibraryGetKernelCount(unsigned* count, CUlibrary library) {
  return about_library(library, [&](Session& session, FatBinary& code) {
    return count_kernels(session, code, count);
  });
}

CUresult cuLibraryEnumerateKernels(CUkernel* kernels, unsigned count, CUlibrary library) {
  return about_library(library, [&](Session& session, FatBinary& code) -> Answer {
    return client::tell_kernels(session, code, kernels, count);
  });
}

}  // extern "C"
