#include "client/driver/export_tables.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string_view>

#include "client/driver/front.h"
#include "client/driver/handshake.h"
#include "client/driver/module.h"

namespace slate::driver {
namespace {

CUresult unserved() noexcept {
  return CUDA_ERROR_NOT_SUPPORTED;
}

template <std::size_t kCount>
consteval std::array<Unserved, kCount> all_unserved() {
  std::array<Unserved, kCount> entries{};
  entries.fill(unserved);
  return entries;
}

/// The live context behind a handle; null when there is none. The current one needs no lock.
Context* live_context(CUcontext handle) {
  Context* context = this_thread().current;
  if (handle != nullptr && (context == nullptr || context->handle() != handle))
    context = Contexts::get().find(handle);
  const bool is_live = context != nullptr && context->is_active.load(std::memory_order_acquire);
  return is_live ? context : nullptr;
}

/// Runs `body`, a (Context&) -> CUresult, with a live context.
template <typename Body>
CUresult with_live_context(CUcontext handle, const Body& body) noexcept {
  if (const CUresult unusable = Life::usable(); unusable != CUDA_SUCCESS) return unusable;
  Context* const context = live_context(handle);
  return context != nullptr ? body(*context) : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult primary_context(CUcontext* context, CUdevice device) noexcept {
  return initialised([&]() -> Answer {
    if (auto ok = need_device(device); !ok) return ok;
    return give(context, Contexts::get().primary().handle());
  });
}

template <std::size_t kCount>
void hooks(std::size_t** flags, std::size_t* count) noexcept {
  static constinit std::array<std::size_t, kCount> no_flags{};
  if (flags != nullptr) *flags = no_flags.data();
  if (count != nullptr) *count = kCount;
}

CUresult current_context(CUcontext* context, std::uint64_t) noexcept {
  return initialised([&]() -> Answer {
    Context* const current = this_thread().current;
    return give(context, current != nullptr ? current->handle() : nullptr);
  });
}

CUresult storage_put(CUcontext handle, void* key, void* value,
                     LocalStorage::Destructor destructor) noexcept {
  return with_live_context(handle, [&](Context& context) {
    if (key == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return context.storage.put(key, value, destructor);
  });
}

CUresult storage_remove(CUcontext handle, void* key) noexcept {
  return with_live_context(handle, [&](Context& context) {
    if (key == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    return context.storage.remove(key);
  });
}

CUresult storage_get(void** value, CUcontext handle, void* key) noexcept {
  return with_live_context(handle, [&](Context& context) {
    if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (key == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    return context.storage.get(key, value);
  });
}

CUresult check_context(CUcontext, std::uint32_t* result, void**) noexcept {
  return initialised([&] { return give(result, 0); });
}

std::uint32_t check_all_contexts() noexcept {
  return 0;
}

CUresult integrity(std::uint32_t version, std::uint64_t seconds, std::uint64_t* two_words) noexcept;

CUresult context_device(CUcontext handle, std::uint32_t* device) noexcept {
  return with_live_context(handle, [&](Context&) {
    if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *device = 0;
    return CUDA_SUCCESS;
  });
}

CUresult context_number(CUcontext handle, std::uint64_t* number) noexcept {
  return with_live_context(handle, [&](Context& context) {
    if (number == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *number = context.id;
    return CUDA_SUCCESS;
  });
}

CUresult stream_object(CUcontext handle, CUstream stream, std::uint64_t* object,
                       std::uint32_t per_thread) noexcept {
  return with_device([&](Session& session) -> Answer {
    if (live_context(handle) == nullptr) return deny(CUDA_ERROR_INVALID_CONTEXT);
    const auto id = client::stream_of(
        session, address_of(stream),
        per_thread != 0 ? client::DefaultStream::kPerThread : client::DefaultStream::kLegacy);
    if (!id) return std::unexpected<Failure>(id.error());
    return give(object, *id + 1);  // 0 would be no object
  });
}

CUresult stream_number(CUcontext handle, std::uint64_t object, std::uint64_t* number) noexcept {
  return with_live_context(handle, [&](Context&) {
    if (object == 0) return CUDA_ERROR_INVALID_HANDLE;
    if (number == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *number = object;
    return CUDA_SUCCESS;
  });
}

std::size_t visit_functions(CUcontext, CUmodule module, ToolsModule::FunctionVisitor visitor,
                            void* user) noexcept {
  std::size_t count = 0;
  (void)initialised([&]() -> Answer {
    if (visitor == nullptr) return deny(CUDA_ERROR_INVALID_VALUE);
    count = enumerate_functions(module, visitor, user);
    return {};
  });
  return count;
}

constinit const CudartInterface kCudartInterface = {sizeof(CudartInterface), unserved,
                                                    primary_context, all_unserved<10>()};
constinit const ToolsHooks kToolsHooks = {sizeof(ToolsHooks), unserved, hooks<1024>,
                                          all_unserved<3>(), hooks<14>};
constinit const ToolsThread kToolsThread = {sizeof(ToolsThread), unserved, current_context};
constinit const ContextStorage kContextStorage = {storage_put, storage_remove, storage_get};
constinit const ContextCheck kContextCheck = {sizeof(ContextCheck), unserved, check_context,
                                              check_all_contexts, all_unserved<11>()};
constinit const IntegrityCheck kIntegrityCheck = {sizeof(IntegrityCheck), integrity, unserved};
constinit const ToolsContext kToolsContext = {
    sizeof(ToolsContext), all_unserved<2>(),  context_device, context_number,    all_unserved<34>(),
    stream_number,        all_unserved<11>(), stream_object,  all_unserved<41>()};
constinit const SmTopology kSmTopology = {sizeof(SmTopology), all_unserved<16>()};
constinit const ToolsModule kToolsModule = {sizeof(ToolsModule), all_unserved<6>(), visit_functions,
                                            all_unserved<91>()};

#ifdef SLATE_DRIVER_HANDSHAKE

std::uint64_t address(auto* pointer) {
  return reinterpret_cast<std::uint64_t>(pointer);
}

DeviceIdentity identity_of(const DeviceInfo& device) {
  const auto attribute = [&](CUdevice_attribute which) { return device.attributes[which]; };
  DeviceIdentity identity;
  static_assert(sizeof(identity.uuid) == sizeof(device.uuid));
  std::ranges::copy(device.uuid, identity.uuid.begin());
  identity.pci_domain = attribute(CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID);
  identity.pci_bus = attribute(CU_DEVICE_ATTRIBUTE_PCI_BUS_ID);
  identity.pci_device = attribute(CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID);
  return identity;
}

CUresult integrity(std::uint32_t version, std::uint64_t seconds,
                   std::uint64_t* two_words) noexcept {
  return with_device([&](Session& session) -> Answer {
    if (two_words == nullptr) return deny(CUDA_ERROR_INVALID_VALUE);
    int driver_version = 0;
    if (const CUresult unknown = cuDriverGetVersion(&driver_version); unknown != CUDA_SUCCESS)
      return deny(unknown);
    const DeviceIdentity device = identity_of(session.device());
    const HandshakeFacts facts = {.driver_version = static_cast<std::uint32_t>(driver_version),
                                  .asked_version = version,
                                  .process = static_cast<std::uint32_t>(::getpid()),
                                  .thread = static_cast<std::uint32_t>(::pthread_self()),
                                  .interface_table = address(&kCudartInterface),
                                  .integrity_table = address(&kIntegrityCheck),
                                  .integrity_entry = address(kIntegrityCheck.answer),
                                  .seconds = seconds,
                                  .devices = {&device, 1}};
    std::ranges::copy(handshake(facts), two_words);
    return {};
  });
}

#else

CUresult integrity(std::uint32_t, std::uint64_t, std::uint64_t*) noexcept {
  return CUDA_ERROR_NOT_SUPPORTED;
}

#endif

/// From the usual way to write it.
consteval CUuuid uuid(std::string_view text) {
  CUuuid id{};
  std::size_t digits = 0;
  for (const char letter : text) {
    if (letter == '-') continue;
    const int digit = letter <= '9' ? letter - '0' : letter - 'a' + 10;
    char& byte = id.bytes[digits++ / 2];
    byte = static_cast<char>(static_cast<unsigned char>(byte) << 4 | digit);
  }
  return id;
}

struct Served {
  CUuuid id;
  const void* table;
};

constinit const Served kServed[] = {
    {uuid("6bd5fb6c-5bf4-e74a-8987-d93912fd9df9"), &kCudartInterface},
    {uuid("a094798c-2e74-2e74-93f2-0800200c0a66"), &kToolsHooks},
    {uuid("42d85a81-23f6-cb47-8298-f6e78a3aecdc"), &kToolsThread},
    {uuid("c693336e-1121-df11-a8c3-68f355d89593"), &kContextStorage},
    {uuid("263e8860-7cd2-6143-92f6-bbd5006dfa7e"), &kContextCheck},
    {uuid("d4082055-bde6-704b-8d34-ba123c66e1f2"), &kIntegrityCheck},
    {uuid("21318c60-9714-3248-8ca6-41ff7324c8f2"), &kToolsContext},
    {uuid("1734dc26-800d-4745-8726-c0f1e7dd8bca"), &kSmTopology},
    {uuid("6e163fbe-b958-444d-835c-e182aff1991e"), &kToolsModule},
};

}  // namespace
}  // namespace slate::driver

using namespace slate::driver;

extern "C" {

CUresult cuGetExportTable(const void** ppExportTable, const CUuuid* pExportTableId) {
  if (ppExportTable == nullptr || pExportTableId == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto* const found = std::ranges::find_if(kServed, [&](const Served& each) {
    return std::memcmp(&each.id, pExportTableId, sizeof(CUuuid)) == 0;
  });
  const bool is_served = found != std::ranges::end(kServed);
  *ppExportTable = is_served ? found->table : nullptr;
  return is_served ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

}  // extern "C"
