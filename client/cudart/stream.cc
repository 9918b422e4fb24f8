// Streams and waiting.
#include "client/cudart/front.h"
#include "client/session/program_events.h"

namespace slate::cudart {
namespace {

/// Runs `body` with the id and the entry of a stream (of the default streams, a plain one).
template <typename Body>
cudaError_t about_stream(cudaStream_t stream, DefaultStream zero, const Body& body) {
  return with_session([&](Session& session) -> Answer {
    auto id = stream_id(session, stream, zero);
    if (!id) return std::unexpected(id.error());
    const auto entry = session.streams().table().find(*id);
    return body(session, *id, entry.value_or(client::HandleTable::Entry{}));
  });
}

cudaError_t create(cudaStream_t* stream, unsigned flags, int priority) {
  return with_session([&](Session& session) -> Answer {
    if (stream == nullptr || (flags & ~unsigned{cudaStreamNonBlocking}) != 0) {
      return deny(cudaErrorInvalidValue);
    }
    return give_address(stream, client::create_program_stream(session, flags != 0, priority));
  });
}

cudaError_t synchronize(cudaStream_t stream, DefaultStream zero) {
  return about_stream(stream, zero, [&](Session& session, std::uint64_t id, auto) -> Answer {
    return client::synchronize_stream(session, id);
  });
}

cudaError_t query(cudaStream_t stream, DefaultStream zero) {
  return about_stream(stream, zero, [&](Session& session, std::uint64_t id, auto) -> Answer {
    return client::query_stream(session, id);
  });
}

cudaError_t wait_event(cudaStream_t stream, cudaEvent_t event, unsigned flags, DefaultStream zero) {
  return about_stream(stream, zero, [&](Session& session, std::uint64_t id, auto) -> Answer {
    if ((flags & ~unsigned{cudaEventWaitExternal}) != 0) return deny(cudaErrorInvalidValue);
    return client::wait_for_event(session, id, address_of(event), flags != 0);
  });
}

cudaError_t get_flags(cudaStream_t stream, unsigned* flags, DefaultStream zero) {
  return about_stream(stream, zero, [&](Session&, std::uint64_t, const auto& entry) -> Answer {
    const bool non_blocking = (entry.flags & ipc::kStreamNonBlocking) != 0;
    return give<unsigned>(flags, non_blocking ? cudaStreamNonBlocking : cudaStreamDefault);
  });
}

cudaError_t get_priority(cudaStream_t stream, int* priority, DefaultStream zero) {
  return about_stream(stream, zero, [&](Session&, std::uint64_t, const auto& entry) -> Answer {
    return give(priority, int{entry.priority});
  });
}

cudaError_t get_device(cudaStream_t stream, int* device, DefaultStream zero) {
  return about_stream(stream, zero,
                      [&](Session&, std::uint64_t, auto) -> Answer { return give(device, 0); });
}

cudaError_t get_id(cudaStream_t stream, unsigned long long* number, DefaultStream zero) {
  return about_stream(stream, zero, [&](Session&, std::uint64_t id, auto) -> Answer {
    return give<unsigned long long>(number, id);
  });
}

}  // namespace
}  // namespace slate::cudart

using namespace slate::cudart;
using namespace slate;

extern "C" {

cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  return create(stream, cudaStreamDefault, 0);
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return create(stream, flags, 0);
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority) {
  return create(stream, flags, priority);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return with_session([&](Session& session) -> Answer {
    return client::destroy_program_stream(session, address_of(stream));
  });
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return synchronize(stream, kLegacy);
}
cudaError_t cudaStreamSynchronize_ptsz(cudaStream_t stream) {
  return synchronize(stream, kPerThread);
}
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  return query(stream, kLegacy);
}
cudaError_t cudaStreamQuery_ptsz(cudaStream_t stream) {
  return query(stream, kPerThread);
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
  return wait_event(stream, event, flags, kLegacy);
}
cudaError_t cudaStreamWaitEvent_ptsz(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
  return wait_event(stream, event, flags, kPerThread);
}

cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned* flags) {
  return get_flags(stream, flags, kLegacy);
}
cudaError_t cudaStreamGetFlags_ptsz(cudaStream_t stream, unsigned* flags) {
  return get_flags(stream, flags, kPerThread);
}
cudaError_t cudaStreamGetPriority(cudaStream_t stream, int* priority) {
  return get_priority(stream, priority, kLegacy);
}
cudaError_t cudaStreamGetPriority_ptsz(cudaStream_t stream, int* priority) {
  return get_priority(stream, priority, kPerThread);
}
cudaError_t cudaStreamGetDevice(cudaStream_t stream, int* device) {
  return get_device(stream, device, kLegacy);
}
cudaError_t cudaStreamGetDevice_ptsz(cudaStream_t stream, int* device) {
  return get_device(stream, device, kPerThread);
}
cudaError_t cudaStreamGetId(cudaStream_t stream, unsigned long long* number) {
  return get_id(stream, number, kLegacy);
}
cudaError_t cudaStreamGetId_ptsz(cudaStream_t stream, unsigned long long* number) {
  return get_id(stream, number, kPerThread);
}
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  return with_session([&](Session&) -> Answer {
    if (least != nullptr) *least = client::kLeastPriority;
    if (greatest != nullptr) *greatest = client::kGreatestPriority;
    return {};
  });
}

cudaError_t cudaDeviceSynchronize() {
  return with_session([&](Session& session) -> Answer {
    if (auto ok = session.captures().check_allows(); !ok) return ok;
    auto outcome = session.waiting().synchronize(ipc::TargetKind::kSession, 0);
    session.printing().write();
    return outcome;
  });
}

}  // extern "C"
