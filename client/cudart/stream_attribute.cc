// Attributes of streams. They are hints to a GPU's caches and memory, or say how a thread is to
// wait: kept and told, and without effect here.
#include <bit>

#include "client/cudart/front.h"

namespace slate::cudart {
namespace {

using Value = client::StreamAttributes::Value;
static_assert(sizeof(Value) == sizeof(cudaStreamAttrValue));

/// Runs `body`, a (Session&, stream's id) -> Answer, if there is a value, or a place for one.
template <typename Body>
cudaError_t about_value(cudaStream_t stream, DefaultStream zero, const cudaStreamAttrValue* value,
                        const Body& body) {
  return with_session([&](Session& session) -> Answer {
    const auto id = stream_id(session, stream, zero);
    if (!id) return std::unexpected(id.error());
    if (value == nullptr) return deny(cudaErrorInvalidValue);
    return body(session, *id);
  });
}

cudaError_t get(cudaStream_t stream, cudaStreamAttrID attribute, cudaStreamAttrValue* value,
                DefaultStream zero) {
  return about_value(stream, zero, value, [&](Session& session, std::uint64_t id) -> Answer {
    const auto told = client::attribute_of_stream(session, id, number_of(attribute));
    if (!told) return std::unexpected<Failure>(told.error());
    *value = std::bit_cast<cudaStreamAttrValue>(*told);
    return {};
  });
}

cudaError_t set(cudaStream_t stream, cudaStreamAttrID attribute, const cudaStreamAttrValue* value,
                DefaultStream zero) {
  return about_value(stream, zero, value, [&](Session& session, std::uint64_t id) -> Answer {
    return client::set_attribute_of_stream(session, id, number_of(attribute),
                                           std::bit_cast<Value>(*value));
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
