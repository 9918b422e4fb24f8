// Rows of what needs no context, of contexts, of a forked child, and of the end.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "driver_rows.h"

namespace conformance {
namespace {

constexpr int kNoDevice = 99;
CUcontext primary = nullptr;

CUresult current_device() {
  CUdevice device = 7;
  return cuCtxGetDevice(&device);
}

CUresult allocate() {
  CUdeviceptr address = 0;
  const CUresult result = cuMemAlloc(&address, 64);
  if (result == CUDA_SUCCESS) (void)cuMemFree(address);
  return result;
}

CUresult make_stream() {
  CUstream stream = nullptr;
  const CUresult result = cuStreamCreate(&stream, CU_STREAM_DEFAULT);
  if (result == CUDA_SUCCESS) (void)cuStreamDestroy(stream);
  return result;
}

CUresult make_event() {
  CUevent event = nullptr;
  const CUresult result = cuEventCreate(&event, CU_EVENT_DEFAULT);
  if (result == CUDA_SUCCESS) (void)cuEventDestroy(event);
  return result;
}

CUresult memory_info() {
  std::size_t free = 0, total = 0;
  return cuMemGetInfo(&free, &total);
}

CUresult host_alloc() {
  void* memory = nullptr;
  const CUresult result = cuMemHostAlloc(&memory, 64, 0);
  if (result == CUDA_SUCCESS) (void)cuMemFreeHost(memory);
  return result;
}

CUresult load_module() {
  CUmodule module = nullptr;
  const CUresult result =
      cuModuleLoadData(&module, ".version 8.0\n.target sm_75\n.address_size 64\n");
  if (result == CUDA_SUCCESS) (void)cuModuleUnload(module);
  return result;
}

CUresult stack_limit() {
  std::size_t value = 0;
  return cuCtxGetLimit(&value, CU_LIMIT_STACK_SIZE);
}

CUresult memory_type() {
  unsigned type = 0;
  return cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, 0x1000);
}

CUresult default_pool() {
  CUmemoryPool pool = nullptr;
  return cuDeviceGetDefaultMemPool(&pool, 0);
}

/// "FLAGS ACTIVE" of the primary context.
std::string primary_state() {
  unsigned flags = 77;
  int active = 77;
  if (const CUresult result = cuDevicePrimaryCtxGetState(0, &flags, &active);
      result != CUDA_SUCCESS) {
    return name_of(result);
  }
  return text(flags) + " " + text(active);
}

std::string current_is(CUcontext expected) {
  CUcontext current = reinterpret_cast<CUcontext>(&current);
  if (const CUresult result = cuCtxGetCurrent(&current); result != CUDA_SUCCESS)
    return name_of(result);
  return current == nullptr ? "none" : current == expected ? "it" : "another";
}

}  // namespace

void uninitialised_rows() {
  int number = 0;
  unsigned flags = 0;
  CUdevice device = 0;
  CUcontext context = nullptr;
  const char* name = nullptr;
  ROW("cuDriverGetVersion/null", cuDriverGetVersion(nullptr));
  ROW("cuDriverGetVersion/uninitialised", cuDriverGetVersion(&number), yes(number >= 13000));
  ROW("cuGetErrorName/uninitialised", cuGetErrorName(CUDA_ERROR_NOT_READY, &name), name);
  ROW("cuGetErrorString/uninitialised", cuGetErrorString(CUDA_ERROR_NOT_READY, &name), name);
  ROW("cuGetErrorName/unknown", cuGetErrorName(unknown<CUresult>(12345), &name),
      name == nullptr ? "null" : "something");
  ROW("cuDeviceGetCount/uninitialised", cuDeviceGetCount(&number));
  ROW("cuDeviceGet/uninitialised", cuDeviceGet(&device, 0));
  ROW("cuDeviceGetAttribute/uninitialised",
      cuDeviceGetAttribute(&number, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0));
  ROW("cuDevicePrimaryCtxGetState/uninitialised", cuDevicePrimaryCtxGetState(0, &flags, &number));
  ROW("cuDevicePrimaryCtxRetain/uninitialised", cuDevicePrimaryCtxRetain(&context, 0));
  ROW("cuDevicePrimaryCtxRelease/uninitialised", cuDevicePrimaryCtxRelease(0));
  ROW("cuCtxGetCurrent/uninitialised", cuCtxGetCurrent(&context));
  ROW("cuCtxSetCurrent/uninitialised", cuCtxSetCurrent(nullptr));
  ROW("cuCtxGetDevice/uninitialised", current_device());
  ROW("cuCtxSynchronize/uninitialised", cuCtxSynchronize());
  ROW("cuCtxGetLimit/uninitialised", stack_limit());
  ROW("cuMemAlloc/uninitialised", allocate());
  ROW("cuMemFree/uninitialised", cuMemFree(0));
  ROW("cuMemGetInfo/uninitialised", memory_info());
  ROW("cuMemHostAlloc/uninitialised", host_alloc());
  ROW("cuPointerGetAttribute/uninitialised", memory_type());
  ROW("cuStreamCreate/uninitialised", make_stream());
  ROW("cuEventCreate/uninitialised", make_event());
  ROW("cuModuleLoadData/uninitialised", load_module());
  ROW("cuDeviceGetDefaultMemPool/uninitialised", default_pool());
  ROW("cuInit/flags", cuInit(1));
  ROW("cuDeviceGetCount/after-refused-init", cuDeviceGetCount(&number));
  ROW("cuInit/normal", cuInit(0));
  ROW("cuInit/again", cuInit(0));
}

void device_rows() {
  int number = 0;
  std::size_t bytes = 0;
  CUdevice device = 7;
  CUuuid first{}, second{};
  char name[256] = "";
  const auto attribute = [&](int which, CUdevice of) {
    number = 0;
    return cuDeviceGetAttribute(&number, unknown<CUdevice_attribute>(which), of);
  };
  ROW("cuDeviceGetCount/null", cuDeviceGetCount(nullptr));
  ROW("cuDeviceGet/normal", cuDeviceGet(&device, 0), text(device));
  ROW("cuDeviceGet/beyond", cuDeviceGet(&device, kNoDevice));
  ROW("cuDeviceGet/negative", cuDeviceGet(&device, -1));
  ROW("cuDeviceGet/null", cuDeviceGet(nullptr, 0));
  ROW("cuDeviceGetName/normal", cuDeviceGetName(name, sizeof(name), 0), yes(std::strlen(name) > 0));
  ROW("cuDeviceGetName/short", cuDeviceGetName(name, 4, 0), text(std::strlen(name)));
  ROW("cuDeviceGetName/no-room", cuDeviceGetName(name, 0, 0));
  ROW("cuDeviceGetName/null", cuDeviceGetName(nullptr, 10, 0));
  ROW("cuDeviceGetName/beyond", cuDeviceGetName(name, sizeof(name), kNoDevice));
  ROW("cuDeviceTotalMem/normal", cuDeviceTotalMem(&bytes, 0), yes(bytes > 0));
  ROW("cuDeviceTotalMem/beyond", cuDeviceTotalMem(&bytes, kNoDevice));
  ROW("cuDeviceTotalMem/null", cuDeviceTotalMem(nullptr, 0));
  ROW("cuDeviceGetUuid/normal", cuDeviceGetUuid(&first, 0));
  ROW("cuDeviceGetUuid/beyond", cuDeviceGetUuid(&second, kNoDevice));
  ROW("cuDeviceGetUuid/null", cuDeviceGetUuid(nullptr, 0));
  ROW("cuDeviceGetAttribute/warp", attribute(CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0), text(number));
  ROW("cuDeviceGetAttribute/last", attribute(CU_DEVICE_ATTRIBUTE_MAX - 1, 0));
  ROW("cuDeviceGetAttribute/unknown", attribute(9999, 0));
  ROW("cuDeviceGetAttribute/zero", attribute(0, 0));
  ROW("cuDeviceGetAttribute/negative", attribute(-1, 0));
  ROW("cuDeviceGetAttribute/beyond", attribute(CU_DEVICE_ATTRIBUTE_WARP_SIZE, kNoDevice));
  ROW("cuDeviceGetAttribute/null", cuDeviceGetAttribute(nullptr, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0));
  ROW("cuDeviceGetPCIBusId/short", cuDeviceGetPCIBusId(name, 4, 0));
  ROW("cuDeviceGetByPCIBusId/wrong", cuDeviceGetByPCIBusId(&device, "nonsense"));
  ROW("cuDeviceCanAccessPeer/beyond", cuDeviceCanAccessPeer(&number, 0, kNoDevice));
  CUmoduleLoadingMode mode{};
  ROW("cuModuleGetLoadingMode/normal", cuModuleGetLoadingMode(&mode), text(static_cast<int>(mode)));
}

void no_context_rows() {
  CUcontext context = nullptr;
  unsigned flags = 0;
  unsigned long long id = 0;
  ROW("cuCtxGetCurrent/none", cuCtxGetCurrent(&context), context == nullptr ? "none" : "one");
  ROW("cuCtxGetCurrent/null", cuCtxGetCurrent(nullptr));
  ROW("cuCtxSetCurrent/none", cuCtxSetCurrent(nullptr));
  ROW("cuCtxPopCurrent/none", cuCtxPopCurrent(&context));
  ROW("cuCtxGetDevice/none", current_device());
  ROW("cuCtxGetFlags/none", cuCtxGetFlags(&flags));
  ROW("cuCtxGetApiVersion/none", cuCtxGetApiVersion(nullptr, &flags));
  ROW("cuCtxGetId/none", cuCtxGetId(nullptr, &id));
  ROW("cuCtxSynchronize/none", cuCtxSynchronize());
  ROW("cuCtxGetLimit/none", stack_limit());
  ROW("cuMemAlloc/none", allocate());
  ROW("cuMemGetInfo/none", memory_info());
  ROW("cuMemHostAlloc/none", host_alloc());
  ROW("cuStreamCreate/none", make_stream());
  ROW("cuStreamQuery/none", cuStreamQuery(nullptr));
  ROW("cuEventCreate/none", make_event());
  ROW("cuModuleLoadData/none", load_module());
  ROW("cuDeviceGetDefaultMemPool/none", default_pool());
}

void primary_context_rows() {
  unsigned flags = 0, version = 0;
  unsigned long long id = 0;
  CUcontext again = nullptr;
  CUdevice device = 7;
  int active = 0;
  ROW("cuDevicePrimaryCtxGetState/inactive", cuDevicePrimaryCtxGetState(0, &flags, &active),
      primary_state());
  ROW("cuDevicePrimaryCtxGetState/beyond", cuDevicePrimaryCtxGetState(kNoDevice, &flags, &active));
  ROW("cuDevicePrimaryCtxRelease/never-retained", cuDevicePrimaryCtxRelease(0));
  ROW("cuDevicePrimaryCtxRelease/beyond", cuDevicePrimaryCtxRelease(kNoDevice));
  ROW("cuDevicePrimaryCtxRetain/beyond", cuDevicePrimaryCtxRetain(&again, kNoDevice));
  ROW("cuDevicePrimaryCtxRetain/null", cuDevicePrimaryCtxRetain(nullptr, 0));
  ROW("cuDevicePrimaryCtxSetFlags/unknown", cuDevicePrimaryCtxSetFlags(0, 0x1000));
  ROW("cuDevicePrimaryCtxRetain/normal", cuDevicePrimaryCtxRetain(&primary, 0), primary_state());
  ROW("cuCtxGetCurrent/retained", cuCtxGetCurrent(&again), current_is(primary));
  ROW("cuCtxSetCurrent/normal", cuCtxSetCurrent(primary), current_is(primary));
  ROW("cuDevicePrimaryCtxRetain/again", cuDevicePrimaryCtxRetain(&again, 0), yes(again == primary));
  ROW("cuDevicePrimaryCtxRelease/one-of-two", cuDevicePrimaryCtxRelease(0), primary_state());
  ROW("cuCtxGetDevice/normal", cuCtxGetDevice(&device), text(device));
  ROW("cuCtxGetDevice/null", cuCtxGetDevice(nullptr));
  ROW("cuCtxGetApiVersion/primary", cuCtxGetApiVersion(primary, &version), text(version));
  ROW("cuCtxGetFlags/primary", cuCtxGetFlags(&flags), text(flags));
  ROW("cuCtxGetId/primary", cuCtxGetId(primary, &id), text(id));
  ROW("cuCtxSynchronize/normal", cuCtxSynchronize());
  ROW("cuCtxDestroy/primary", cuCtxDestroy(primary));
}

void own_context_rows() {
  CUcontext own = nullptr, other = nullptr;
  ROW("cuCtxCreate/null", cuCtxCreate(nullptr, nullptr, 0, 0));
  ROW("cuCtxCreate/flags", cuCtxCreate(&own, nullptr, 0x1000, 0));
  ROW("cuCtxCreate/beyond", cuCtxCreate(&own, nullptr, 0, kNoDevice));
  ROW("cuCtxCreate/normal", cuCtxCreate(&own, nullptr, 0, 0), current_is(own));
  ROW("cuMemAlloc/own-context", allocate());
  ROW("cuCtxPushCurrent/primary", cuCtxPushCurrent(primary), current_is(primary));
  ROW("cuCtxPopCurrent/pushed", cuCtxPopCurrent(&other), yes(other == primary));
  ROW("cuCtxGetCurrent/popped", cuCtxGetCurrent(&other), yes(other == own));
  ROW("cuCtxPopCurrent/null", cuCtxPopCurrent(nullptr), current_is(primary));
  ROW("cuCtxPushCurrent/null", cuCtxPushCurrent(nullptr));
  ROW("cuCtxPushCurrent/own", cuCtxPushCurrent(own), current_is(own));
  ROW("cuCtxSetCurrent/replaces", cuCtxSetCurrent(primary), current_is(primary));
  ROW("cuCtxDestroy/not-current", cuCtxDestroy(own), current_is(primary));
  ROW("cuCtxDestroy/null", cuCtxDestroy(nullptr));
  ROW("cuCtxCreate/second", cuCtxCreate(&other, nullptr, CU_CTX_SCHED_BLOCKING_SYNC, 0),
      current_is(other));
  ROW("cuCtxDestroy/current", cuCtxDestroy(other), current_is(primary));
}

void forked_child_rows() {
  std::fflush(stdout);
  const pid_t child = ::fork();
  if (child == 0) {
    int number = 0;
    CUcontext context = nullptr;
    unsigned flags = 0;
    ROW("cuDriverGetVersion/forked", cuDriverGetVersion(&number), yes(number >= 13000));
    ROW("cuInit/forked", cuInit(0));
    ROW("cuDeviceGetCount/forked", cuDeviceGetCount(&number));
    ROW("cuCtxGetCurrent/forked", cuCtxGetCurrent(&context));
    ROW("cuCtxSynchronize/forked", cuCtxSynchronize());
    ROW("cuMemAlloc/forked", allocate());
    ROW("cuDevicePrimaryCtxGetState/forked", cuDevicePrimaryCtxGetState(0, &flags, &number));
    ROW("cuDevicePrimaryCtxRetain/forked", cuDevicePrimaryCtxRetain(&context, 0));
    ROW("cuStreamCreate/forked", make_stream());
    ROW("cuModuleLoadData/forked", load_module());
    std::fflush(stdout);
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  if (!WIFEXITED(status)) std::abort();  // as if the row had ended this process
  ROW("cuCtxSynchronize/parent", cuCtxSynchronize());
}

void release_rows() {
  CUcontext again = nullptr;
  ROW("cuDevicePrimaryCtxRelease/last", cuDevicePrimaryCtxRelease(0), primary_state());
  ROW("cuDevicePrimaryCtxRelease/too-many", cuDevicePrimaryCtxRelease(0));
  ROW("cuCtxGetCurrent/released", cuCtxGetCurrent(&again), current_is(primary));
  ROW("cuCtxGetDevice/released", current_device());
  ROW("cuMemAlloc/released", allocate());
  ROW("cuCtxSynchronize/released", cuCtxSynchronize());
  ROW("cuStreamCreate/released", make_stream());
  ROW("cuDevicePrimaryCtxRetain/anew", cuDevicePrimaryCtxRetain(&again, 0),
      yes(again == primary) + " " + primary_state());
  ROW("cuMemAlloc/anew", allocate());
  ROW("cuDevicePrimaryCtxReset/normal", cuDevicePrimaryCtxReset(0), primary_state());
  ROW("cuMemAlloc/reset", allocate());
  ROW("cuDevicePrimaryCtxRelease/reset", cuDevicePrimaryCtxRelease(0));
}

void exit_rows() {
  int number = 0;
  CUcontext context = nullptr;
  ROW("cuDriverGetVersion/exit", cuDriverGetVersion(&number), yes(number >= 13000));
  ROW("cuInit/exit", cuInit(0));
  ROW("cuDeviceGetCount/exit", cuDeviceGetCount(&number));
  ROW("cuCtxGetCurrent/exit", cuCtxGetCurrent(&context));
  ROW("cuCtxSynchronize/exit", cuCtxSynchronize());
  ROW("cuMemAlloc/exit", allocate());
  ROW("cuDevicePrimaryCtxRelease/exit", cuDevicePrimaryCtxRelease(0));
}

}  // namespace conformance
