// The functions of slate.h on kernels.
#include <string>

#include "client/api/handles.h"
#include "client/session/captures.h"
#include "client/session/program_streams.h"

namespace slate::api {
namespace {

std::string about(const Kernel& kernel) {
  return "kernel " + demangled_name(kernel.name);
}

struct LaunchCall {
  slate_dim3 grid, block;
  std::size_t shared;
  CUstream_st* stream;
  void** arguments;
  std::size_t argument_count;
};

Outcome<void> check_arguments(const Kernel& kernel, const LaunchCall& call) {
  const std::size_t wanted = kernel.function->parameters.size();
  if (call.argument_count != wanted) {
    return refuse(SLATE_ERROR_INVALID_VALUE, about(kernel) + " takes " + std::to_string(wanted) +
                                                 " arguments, not " +
                                                 std::to_string(call.argument_count));
  }
  if (wanted > 0 && call.arguments == nullptr) return deny_null("the list of arguments");
  for (std::size_t i = 0; i < wanted; ++i) {
    if (call.arguments[i] != nullptr) continue;
    return refuse(SLATE_ERROR_INVALID_VALUE, "the pointer to argument " + std::to_string(i + 1) +
                                                 " of " + about(kernel) + " is null");
  }
  return {};
}

Outcome<void> check_shared(const Kernel& kernel, std::size_t bytes) {
  const std::size_t most = kernel.function->max_dynamic_shared;
  if (bytes <= most) return {};
  return refuse(SLATE_ERROR_INVALID_VALUE,
                about(kernel) + ": the launch asks for " + std::to_string(bytes) +
                    " bytes of dynamic shared memory and " + std::to_string(most) +
                    " are allowed (slate_kernel_set_max_dynamic_shared)");
}

Outcome<void> launch(const Kernel& kernel, const LaunchCall& call) {
  auto session = session_of(*kernel.module);
  if (!session) return std::unexpected(session.error());
  if (auto ok = (*session)->earlier_error(); !ok) return refuse(ok.error());
  if (auto ok = check_arguments(kernel, call); !ok) return ok;
  if (auto ok = check_shared(kernel, call.shared); !ok) return ok;
  const auto stream = client::stream_of(**session, reinterpret_cast<std::uintptr_t>(call.stream),
                                        client::DefaultStream::kLegacy);
  if (!stream) {
    // The stream of a thread that could not be made, too, has its reason.
    if (stream.error().why == client::Refusal::kNone) return refuse(stream.error().error);
    return refuse(SLATE_ERROR_INVALID_HANDLE, "the launch's stream does not exist");
  }
  if (auto& captures = (*session)->captures(); captures.takes(*stream)) {
    (void)captures.refuse_work(*stream);
    return refuse(SLATE_ERROR_NOT_SUPPORTED,
                  about(kernel) + " cannot become part of a graph: its stream captures no more");
  }
  const client::LaunchConfig config{{call.grid.x, call.grid.y, call.grid.z},
                                    {call.block.x, call.block.y, call.block.z},
                                    call.shared,
                                    *stream};
  ReadLock life(kernel.module->life);
  if (kernel.module->unloaded) {
    return refuse(SLATE_ERROR_INVALID_HANDLE, "the kernel's module was unloaded meanwhile");
  }
  if (auto ok = (*session)->kernels().launch(*kernel.function, config, call.arguments); !ok) {
    return refuse(ok.error(), about(kernel));
  }
  return {};
}

Outcome<void> set_max_dynamic_shared(const Kernel& kernel, std::size_t bytes) {
  auto session = session_of(*kernel.module);
  if (!session) return std::unexpected(session.error());
  if (auto ok = (*session)->check(); !ok) return refuse(ok.error());
  constexpr int kMostPerBlock = 97;  // CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
  const auto most = static_cast<std::size_t>((*session)->device().attributes[kMostPerBlock]);
  const std::size_t fixed = kernel.function->info.static_shared_bytes;
  const std::size_t room = most > fixed ? most - fixed : 0;
  if (bytes > room) {
    return refuse(SLATE_ERROR_INVALID_VALUE,
                  about(kernel) + " can get at most " + std::to_string(room) +
                      " bytes of dynamic shared memory, not " + std::to_string(bytes));
  }
  auto ok = (*session)->kernels().set_max_dynamic_shared(*kernel.function,
                                                         static_cast<std::uint32_t>(bytes));
  if (!ok) return refuse(ok.error(), about(kernel));
  return {};
}

/// Runs `body`, a (const Kernel&) -> Outcome<void>.
template <typename Body>
slate_status about_kernel(slate_kernel* handle, const Body& body) noexcept {
  return guarded([&]() -> Outcome<void> {
    const auto kernel = Handles::get().find(handle);
    if (!kernel) return std::unexpected(kernel.error());
    return body(**kernel);
  });
}

}  // namespace
}  // namespace slate::api

using namespace slate::api;

extern "C" {

slate_status slate_kernel_get_info(slate_kernel_info* info, slate_kernel* handle) noexcept {
  return about_kernel(handle, [&](const Kernel& kernel) -> Outcome<void> {
    if (info == nullptr) return deny_null("the place for the kernel's needs");
    const slate::ipc::FunctionReply& known = kernel.function->info;
    *info = {};
    info->registers = known.registers;
    info->static_shared_bytes = known.static_shared_bytes;
    info->max_dynamic_shared_bytes = kernel.function->max_dynamic_shared;
    info->constant_bytes = known.constant_bytes;
    info->local_bytes = known.local_bytes;
    info->max_threads_per_block = known.max_threads_per_block;
    info->parameter_count = known.parameter_count;
    info->parameter_bytes = known.parameter_bytes;
    return {};
  });
}

slate_status slate_kernel_get_parameter(size_t* offset, size_t* bytes, slate_kernel* handle,
                                        size_t index) noexcept {
  return about_kernel(handle, [&](const Kernel& kernel) -> Outcome<void> {
    const auto& parameters = kernel.function->parameters;
    if (index >= parameters.size()) {
      return refuse(SLATE_ERROR_INVALID_VALUE,
                    about(kernel) + " has " + std::to_string(parameters.size()) + " parameters");
    }
    if (offset != nullptr) *offset = parameters[index].first;
    if (bytes != nullptr) *bytes = parameters[index].second;
    return {};
  });
}

slate_status slate_kernel_get_name(const char** name, slate_kernel* handle) noexcept {
  return about_kernel(handle, [&](const Kernel& kernel) -> Outcome<void> {
    if (name == nullptr) return deny_null("the place for the name");
    *name = kernel.name.c_str();
    return {};
  });
}

slate_status slate_kernel_set_max_dynamic_shared(slate_kernel* handle, size_t bytes) noexcept {
  return about_kernel(handle,
                      [&](const Kernel& kernel) { return set_max_dynamic_shared(kernel, bytes); });
}

slate_status slate_kernel_launch(slate_kernel* handle, slate_dim3 grid, slate_dim3 block,
                                 size_t dynamic_shared_bytes, CUstream_st* stream, void** arguments,
                                 size_t argument_count) noexcept {
  return about_kernel(handle, [&](const Kernel& kernel) {
    return launch(kernel, {grid, block, dynamic_shared_bytes, stream, arguments, argument_count});
  });
}

}  // extern "C"
