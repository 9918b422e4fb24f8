// Attributes of streams. They are hints to a GPU's caches and memory, or say how a thread is to
// wait: kept and told, and without effect here.
#include <bit>
#include <cstring>

#include "client/cudart/front.h"

namespace slate::cudart {
namespace {

using Value = client::StreamAttributes::Value;
static_assert(sizeof(Value) == sizeof(cudaStreamAttrValue));

bool is_kept(int attribute) {
  return attribute == cudaLaunchAttributeAccessPolicyWindow ||
         attribute == cudaLaunchAttributeSynchronizationPolicy ||
         attribute == cudaLaunchAttributeMemSyncDomainMap ||
         attribute == cudaLaunchAttributeMemSyncDomain;
}

/// What a stream has before anything is set.
cudaStreamAttrValue initial(int attribute) {
  cudaStreamAttrValue value{};
  if (attribute == cudaLaunchAttributeSynchronizationPolicy) {
    // What an H200 said, though it is none of the enumerators.
    constexpr int kUnset = -1;
    static_assert(sizeof(kUnset) == sizeof(value.syncPolicy));
    std::memcpy(&value.syncPolicy, &kUnset, sizeof(kUnset));
  } else if (attribute == cudaLaunchAttributeMemSyncDomainMap) {
    value.memSyncDomainMap.remote = 1;
  }
  return value;
}

cudaError_t get(cudaStream_t stream, cudaStreamAttrID attribute, cudaStreamAttrValue* value,
                DefaultStream zero) {
  const int number = attribute;
  return with_session([&](Session& session) -> Answer {
    const auto id = stream_id(session, stream, zero);
    if (!id) return std::unexpected(id.error());
    if (value == nullptr) return deny(cudaErrorInvalidValue);
    if (number == cudaLaunchAttributePriority) {
      const auto entry = session.streams().table().find(*id);
      value->priority = entry ? entry->priority : 0;
      return {};
    }
    if (!is_kept(number)) return deny(cudaErrorInvalidValue);
    const auto kept = session.streams().attributes().find(*id, number);
    *value = kept ? std::bit_cast<cudaStreamAttrValue>(*kept) : initial(number);
    return {};
  });
}

cudaError_t set(cudaStream_t stream, cudaStreamAttrID attribute, const cudaStreamAttrValue* value,
                DefaultStream zero) {
  const int number = attribute;
  return with_session([&](Session& session) -> Answer {
    const auto id = stream_id(session, stream, zero);
    if (!id) return std::unexpected(id.error());
    if (number == cudaLaunchAttributePriority) {
      return std::unexpected<Failure>(
          Error{ErrorCode::kNotSupported, "a stream's priority cannot be changed yet"});
    }
    if (value == nullptr || !is_kept(number)) return deny(cudaErrorInvalidValue);
    session.streams().attributes().set(*id, number, std::bit_cast<Value>(*value));
    return {};
  });
}

cudaError_t copy_all(cudaStream_t to, cudaStream_t from, DefaultStream zero) {
  return with_session([&](Session& session) -> Answer {
    const auto target = stream_id(session, to, zero);
    if (!target) return std::unexpected(target.error());
    const auto source = stream_id(session, from, zero);
    if (!source) return std::unexpected(source.error());
    session.streams().attributes().copy(*target, *source);
    return {};
  });
}

}  // namespace
}  // namespace slate::cudart

using namespace slate::cudart;

extern "C" {

cudaError_t cudaStreamGetAttribute(cudaStream_t stream, cudaStreamAttrID attribute,
                                   cudaStreamAttrValue* value) {
  return get(stream, attribute, value, kLegacy);
}
cudaError_t cudaStreamGetAttribute_ptsz(cudaStream_t stream, cudaStreamAttrID attribute,
                                        cudaStreamAttrValue* value) {
  return get(stream, attribute, value, kPerThread);
}
cudaError_t cudaStreamSetAttribute(cudaStream_t stream, cudaStreamAttrID attribute,
                                   const cudaStreamAttrValue* value) {
  return set(stream, attribute, value, kLegacy);
}
cudaError_t cudaStreamSetAttribute_ptsz(cudaStream_t stream, cudaStreamAttrID attribute,
                                        const cudaStreamAttrValue* value) {
  return set(stream, attribute, value, kPerThread);
}
cudaError_t cudaStreamCopyAttributes(cudaStream_t to, cudaStream_t from) {
  return copy_all(to, from, kLegacy);
}
cudaError_t cudaStreamCopyAttributes_ptsz(cudaStream_t to, cudaStream_t from) {
  return copy_all(to, from, kPerThread);
}

}  // extern "C"
