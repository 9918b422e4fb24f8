// Streams, their attributes, and the functions of the program that they call.
#include <bit>
#include <map>

#include "base/mutex.h"
#include "client/driver/front.h"
#include "client/session/error_table.h"
#include "client/session/program_events.h"

namespace slate::driver {
namespace {

using Value = client::StreamAttributes::Value;
static_assert(sizeof(Value) == sizeof(CUstreamAttrValue));

/// What the driver says of the default stream.
constexpr unsigned long long kIdOfDefault = 7;

/// The contexts of streams that were made in other than the primary one. Thread-safe.
class StreamContexts {
 public:
  static StreamContexts& get() {
    static StreamContexts* const instance = new StreamContexts;
    return *instance;
  }
  void note(std::uint64_t stream, Context* context) {
    if (context->is_primary) return;
    const MutexLock lock(mutex_);
    contexts_[stream] = context;
  }
  void forget(std::uint64_t stream) {
    const MutexLock lock(mutex_);
    contexts_.erase(stream);
  }
  Context* of(std::uint64_t stream) {
    const MutexLock lock(mutex_);
    const auto at = contexts_.find(stream);
    return at == contexts_.end() ? &Contexts::get().primary() : at->second;
  }

 private:
  Mutex mutex_;
  std::map<std::uint64_t, Context*> contexts_ SLATE_GUARDED_BY(mutex_);
};

/// Runs `body`, a (Session&, std::uint64_t id) -> Answer.
template <typename Body>
CUresult about_stream(CUstream stream, const Body& body,
                      const char* name = __builtin_FUNCTION()) noexcept {
  return with_session(
      [&](Session& session) -> Answer {
        const auto id = stream_id(session, stream);
        if (!id) return std::unexpected(id.error());
        return body(session, *id);
      },
      name);
}

/// The entry of a stream; of the default stream, a plain one.
client::HandleTable::Entry entry_of(Session& session, std::uint64_t id) {
  return session.streams().table().find(id).value_or(client::HandleTable::Entry{});
}

bool is_default(CUstream stream) {
  const std::uint64_t handle = address_of(stream);
  return handle == 0 || handle == client::kLegacyHandle || handle == client::kPerThreadHandle;
}

CUresult create(CUstream* stream, unsigned flags, int priority) noexcept {
  return with_session([&](Session& session) -> Answer {
    if (stream == nullptr || (flags & ~unsigned{CU_STREAM_NON_BLOCKING}) != 0) {
      return deny(CUDA_ERROR_INVALID_VALUE);
    }
    const auto id = client::create_program_stream(session, flags != 0, priority);
    if (!id) return std::unexpected<Failure>(id.error());
    StreamContexts::get().note(*id, this_thread().current);
    *stream = static_cast<CUstream>(pointer_to(*id));
    return {};
  });
}

CUresult destroy(CUstream stream) noexcept {
  return with_session([&](Session& session) -> Answer {
    if (auto ok = client::destroy_program_stream(session, address_of(stream)); !ok) {
      return std::unexpected<Failure>(ok.error());
    }
    StreamContexts::get().forget(address_of(stream));
    return {};
  });
}

CUresult tell_context(CUstream stream, CUcontext* context, CUgreenCtx* green) noexcept {
  return about_stream(stream, [&](Session&, std::uint64_t id) -> Answer {
    Context* const its = is_default(stream) ? this_thread().current : StreamContexts::get().of(id);
    if (green != nullptr) *green = nullptr;
    return give(context, its->handle());
  });
}

}  // namespace
}  // namespace slate::driver

using namespace slate::driver;
using namespace slate;

extern "C" {

CUresult cuStreamCreate(CUstream* stream, unsigned flags) {
  return create(stream, flags, 0);
}
CUresult cuStreamCreateWithPriority(CUstream* stream, unsigned flags, int priority) {
  return create(stream, flags, priority);
}
CUresult cuStreamDestroy(CUstream stream) {
  return destroy(stream);
}
CUresult cuStreamDestroy_v2(CUstream stream) {
  return destroy(stream);
}

CUresult cuStreamQuery(CUstream stream) {
  return about_stream(stream, [](Session& session, std::uint64_t id) -> Answer {
    return client::query_stream(session, id);
  });
}
CUresult cuStreamSynchronize(CUstream stream) {
  return about_stream(stream, [](Session& session, std::uint64_t id) -> Answer {
    return client::synchronize_stream(session, id);
  });
}
CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags) {
  return about_stream(stream, [&](Session& session, std::uint64_t id) -> Answer {
    if ((flags & ~unsigned{CU_EVENT_WAIT_EXTERNAL}) != 0) return deny(CUDA_ERROR_INVALID_VALUE);
    return client::wait_for_event(session, id, address_of(event), flags != 0);
  });
}

CUresult cuStreamGetFlags(CUstream stream, unsigned* flags) {
  return about_stream(stream, [&](Session& session, std::uint64_t id) -> Answer {
    const bool non_blocking = (entry_of(session, id).flags & ipc::kStreamNonBlocking) != 0;
    return give(flags, non_blocking ? CU_STREAM_NON_BLOCKING : CU_STREAM_DEFAULT);
  });
}
CUresult cuStreamGetPriority(CUstream stream, int* priority) {
  return about_stream(stream, [&](Session& session, std::uint64_t id) -> Answer {
    return give(priority, entry_of(session, id).priority);
  });
}
CUresult cuStreamGetId(CUstream stream, unsigned long long* number) {
  return about_stream(stream, [&](Session&, std::uint64_t id) -> Answer {
    return give(number, id == ipc::kDefaultStream ? kIdOfDefault : id);
  });
}
CUresult cuStreamGetDevice(CUstream stream, CUdevice* device) {
  return about_stream(stream, [&](Session&, std::uint64_t) -> Answer { return give(device, 0); });
}
CUresult cuStreamGetCtx(CUstream stream, CUcontext* context) {
  return tell_context(stream, context, nullptr);
}
CUresult cuStreamGetCtx_v2(CUstream stream, CUcontext* context, CUgreenCtx* green) {
  return tell_context(stream, context, green);
}

CUresult cuStreamGetAttribute(CUstream stream, CUstreamAttrID attribute, CUstreamAttrValue* value) {
  return about_stream(stream, [&](Session& session, std::uint64_t id) -> Answer {
    if (value == nullptr) return deny(CUDA_ERROR_INVALID_VALUE);
    const auto told = client::attribute_of_stream(session, id, number_of(attribute));
    if (!told) return std::unexpected<Failure>(told.error());
    return give(value, std::bit_cast<CUstreamAttrValue>(*told));
  });
}
CUresult cuStreamSetAttribute(CUstream stream, CUstreamAttrID attribute,
                              const CUstreamAttrValue* value) {
  return about_stream(stream, [&](Session& session, std::uint64_t id) -> Answer {
    if (value == nullptr) return deny(CUDA_ERROR_INVALID_VALUE);
    return client::set_attribute_of_stream(session, id, number_of(attribute),
                                           std::bit_cast<Value>(*value));
  });
}
CUresult cuStreamCopyAttributes(CUstream to, CUstream from) {
  return about_stream(to, [&](Session& session, std::uint64_t target) -> Answer {
    const auto source = stream_id(session, from);
    if (!source) return std::unexpected(source.error());
    session.streams().attributes().copy(target, *source);
    return {};
  });
}

CUresult cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  return with_session([&](Session&) -> Answer {
    if (least != nullptr) *least = client::kLeastPriority;
    if (greatest != nullptr) *greatest = client::kGreatestPriority;
    return {};
  });
}

CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void* data) {
  return about_stream(stream, [&](Session& session, std::uint64_t id) -> Answer {
    return client::call_on_stream(session, id, function, data);
  });
}
CUresult cuStreamAddCallback(CUstream stream, CUstreamCallback callback, void* data,
                             unsigned flags) {
  return about_stream(stream, [&](Session& session, std::uint64_t id) -> Answer {
    if (callback == nullptr || flags != 0) return deny(CUDA_ERROR_INVALID_VALUE);
    if (auto refused = refuse_capture(session, id)) return *refused;
    return session.host_functions().call(id, [=](const Result<void>& outcome) {
      const int error = outcome ? 0 : client::cuda_error_number(outcome.error().code);
      callback(stream, static_cast<CUresult>(error), data);
    });
  });
}

}  // extern "C"
