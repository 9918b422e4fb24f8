// Rows of device memory, of questions about addresses, and of pinned host memory.
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "driver_rows.h"

namespace conformance {
namespace {

constexpr std::size_t kBytes = 1000;
constexpr CUdeviceptr kForeign = 0x1000;

CUdeviceptr device_address(const void* host) {
  return static_cast<CUdeviceptr>(reinterpret_cast<std::uintptr_t>(host));
}

/// The offset of an attribute that is an address from `base`, or the result that denies it.
std::string offset_of(CUpointer_attribute attribute, CUdeviceptr address, CUdeviceptr base) {
  CUdeviceptr value = 0;
  if (const CUresult result = cuPointerGetAttribute(&value, attribute, address);
      result != CUDA_SUCCESS) {
    return name_of(result);
  }
  return text(static_cast<long long>(value - base));
}

template <typename T>
std::string value_of(CUpointer_attribute attribute, CUdeviceptr address) {
  T value{};
  if (const CUresult result = cuPointerGetAttribute(&value, attribute, address);
      result != CUDA_SUCCESS) {
    return name_of(result);
  }
  return text(value);
}

CUresult attribute_of(CUpointer_attribute attribute, CUdeviceptr address) {
  std::uint64_t value[2] = {};
  return cuPointerGetAttribute(value, attribute, address);
}

CUresult pitched(unsigned element) {
  CUdeviceptr address = 0;
  std::size_t pitch = 0;
  const CUresult result = cuMemAllocPitch(&address, &pitch, 100, 3, element);
  if (result == CUDA_SUCCESS) (void)cuMemFree(address);
  return result;
}

void copy_rows(CUdeviceptr memory) {
  std::vector<char> host(2 * kBytes, 'x');
  ROW("cuMemcpyHtoD/normal", cuMemcpyHtoD(memory, host.data(), kBytes));
  ROW("cuMemcpyHtoD/nothing", cuMemcpyHtoD(memory, host.data(), 0));
  ROW("cuMemcpyHtoD/null", cuMemcpyHtoD(0, host.data(), 8));
  ROW("cuMemcpyHtoD/from-null", cuMemcpyHtoD(memory, nullptr, 8));
  ROW("cuMemcpyDtoH/inner", cuMemcpyDtoH(host.data(), memory + 500, 500));
  ROW("cuMemcpyDtoH/foreign", cuMemcpyDtoH(host.data(), kForeign, 8));
  ROW("cuMemcpyDtoD/overlap", cuMemcpyDtoD(memory + 8, memory, 64));
  ROW("cuMemcpy/host-to-device", cuMemcpy(memory, device_address(host.data()), 64));
  ROW("cuMemsetD8/normal", cuMemsetD8(memory, 7, kBytes));
  ROW("cuMemsetD8/nothing", cuMemsetD8(memory, 7, 0));
  ROW("cuMemsetD8/null", cuMemsetD8(0, 7, 8));
  ROW("cuMemsetD8/foreign", cuMemsetD8(kForeign, 7, 8));
  ROW("cuMemsetD16/unaligned", cuMemsetD16(memory + 1, 7, 8));
  ROW("cuMemsetD32/unaligned", cuMemsetD32(memory + 2, 7, 8));
  ROW("cuMemsetD32/normal", cuMemsetD32(memory, 7, kBytes / 4));
  ROW("cuMemsetD2D32/narrow-pitch", cuMemsetD2D32(memory, 8, 7, 4, 2));
  ROW("cuMemsetD2D8/normal", cuMemsetD2D8(memory, 100, 7, 50, 4));
}

void device_pointer_rows(CUdeviceptr memory) {
  const CUdeviceptr inner = memory + 100;
  CUcontext context = nullptr, current = nullptr;
  (void)cuCtxGetCurrent(&current);
  ROW("cuPointerGetAttribute/device-context",
      cuPointerGetAttribute(&context, CU_POINTER_ATTRIBUTE_CONTEXT, inner),
      yes(context == current));
  ROW("cuPointerGetAttribute/device-type", attribute_of(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, inner),
      value_of<unsigned>(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, inner));
  ROW("cuPointerGetAttribute/device-pointer",
      attribute_of(CU_POINTER_ATTRIBUTE_DEVICE_POINTER, inner),
      offset_of(CU_POINTER_ATTRIBUTE_DEVICE_POINTER, inner, inner));
  ROW("cuPointerGetAttribute/device-host", attribute_of(CU_POINTER_ATTRIBUTE_HOST_POINTER, inner));
  ROW("cuPointerGetAttribute/device-p2p-tokens",
      attribute_of(CU_POINTER_ATTRIBUTE_P2P_TOKENS, inner));
  ROW("cuPointerGetAttribute/device-sync", attribute_of(CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, inner),
      value_of<unsigned>(CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, inner));
  ROW("cuPointerGetAttribute/device-managed", attribute_of(CU_POINTER_ATTRIBUTE_IS_MANAGED, inner),
      value_of<unsigned>(CU_POINTER_ATTRIBUTE_IS_MANAGED, inner));
  ROW("cuPointerGetAttribute/device-ordinal",
      attribute_of(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, inner),
      value_of<int>(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, inner));
  ROW("cuPointerGetAttribute/device-ipc",
      attribute_of(CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, inner),
      value_of<unsigned>(CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, inner));
  ROW("cuPointerGetAttribute/device-range",
      attribute_of(CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, inner),
      offset_of(CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, inner, memory) + " " +
          value_of<std::size_t>(CU_POINTER_ATTRIBUTE_RANGE_SIZE, inner));
  ROW("cuPointerGetAttribute/device-mapped", attribute_of(CU_POINTER_ATTRIBUTE_MAPPED, inner),
      value_of<unsigned>(CU_POINTER_ATTRIBUTE_MAPPED, inner));
  ROW("cuPointerGetAttribute/device-access", attribute_of(CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, inner),
      value_of<unsigned>(CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, inner));
  ROW("cuPointerGetAttribute/device-pool", attribute_of(CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, inner),
      value_of<std::uint64_t>(CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, inner));
  ROW("cuPointerGetAttribute/device-mapping",
      attribute_of(CU_POINTER_ATTRIBUTE_MAPPING_SIZE, inner),
      value_of<std::size_t>(CU_POINTER_ATTRIBUTE_MAPPING_SIZE, inner));
  ROW("cuPointerGetAttribute/unknown", attribute_of(unknown<CUpointer_attribute>(99), inner));
  ROW("cuPointerGetAttribute/no-place",
      cuPointerGetAttribute(nullptr, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, inner));
}

void plain_pointer_rows() {
  int plain = 0;
  const CUdeviceptr address = device_address(&plain);
  ROW("cuPointerGetAttribute/plain-type", attribute_of(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address));
  ROW("cuPointerGetAttribute/plain-context", attribute_of(CU_POINTER_ATTRIBUTE_CONTEXT, address));
  ROW("cuPointerGetAttribute/plain-ordinal",
      attribute_of(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address));
  ROW("cuPointerGetAttribute/plain-mapped", attribute_of(CU_POINTER_ATTRIBUTE_MAPPED, address));
  ROW("cuPointerGetAttribute/null", attribute_of(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, 0));

  CUcontext context = reinterpret_cast<CUcontext>(&plain);
  unsigned type = 77;
  int ordinal = 77;
  CUpointer_attribute wanted[] = {CU_POINTER_ATTRIBUTE_CONTEXT, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                  CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
  void* places[] = {&context, &type, &ordinal};
  ROW("cuPointerGetAttributes/plain", cuPointerGetAttributes(3, wanted, places, address),
      yes(context == nullptr) + " " + text(type) + " " + text(ordinal));
  ROW("cuPointerGetAttributes/none", cuPointerGetAttributes(0, wanted, places, address));
  ROW("cuPointerGetAttributes/null", cuPointerGetAttributes(3, nullptr, places, address));
}

void managed_pointer_rows() {
  CUdeviceptr memory = 0;
  ROW("cuMemAllocManaged/flags", cuMemAllocManaged(&memory, kBytes, 0));
  ROW("cuMemAllocManaged/nothing", cuMemAllocManaged(&memory, 0, CU_MEM_ATTACH_GLOBAL));
  ROW("cuMemAllocManaged/normal", cuMemAllocManaged(&memory, kBytes, CU_MEM_ATTACH_GLOBAL));
  ROW("cuPointerGetAttribute/managed-type", attribute_of(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, memory),
      value_of<unsigned>(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, memory));
  ROW("cuPointerGetAttribute/managed", attribute_of(CU_POINTER_ATTRIBUTE_IS_MANAGED, memory),
      value_of<unsigned>(CU_POINTER_ATTRIBUTE_IS_MANAGED, memory));
  ROW("cuPointerGetAttribute/managed-host", attribute_of(CU_POINTER_ATTRIBUTE_HOST_POINTER, memory),
      offset_of(CU_POINTER_ATTRIBUTE_HOST_POINTER, memory, memory));
  ROW("cuMemFree/managed", cuMemFree(memory));
}

void pool_pointer_rows() {
  CUdeviceptr memory = 0;
  CUmemoryPool pool = nullptr;
  CUcontext context = reinterpret_cast<CUcontext>(&pool);
  std::uint64_t told = 0;
  (void)cuDeviceGetDefaultMemPool(&pool, 0);
  ROW("cuMemAllocAsync/nothing", cuMemAllocAsync(&memory, 0, nullptr));
  ROW("cuMemAllocAsync/null", cuMemAllocAsync(nullptr, kBytes, nullptr));
  ROW("cuMemAllocAsync/normal", cuMemAllocAsync(&memory, kBytes, nullptr));
  ROW("cuPointerGetAttribute/pool-context",
      cuPointerGetAttribute(&context, CU_POINTER_ATTRIBUTE_CONTEXT, memory),
      yes(context == nullptr));
  ROW("cuPointerGetAttribute/pool",
      cuPointerGetAttribute(&told, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, memory),
      yes(told == device_address(pool)));
  ROW("cuMemFreeAsync/normal", cuMemFreeAsync(memory, nullptr));
  ROW("cuMemFreeAsync/null", cuMemFreeAsync(0, nullptr));
  ROW("cuStreamSynchronize/pool", cuStreamSynchronize(nullptr));
}

}  // namespace

void memory_rows() {
  CUdeviceptr memory = 0, base = 0;
  std::size_t bytes = 0;
  ROW("cuMemAlloc/nothing", cuMemAlloc(&memory, 0));
  ROW("cuMemAlloc/null", cuMemAlloc(nullptr, kBytes));
  ROW("cuMemAlloc/too-much", cuMemAlloc(&memory, std::size_t{1} << 44));
  ROW("cuMemAlloc/normal", cuMemAlloc(&memory, kBytes), yes(memory % 256 == 0));
  ROW("cuMemGetAddressRange/inner", cuMemGetAddressRange(&base, &bytes, memory + 999),
      yes(base == memory) + " " + text(bytes));
  ROW("cuMemGetAddressRange/end", cuMemGetAddressRange(&base, &bytes, memory + kBytes));
  ROW("cuMemGetAddressRange/no-base", cuMemGetAddressRange(nullptr, &bytes, memory));
  ROW("cuMemGetAddressRange/foreign", cuMemGetAddressRange(&base, &bytes, kForeign));
  ROW("cuMemGetAddressRange/null", cuMemGetAddressRange(&base, &bytes, 0));
  ROW("cuMemAllocPitch/4", pitched(4));
  ROW("cuMemAllocPitch/16", pitched(16));
  ROW("cuMemAllocPitch/3", pitched(3));
  ROW("cuMemGetInfo/no-total", cuMemGetInfo(&bytes, nullptr));
  copy_rows(memory);
  ROW("cuMemFree/null", cuMemFree(0));
  ROW("cuMemFree/inner", cuMemFree(memory + 8));
  ROW("cuMemFree/foreign", cuMemFree(kForeign));
  ROW("cuMemFree/normal", cuMemFree(memory));
  ROW("cuMemFree/twice", cuMemFree(memory));
}

void pointer_rows() {
  CUdeviceptr memory = 0;
  (void)cuMemAlloc(&memory, kBytes);
  device_pointer_rows(memory);
  (void)cuMemFree(memory);
  plain_pointer_rows();
  managed_pointer_rows();
  pool_pointer_rows();
}

void host_memory_rows() {
  void* pinned = nullptr;
  CUdeviceptr mapped = 0;
  unsigned flags = 77;
  ROW("cuMemHostAlloc/nothing", cuMemHostAlloc(&pinned, 0, 0));
  ROW("cuMemHostAlloc/flags", cuMemHostAlloc(&pinned, kBytes, 0x100));
  ROW("cuMemHostAlloc/null", cuMemHostAlloc(nullptr, kBytes, 0));
  ROW("cuMemHostAlloc/normal", cuMemHostAlloc(&pinned, kBytes, 0));
  const CUdeviceptr address = device_address(pinned);
  ROW("cuMemHostGetFlags/normal", cuMemHostGetFlags(&flags, pinned), text(flags));
  ROW("cuMemHostGetFlags/plain", cuMemHostGetFlags(&flags, &flags));
  ROW("cuMemHostGetDevicePointer/normal", cuMemHostGetDevicePointer(&mapped, pinned, 0),
      yes(mapped == address));
  ROW("cuMemHostGetDevicePointer/plain", cuMemHostGetDevicePointer(&mapped, &flags, 0));
  ROW("cuMemHostGetDevicePointer/flags", cuMemHostGetDevicePointer(&mapped, pinned, 1));
  ROW("cuPointerGetAttribute/pinned-type", attribute_of(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address),
      value_of<unsigned>(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address));
  ROW("cuPointerGetAttribute/pinned-device",
      attribute_of(CU_POINTER_ATTRIBUTE_DEVICE_POINTER, address),
      offset_of(CU_POINTER_ATTRIBUTE_DEVICE_POINTER, address, address));
  ROW("cuPointerGetAttribute/pinned-host",
      attribute_of(CU_POINTER_ATTRIBUTE_HOST_POINTER, address + 8),
      offset_of(CU_POINTER_ATTRIBUTE_HOST_POINTER, address + 8, address));
  ROW("cuPointerGetAttribute/pinned-range", attribute_of(CU_POINTER_ATTRIBUTE_RANGE_SIZE, address),
      value_of<std::size_t>(CU_POINTER_ATTRIBUTE_RANGE_SIZE, address));
  ROW("cuMemFreeHost/inner", cuMemFreeHost(static_cast<char*>(pinned) + 8));
  ROW("cuMemFreeHost/normal", cuMemFreeHost(pinned));
  ROW("cuMemFreeHost/null", cuMemFreeHost(nullptr));
  ROW("cuMemFreeHost/plain", cuMemFreeHost(&flags));

  constexpr std::size_t kPage = 4096;
  void* const plain = std::aligned_alloc(kPage, 2 * kPage);
  ROW("cuMemHostRegister/null", cuMemHostRegister(nullptr, kPage, 0));
  ROW("cuMemHostRegister/nothing", cuMemHostRegister(plain, 0, 0));
  ROW("cuMemHostRegister/flags", cuMemHostRegister(plain, kPage, 0x100));
  ROW("cuMemHostRegister/normal", cuMemHostRegister(plain, kPage, 0));
  ROW("cuMemHostRegister/twice", cuMemHostRegister(plain, kPage, 0));
  ROW("cuPointerGetAttribute/registered-type",
      attribute_of(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, device_address(plain)),
      value_of<unsigned>(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, device_address(plain)));
  ROW("cuMemHostUnregister/inner", cuMemHostUnregister(static_cast<char*>(plain) + 64));
  ROW("cuMemHostUnregister/normal", cuMemHostUnregister(plain));
  ROW("cuMemHostUnregister/twice", cuMemHostUnregister(plain));
  std::free(plain);
}

}  // namespace conformance
