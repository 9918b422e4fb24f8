// Device memory, and managed memory: its allocation.
#include "client/driver/front.h"
#include "client/session/program_memory.h"

namespace slate::driver {
namespace {

/// Notes which context has the memory.
void own(Session& session, std::uint64_t address) {
  session.memory().table().set_owner(address, address_of(this_thread().current));
}

}  // namespace
}  // namespace slate::driver

using namespace slate::driver;
using namespace slate;

extern "C" {

CUresult cuMemAlloc_v2(CUdeviceptr* address, std::size_t bytes) {
  return with_session([&](Session& session) -> Answer {
    if (address == nullptr || bytes == 0) return deny(CUDA_ERROR_INVALID_VALUE);
    if (auto ok = session.captures().check_allows(); !ok) return ok;
    const auto made = session.memory().allocate(bytes);
    if (!made) return std::unexpected<Failure>(made.error());
    own(session, *made);
    *address = *made;
    return {};
  });
}

CUresult cuMemAllocPitch_v2(CUdeviceptr* address, std::size_t* pitch, std::size_t width,
                            std::size_t height, unsigned element) {
  return with_session([&](Session& session) -> Answer {
    const bool is_element = element == 4 || element == 8 || element == 16;
    if (address == nullptr || pitch == nullptr || width == 0 || height == 0 || !is_element)
      return deny(CUDA_ERROR_INVALID_VALUE);
    if (auto ok = session.captures().check_allows(); !ok) return ok;
    const auto made = client::allocate_pitched(session, width, height);
    if (!made) return std::unexpected<Failure>(made.error());
    own(session, made->address);
    *address = made->address;
    *pitch = made->pitch;
    return {};
  });
}

CUresult cuMemFree_v2(CUdeviceptr address) {
  return with_session([&](Session& session) -> Answer {
    if (auto ok = session.captures().check_allows(); !ok) return ok;
    if (address == 0) return {};
    return client::free_program_memory(session, address);
  });
}

CUresult cuMemAllocManaged(CUdeviceptr* address, std::size_t bytes, unsigned flags) {
  return with_session([&](Session& session) -> Answer {
    const bool known = flags == CU_MEM_ATTACH_GLOBAL || flags == CU_MEM_ATTACH_HOST;
    if (address == nullptr || bytes == 0 || !known) return deny(CUDA_ERROR_INVALID_VALUE);
    if (auto ok = session.captures().check_allows(); !ok) return ok;
    const auto made = session.host_memory().allocate_managed(bytes, client::kTagManaged, flags);
    if (!made) return std::unexpected<Failure>(made.error());
    own(session, *made);
    *address = *made;
    return {};
  });
}

CUresult cuMemGetInfo_v2(std::size_t* free_bytes, std::size_t* total_bytes) {
  return with_session([&](Session& session) -> Answer {
    const auto info = session.memory().info();
    if (!info) return std::unexpected<Failure>(info.error());
    if (free_bytes != nullptr) *free_bytes = info->free_bytes;
    if (total_bytes != nullptr) *total_bytes = info->total_bytes;
    return {};
  });
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr* base, std::size_t* bytes, CUdeviceptr address) {
  return with_session([&](Session& session) -> Answer {
    auto range = session.memory().table().find(address);
    if (range && range->tag == client::kTagMapped) {
      // Mappings side by side are one range of the table.
      if (const auto mapping = session.virtual_memory().mapping_at(address))
        range = client::Range{mapping->address, mapping->bytes};
    }
    if (!range) range = Process::get().pinned().find(address);
    if (!range) return deny(CUDA_ERROR_NOT_FOUND);
    if (base != nullptr) *base = range->address;
    if (bytes != nullptr) *bytes = range->bytes;
    return {};
  });
}

}  // extern "C"
