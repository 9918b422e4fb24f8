// Attributes of streams. They are hints to a GPU's caches and memory, or say how a thread is to
// wait: kept and told, and without effect here.
#include "client/cudart/stream_attribute.h"

#include <cstring>
#include <map>
#include <mutex>

#include "client/cudart/front.h"

namespace slate::cudart {
namespace {

constexpr auto kLegacy = DefaultStream::kLegacy;
constexpr auto kPerThread = DefaultStream::kPerThread;

/// What was set, by attribute.
using Values = std::map<int, cudaStreamAttrValue>;

/// The same by stream, of the present session.
struct Kept {
  std::mutex& mutex = Process::get().mutex_of(Process::Table::kStreamAttributes);
  std::uint64_t session = 0;
  std::map<std::uint64_t, Values> values;

  void use(const Session& present) {
    if (session == present.serial()) return;
    values.clear();
    session = present.serial();
  }
  Values of(std::uint64_t stream) const {
    const auto at = values.find(stream);
    return at == values.end() ? Values{} : at->second;
  }
};

Kept& kept() {
  static Kept* const instance = new Kept;
  return *instance;
}

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

template <typename Body>
cudaError_t about(cudaStream_t stream, DefaultStream zero, const Body& body) {
  return with_session([&](Session& session) -> Answer {
    auto id = stream_id(session, stream, zero);
    if (!id) return std::unexpected(id.error());
    const std::lock_guard lock(kept().mutex);
    kept().use(session);
    return body(session, *id);
  });
}

cudaError_t get(cudaStream_t stream, cudaStreamAttrID attribute, cudaStreamAttrValue* value,
                DefaultStream zero) {
  const int number = attribute;
  return about(stream, zero, [&](Session& session, std::uint64_t id) -> Answer {
    if (value == nullptr) return deny(cudaErrorInvalidValue);
    if (number == cudaLaunchAttributePriority) {
      const auto entry = session.streams().find(id);
      value->priority = entry ? entry->priority : 0;
      return {};
    }
    if (!is_kept(number)) return deny(cudaErrorInvalidValue);
    const Values values = kept().of(id);
    const auto at = values.find(number);
    *value = at == values.end() ? initial(number) : at->second;
    return {};
  });
}

cudaError_t set(cudaStream_t stream, cudaStreamAttrID attribute, const cudaStreamAttrValue* value,
                DefaultStream zero) {
  const int number = attribute;
  return about(stream, zero, [&](Session&, std::uint64_t id) -> Answer {
    if (number == cudaLaunchAttributePriority) {
      return std::unexpected<Failure>(
          Error{ErrorCode::kNotSupported, "a stream's priority cannot be changed yet"});
    }
    if (value == nullptr || !is_kept(number)) return deny(cudaErrorInvalidValue);
    kept().values[id][number] = *value;
    return {};
  });
}

cudaError_t copy_all(cudaStream_t to, cudaStream_t from, DefaultStream zero) {
  return with_session([&](Session& session) -> Answer {
    auto target = stream_id(session, to, zero);
    if (!target) return std::unexpected(target.error());
    auto source = stream_id(session, from, zero);
    if (!source) return std::unexpected(source.error());
    const std::lock_guard lock(kept().mutex);
    kept().use(session);
    kept().values[*target] = kept().of(*source);
    return {};
  });
}

}  // namespace

void forget_attributes(std::uint64_t stream) {
  const std::lock_guard lock(kept().mutex);
  kept().values.erase(stream);
}

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
