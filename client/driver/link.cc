// Linking of code at run time. PTX is linked as text (injector/link), so the result can be
// rewritten and runs on sim. What the program gets back is what cuModuleLoadData() takes: linked
// PTX, or the one cubin that was added.
#include "injector/link/link.h"

#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "client/driver/front.h"
#include "client/driver/jit_options.h"
#include "client/session/code_image.h"

namespace slate::driver {
namespace {

struct Linker {
  JitOptions options;
  std::vector<std::string> texts;
  std::vector<std::vector<std::byte>> codes;
  std::string linked;  // ends with a NUL that the program may count on

  CUlinkState handle() { return reinterpret_cast<CUlinkState>(this); }
};

/// The linkers that programs have made and not destroyed.
class Linkers {
 public:
  static Linkers& get() {
    static auto* const instance = new Linkers;
    return *instance;
  }
  CUlinkState add(const JitOptions& options) {
    const MutexLock lock(mutex_);
    all_.push_back(std::make_unique<Linker>());
    all_.back()->options = options;
    return all_.back()->handle();
  }
  Linker* find(CUlinkState handle) {
    const MutexLock lock(mutex_);
    for (const auto& each : all_) {
      if (each->handle() == handle) return each.get();
    }
    return nullptr;
  }
  bool remove(CUlinkState handle) {
    const MutexLock lock(mutex_);
    return std::erase_if(all_, [&](const auto& each) { return each->handle() == handle; }) > 0;
  }

 private:
  Mutex mutex_;
  std::vector<std::unique_ptr<Linker>> all_ SLATE_GUARDED_BY(mutex_);
};

/// Runs `body`, a (Session&, Linker&) -> Answer.
template <typename Body>
CUresult about_linker(CUlinkState handle, const Body& body,
                      const char* name = __builtin_FUNCTION()) noexcept {
  return with_session(
      [&](Session& session) -> Answer {
        Linker* const linker = Linkers::get().find(handle);
        if (linker == nullptr) return deny(CUDA_ERROR_INVALID_HANDLE);
        return body(session, *linker);
      },
      name);
}

Answer fail_with_log(const Linker& linker, const Error& error) {
  linker.options.write_logs(error.message);
  return std::unexpected<Failure>(error);
}

Answer add(Session& session, Linker& linker, CUjitInputType type, const void* data,
           std::size_t bytes) {
  const int number = type;
  if (data == nullptr || bytes == 0) return deny(CUDA_ERROR_INVALID_VALUE);
  if (number == CU_JIT_INPUT_OBJECT || number == CU_JIT_INPUT_LIBRARY) {
    return fail_with_log(linker, {ErrorCode::kNotSupported,
                                  "objects and libraries of the host are not linked at run time"});
  }
  if (number != CU_JIT_INPUT_PTX && number != CU_JIT_INPUT_CUBIN &&
      number != CU_JIT_INPUT_FATBINARY) {
    return deny(CUDA_ERROR_INVALID_VALUE);
  }
  if (!client::is_code(data, bytes)) {
    return deny(number == CU_JIT_INPUT_PTX ? CUDA_ERROR_INVALID_PTX : CUDA_ERROR_INVALID_IMAGE);
  }
  auto image = client::image_of_code(data, session.capability(), bytes, session.runs_ptx_only());
  if (!image) return fail_with_log(linker, image.error());
  if (image->kind == client::ImageKind::kElf) {
    linker.codes.push_back(std::move(image->bytes));
  } else {
    linker.texts.emplace_back(reinterpret_cast<const char*>(image->bytes.data()),
                              image->bytes.size());
  }
  return {};
}

Answer complete(Linker& linker, void** result, std::size_t* bytes) {
  if (linker.texts.empty() && linker.codes.size() == 1) {
    *result = linker.codes.front().data();
    *bytes = linker.codes.front().size();
    linker.options.write_logs({});
    return {};
  }
  if (!linker.codes.empty()) {
    return fail_with_log(
        linker, {ErrorCode::kNotSupported, "machine code is not linked at run time, PTX is"});
  }
  if (linker.texts.empty()) return deny(CUDA_ERROR_INVALID_VALUE);
  if (linker.texts.size() == 1) {
    linker.linked = linker.texts.front();
  } else {
    const std::vector<std::string_view> texts(linker.texts.begin(), linker.texts.end());
    auto linked = ptx::link(texts);
    if (!linked) return fail_with_log(linker, linked.error());
    linker.linked = std::move(*linked);
  }
  linker.options.write_logs({});
  *result = linker.linked.data();
  *bytes = linker.linked.size() + 1;
  return {};
}

CUresult create(unsigned count, CUjit_option* options, void** values,
                CUlinkState* handle) noexcept {
  return with_session([&](Session&) -> Answer {
    if (handle == nullptr || !are_options(options, values, count))
      return deny(CUDA_ERROR_INVALID_VALUE);
    return give(handle, Linkers::get().add({count, options, values}));
  });
}

CUresult add_data(CUlinkState handle, CUjitInputType type, const void* data,
                  std::size_t bytes) noexcept {
  return about_linker(handle, [&](Session& session, Linker& linker) {
    return add(session, linker, type, data, bytes);
  });
}

CUresult add_file(CUlinkState handle, CUjitInputType type, const char* path) noexcept {
  return about_linker(handle, [&](Session& session, Linker& linker) -> Answer {
    if (path == nullptr) return deny(CUDA_ERROR_INVALID_VALUE);
    std::ifstream file(path, std::ios::binary);
    if (!file) return deny(CUDA_ERROR_FILE_NOT_FOUND);
    const std::vector<char> bytes{std::istreambuf_iterator<char>(file),
                                  std::istreambuf_iterator<char>()};
    return add(session, linker, type, bytes.data(), bytes.size());
  });
}

}  // namespace
}  // namespace slate::driver

using namespace slate::driver;
using namespace slate;

extern "C" {

CUresult cuLinkCreate(unsigned count, CUjit_option* options, void** values, CUlinkState* handle) {
  return create(count, options, values, handle);
}
CUresult cuLinkCreate_v2(unsigned count, CUjit_option* options, void** values,
                         CUlinkState* handle) {
  return create(count, options, values, handle);
}

// A name is for messages of a linker that has some, and options of one input change nothing.

CUresult cuLinkAddData(CUlinkState handle, CUjitInputType type, void* data, std::size_t bytes,
                       const char*, unsigned, CUjit_option*, void**) {
  return add_data(handle, type, data, bytes);
}
CUresult cuLinkAddData_v2(CUlinkState handle, CUjitInputType type, void* data, std::size_t bytes,
                          const char*, unsigned, CUjit_option*, void**) {
  return add_data(handle, type, data, bytes);
}
CUresult cuLinkAddFile(CUlinkState handle, CUjitInputType type, const char* path, unsigned,
                       CUjit_option*, void**) {
  return add_file(handle, type, path);
}
CUresult cuLinkAddFile_v2(CUlinkState handle, CUjitInputType type, const char* path, unsigned,
                          CUjit_option*, void**) {
  return add_file(handle, type, path);
}

CUresult cuLinkComplete(CUlinkState handle, void** result, std::size_t* bytes) {
  return about_linker(handle, [&](Session&, Linker& linker) -> Answer {
    if (result == nullptr || bytes == nullptr) return deny(CUDA_ERROR_INVALID_VALUE);
    return complete(linker, result, bytes);
  });
}

CUresult cuLinkDestroy(CUlinkState handle) {
  return initialised([&]() -> Answer {
    if (!Linkers::get().remove(handle)) return deny(CUDA_ERROR_INVALID_HANDLE);
    return {};
  });
}

}  // extern "C"
