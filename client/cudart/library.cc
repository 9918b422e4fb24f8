// Code loaded at run time: libraries, their kernels and variables. A kernel's handle is as good as
// one of the program's own kernels.
#include <fstream>
#include <iterator>
#include <vector>

#include "client/cudart/front.h"
#include "client/session/code_image.h"

namespace slate::cudart {
namespace {

/// The lists of options: none of them changes what the code does, so they are only checked.
bool are_options(const void* options, const void* values, unsigned count) {
  return count == 0 || (options != nullptr && values != nullptr);
}

Maybe<client::FatBinary*> library_of(cudaLibrary_t handle) {
  auto* const library = reinterpret_cast<client::FatBinary*>(handle);
  if (!Process::get().code().is_library(library)) return deny(cudaErrorInvalidResourceHandle);
  return library;
}

/// Lazily, as CUDA does: code that does not compile is found out when something in it is asked for.
Answer load(Session& session, cudaLibrary_t* library, const void* code,
            std::size_t readable = ~std::size_t{0}) {
  auto image = client::image_of_code(code, session.capability(), readable, session.runs_ptx_only());
  if (!image) return std::unexpected<Failure>(image.error());
  *library = reinterpret_cast<cudaLibrary_t>(Process::get().code().add_library(std::move(*image)));
  return {};
}

Answer tell_place(const Result<client::Range>& place, void** address, std::size_t* bytes) {
  if (!place) {
    if (place.error().code == ErrorCode::kSymbolNotFound) return deny(cudaErrorSymbolNotFound);
    return std::unexpected<Failure>(place.error());
  }
  if (address != nullptr) *address = pointer_to(place->address);
  if (bytes != nullptr) *bytes = place->bytes;
  return {};
}

/// Runs `body` with the session and the library.
template <typename Body>
cudaError_t about_library(cudaLibrary_t handle, const Body& body) {
  return with_session([&](Session& session) -> Answer {
    auto library = library_of(handle);
    if (!library) return std::unexpected(library.error());
    return body(session, **library);
  });
}

}  // namespace
}  // namespace slate::cudart

using namespace slate::cudart;
using namespace slate;

extern "C" {

cudaError_t cudaLibraryLoadData(cudaLibrary_t* library, const void* code, cudaJitOption* options,
                                void** values, unsigned count, cudaLibraryOption* library_options,
                                void** library_values, unsigned library_count) {
  return with_session([&](Session& session) -> Answer {
    if (library == nullptr || code == nullptr || !are_options(options, values, count) ||
        !are_options(library_options, library_values, library_count)) {
      return deny(cudaErrorInvalidValue);
    }
    return load(session, library, code);
  });
}

cudaError_t cudaLibraryLoadFromFile(cudaLibrary_t* library, const char* name,
                                    cudaJitOption* options, void** values, unsigned count,
                                    cudaLibraryOption* library_options, void** library_values,
                                    unsigned library_count) {
  return with_session([&](Session& session) -> Answer {
    if (library == nullptr || name == nullptr || !are_options(options, values, count) ||
        !are_options(library_options, library_values, library_count)) {
      return deny(cudaErrorInvalidValue);
    }
    std::ifstream file(name, std::ios::binary);
    if (!file) return deny(cudaErrorFileNotFound);
    std::vector<char> bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    return load(session, library, bytes.data(), bytes.size());
  });
}

cudaError_t cudaLibraryUnload(cudaLibrary_t handle) {
  return about_library(handle, [](Session& session, client::FatBinary& library) -> Answer {
    Process::get().code().remove_binary(&library, &session);
    return {};
  });
}

cudaError_t cudaLibraryGetKernel(cudaKernel_t* kernel, cudaLibrary_t handle, const char* name) {
  return about_library(handle, [&](Session& session, client::FatBinary& library) -> Answer {
    if (kernel == nullptr || name == nullptr) return deny(cudaErrorInvalidValue);
    auto found = Process::get().code().library_kernel(session, library, name);
    if (!found) {
      if (found.error().code == ErrorCode::kSymbolNotFound) return deny(cudaErrorSymbolNotFound);
      return std::unexpected<Failure>(found.error());
    }
    *kernel = reinterpret_cast<cudaKernel_t>(*found);
    return {};
  });
}

cudaError_t cudaLibraryGetGlobal(void** address, std::size_t* bytes, cudaLibrary_t handle,
                                 const char* name) {
  return about_library(handle, [&](Session& session, client::FatBinary& library) -> Answer {
    if (name == nullptr) return deny(cudaErrorInvalidValue);
    return tell_place(Process::get().code().library_variable(session, library, name), address,
                      bytes);
  });
}

cudaError_t cudaLibraryGetManaged(void** address, std::size_t* bytes, cudaLibrary_t handle,
                                  const char* name) {
  return about_library(handle, [&](Session& session, client::FatBinary& library) -> Answer {
    if (name == nullptr) return deny(cudaErrorInvalidValue);
    return tell_place(Process::get().code().library_managed(session, library, name), address,
                      bytes);
  });
}

cudaError_t cudaLibraryGetKernelCount(unsigned* count, cudaLibrary_t handle) {
  return about_library(handle, [&](Session& session, client::FatBinary& library) -> Answer {
    if (count == nullptr) return deny(cudaErrorInvalidValue);
    const auto names = Process::get().code().library_kernels(session, library);
    if (!names) return std::unexpected<Failure>(names.error());
    *count = static_cast<unsigned>(names->size());
    return {};
  });
}

cudaError_t cudaLibraryEnumerateKernels(cudaKernel_t* kernels, unsigned count,
                                        cudaLibrary_t handle) {
  return about_library(handle, [&](Session& session, client::FatBinary& library) -> Answer {
    return client::tell_kernels(session, library, kernels, count);
  });
}

// There is no driver API here to use the handle with; cudart's own functions take it as a kernel's.
cudaError_t cudaGetFuncBySymbol(cudaFunction_t* function, const void* symbol) {
  return with_session([&](Session& session) -> Answer {
    if (function == nullptr) return deny(cudaErrorInvalidValue);
    auto kernel = kernel_of(symbol);
    if (!kernel) return deny(cudaErrorInvalidDeviceFunction);
    if (auto loaded = loaded_function(session, symbol); !loaded)
      return std::unexpected(loaded.error());
    *function = reinterpret_cast<cudaFunction_t>(*kernel);
    return {};
  });
}

}  // extern "C"
