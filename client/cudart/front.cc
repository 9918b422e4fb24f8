#include "client/cudart/front.h"

#include <pthread.h>

#include <cstdio>
#include <string>

#include "client/cudart/last_error.h"
#include "client/session/error_table.h"
#include "client/session/say.h"

namespace slate::cudart {
namespace {

/// Errors that a program cannot explain by its number alone, and that do not come in masses. Those
/// that last, the session says by itself.
bool worth_saying(ErrorCode code) {
  switch (code) {
    case ErrorCode::kNotSupported:
    case ErrorCode::kInvalidPtx:
    case ErrorCode::kNoKernelImage:
    case ErrorCode::kInitialization:
    case ErrorCode::kProtocol:
    case ErrorCode::kPermission:
    case ErrorCode::kLimit:
    case ErrorCode::kIo:
    case ErrorCode::kInternal:
      return true;
    default:
      return false;
  }
}

/// The implicit per-thread stream of this thread, in the session with this serial.
struct ThreadStream {
  std::uint64_t session = 0;
  std::uint64_t id = 0;
};
thread_local ThreadStream thread_stream;

thread_local cudaError_t last_error_of_thread = cudaSuccess;

/// Called when a thread ends that has used its stream.
void end_thread_stream(void* stream) {
  const ThreadStream& ended = *static_cast<ThreadStream*>(stream);
  Session* session = Process::get().current(ended.session);
  if (session == nullptr) return;
  answer([&]() -> Answer { return destroy_stream(*session, ended.id); });
}

/// Arranges for that. Not a destructor of thread_stream: those run at exit too, before the exit
/// handlers of programs that still call CUDA.
void watch_thread_end() {
  static const pthread_key_t key = [] {
    pthread_key_t made{};
    ::pthread_key_create(&made, end_thread_stream);
    return made;
  }();
  ::pthread_setspecific(key, &thread_stream);
}

Maybe<std::uint64_t> per_thread_stream(Session& session) {
  if (thread_stream.session != session.serial() || !session.streams().contains(thread_stream.id)) {
    auto made = session.create_stream(0, 0);
    if (!made) return std::unexpected<Failure>(made.error());
    thread_stream = {session.serial(), *made};
    watch_thread_end();
  }
  return thread_stream.id;
}

}  // namespace

Failure::Failure(const Error& error) noexcept
    : code(static_cast<cudaError_t>(client::cuda_error_number(error.code))) {
  if (client::verbose()) {
    client::say(error.message);
  } else if (worth_saying(error.code)) {
    client::say_once(error.message);
  }
}

cudaError_t remember(cudaError_t code) noexcept {
  if (code != cudaSuccess && code != cudaErrorNotReady) last_error_of_thread = code;
  return code;
}

cudaError_t& last_error() noexcept {
  return last_error_of_thread;
}

void write_printed(Session& session) {
  for (const client::Printed& each : session.take_printed()) {
    std::fwrite(each.text.data(), 1, each.text.size(), each.is_error ? stderr : stdout);
  }
}

Maybe<std::uint64_t> stream_id(Session& session, cudaStream_t stream, DefaultStream zero) {
  if (stream == nullptr) {
    if (zero == DefaultStream::kLegacy) return ipc::kDefaultStream;
    return per_thread_stream(session);
  }
  if (stream == cudaStreamLegacy) return ipc::kDefaultStream;
  if (stream == cudaStreamPerThread) return per_thread_stream(session);
  const std::uint64_t id = address_of(stream);
  if (!session.streams().contains(id)) return deny(cudaErrorInvalidResourceHandle);
  return id;
}

Maybe<std::uint64_t> event_id(Session& session, cudaEvent_t event) {
  const std::uint64_t id = address_of(event);
  if (session.events().contains(id)) return id;
  // An event of a session that cudaDeviceReset has ended is a different error in CUDA.
  return deny(session.made_earlier(id) ? cudaErrorContextIsDestroyed
                                       : cudaErrorInvalidResourceHandle);
}

Maybe<client::Kernel*> kernel_of(const void* function) {
  if (function == nullptr) return deny(cudaErrorInvalidDeviceFunction);
  client::Kernel* kernel = Process::get().code().find_kernel(function);
  if (kernel == nullptr) return deny(cudaErrorInvalidResourceHandle);
  return kernel;
}

Maybe<client::Function*> function_of(Session& session, const void* function) {
  auto kernel = kernel_of(function);
  if (!kernel) return std::unexpected(kernel.error());
  auto loaded = Process::get().code().function(session, **kernel);
  if (loaded) return *loaded;
  if (loaded.error().code == ErrorCode::kSymbolNotFound) {
    client::say_once(loaded.error().message);
    return deny(cudaErrorInvalidDeviceFunction);
  }
  return std::unexpected<Failure>(loaded.error());
}

}  // namespace slate::cudart
