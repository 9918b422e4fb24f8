// Rows of streams, events, limits, code and launches.
#include <array>
#include <cstring>

#include "driver_rows.h"

namespace conformance {
namespace {

/// Adds a number to an integer on the device.
constexpr char kCode[] = R"(.version 7.0
.target sm_75
.address_size 64
.visible .global .align 4 .b8 numbers[64];
.visible .entry add(.param .u64 to, .param .u32 number) {
  .reg .b64 %rd<3>;
  .reg .b32 %r<4>;
  ld.param.u64 %rd1, [to];
  ld.param.u32 %r1, [number];
  cvta.to.global.u64 %rd2, %rd1;
  ld.global.u32 %r2, [%rd2];
  add.s32 %r3, %r1, %r2;
  st.global.u32 [%rd2], %r3;
  ret;
}
.visible .entry nothing() {
  ret;
}
)";
constexpr char kBroken[] = ".version 7.0\n.target sm_75\n.address_size 64\n.entry broken( {\n";
constexpr char kNewerTarget[] =
    ".version 9.0\n.target sm_120\n.address_size 64\n.entry k() { ret; }\n";
constexpr char kNewerVersion[] =
    ".version 99.0\n.target sm_75\n.address_size 64\n.entry k() { ret; }\n";
constexpr char kGarbage[] = "this is no code, whatever one may think of it";

CUmodule module = nullptr;
CUfunction add = nullptr;

CUresult load(const char* code) {
  CUmodule loaded = nullptr;
  const CUresult result = cuModuleLoadData(&loaded, code);
  if (result == CUDA_SUCCESS) (void)cuModuleUnload(loaded);
  return result;
}

CUresult launch(std::array<unsigned, 3> grid, std::array<unsigned, 3> block, unsigned shared = 0,
                CUstream stream = nullptr) {
  static CUdeviceptr memory = 0;
  if (memory == 0) {
    (void)cuMemAlloc(&memory, sizeof(int));
    (void)cuMemsetD32(memory, 0, 1);
  }
  int number = 1;
  void* parameters[] = {&memory, &number};
  return cuLaunchKernel(add, grid[0], grid[1], grid[2], block[0], block[1], block[2], shared,
                        stream, parameters, nullptr);
}

/// With all parameters in one buffer, of which the launch is told `bytes`.
CUresult launch_packed(std::size_t bytes, void** besides = nullptr) {
  struct {
    CUdeviceptr memory;
    int number;
  } packed{0, 1};
  (void)cuModuleGetGlobal(&packed.memory, nullptr, module, "numbers");
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                   CU_LAUNCH_PARAM_END};
  return cuLaunchKernel(add, 1, 1, 1, 1, 1, 1, 0, nullptr, besides, extra);
}

CUresult launch_with_attribute(int id) {
  CUlaunchAttribute attribute{};
  attribute.id = unknown<CUlaunchAttributeID>(id);
  attribute.value.cooperative = 0;
  CUlaunchConfig config{1, 1, 1, 1, 1, 1, 0, nullptr, &attribute, 1};
  CUfunction nothing = nullptr;
  (void)cuModuleGetFunction(&nothing, module, "nothing");
  return cuLaunchKernelEx(&config, nothing, nullptr, nullptr);
}

int attribute_of(CUfunction_attribute attribute) {
  int value = -77;
  (void)cuFuncGetAttribute(&value, attribute, add);
  return value;
}

CUresult load_with_log(const char* code, std::string& told) {
  char log[4096] = "";
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {log, reinterpret_cast<void*>(sizeof(log))};
  CUmodule loaded = nullptr;
  const CUresult result = cuModuleLoadDataEx(&loaded, code, 2, options, values);
  if (result == CUDA_SUCCESS) (void)cuModuleUnload(loaded);
  told = std::strlen(log) > 0 ? "says why" : "says nothing";
  return result;
}

}  // namespace

void stream_rows() {
  CUstream stream = nullptr, other = nullptr;
  CUevent never = nullptr;
  CUcontext context = nullptr, current = nullptr;
  unsigned flags = 77;
  int priority = 77, greatest = 77;
  unsigned long long id = 0, own = 0;
  CUstreamCaptureStatus capturing{};
  ROW("cuCtxGetStreamPriorityRange/normal", cuCtxGetStreamPriorityRange(&priority, &greatest),
      text(priority) + " " + text(greatest));
  ROW("cuStreamCreate/flags", cuStreamCreate(&stream, 5));
  ROW("cuStreamCreate/null", cuStreamCreate(nullptr, 0));
  ROW("cuStreamCreate/normal", cuStreamCreate(&stream, CU_STREAM_DEFAULT));
  ROW("cuStreamCreateWithPriority/clamped",
      cuStreamCreateWithPriority(&other, CU_STREAM_NON_BLOCKING, -100));
  ROW("cuStreamGetPriority/clamped", cuStreamGetPriority(other, &priority), text(priority));
  ROW("cuStreamGetFlags/non-blocking", cuStreamGetFlags(other, &flags), text(flags));
  ROW("cuStreamGetFlags/null", cuStreamGetFlags(other, nullptr));
  ROW("cuStreamGetId/default", cuStreamGetId(nullptr, &id), text(id));
  ROW("cuStreamGetId/legacy", cuStreamGetId(CU_STREAM_LEGACY, &id), text(id));
  ROW("cuStreamGetId/own", cuStreamGetId(stream, &own), yes(own > 7));
  (void)cuCtxGetCurrent(&current);
  ROW("cuStreamGetCtx/normal", cuStreamGetCtx(stream, &context), yes(context == current));
  ROW("cuStreamQuery/default", cuStreamQuery(nullptr));
  ROW("cuStreamQuery/per-thread", cuStreamQuery(CU_STREAM_PER_THREAD));
  ROW("cuStreamSynchronize/normal", cuStreamSynchronize(stream));
  (void)cuEventCreate(&never, 0);
  ROW("cuStreamWaitEvent/never-recorded", cuStreamWaitEvent(stream, never, 0));
  ROW("cuStreamWaitEvent/flags", cuStreamWaitEvent(stream, never, 8));
  ROW("cuStreamWaitEvent/null", cuStreamWaitEvent(stream, nullptr, 0));
  (void)cuEventDestroy(never);
  ROW("cuStreamIsCapturing/normal", cuStreamIsCapturing(stream, &capturing),
      text(static_cast<int>(capturing)));
  ROW("cuStreamBeginCapture/default", cuStreamBeginCapture(nullptr, CU_STREAM_CAPTURE_MODE_GLOBAL));
  ROW("cuStreamBeginCapture/mode", cuStreamBeginCapture(stream, unknown<CUstreamCaptureMode>(9)));
  CUgraph graph = nullptr;
  ROW("cuStreamEndCapture/none", cuStreamEndCapture(stream, &graph));
  ROW("cuLaunchHostFunc/null", cuLaunchHostFunc(stream, nullptr, nullptr));
  ROW("cuStreamDestroy/default", cuStreamDestroy(nullptr));
  ROW("cuStreamDestroy/per-thread", cuStreamDestroy(CU_STREAM_PER_THREAD));
  ROW("cuStreamDestroy/normal", cuStreamDestroy(stream));
  (void)cuStreamDestroy(other);
}

void event_rows() {
  CUevent first = nullptr, second = nullptr, untimed = nullptr;
  float milliseconds = -1;
  ROW("cuEventCreate/flags", cuEventCreate(&first, 0x100));
  ROW("cuEventCreate/null", cuEventCreate(nullptr, 0));
  ROW("cuEventCreate/interprocess-timed", cuEventCreate(&first, CU_EVENT_INTERPROCESS));
  ROW("cuEventCreate/normal", cuEventCreate(&first, CU_EVENT_DEFAULT));
  (void)cuEventCreate(&second, CU_EVENT_DEFAULT);
  (void)cuEventCreate(&untimed, CU_EVENT_DISABLE_TIMING);
  ROW("cuEventQuery/never-recorded", cuEventQuery(first));
  ROW("cuEventSynchronize/never-recorded", cuEventSynchronize(first));
  ROW("cuEventElapsedTime/never-recorded", cuEventElapsedTime(&milliseconds, first, second));
  ROW("cuEventRecord/normal", cuEventRecord(first, nullptr));
  ROW("cuEventRecordWithFlags/flags", cuEventRecordWithFlags(first, nullptr, 8));
  ROW("cuEventRecord/null", cuEventRecord(nullptr, nullptr));
  (void)cuEventRecord(second, nullptr);
  (void)cuEventRecord(untimed, nullptr);
  (void)cuCtxSynchronize();
  ROW("cuEventElapsedTime/normal", cuEventElapsedTime(&milliseconds, first, second),
      yes(milliseconds >= 0));
  ROW("cuEventElapsedTime/untimed", cuEventElapsedTime(&milliseconds, first, untimed));
  ROW("cuEventElapsedTime/null", cuEventElapsedTime(nullptr, first, second));
  ROW("cuEventDestroy/normal", cuEventDestroy(first));
  ROW("cuEventDestroy/null", cuEventDestroy(nullptr));
  (void)cuEventDestroy(second);
  (void)cuEventDestroy(untimed);
}

void limit_rows() {
  std::size_t value = 0;
  const auto get = [&](int limit) {
    value = 0;
    return cuCtxGetLimit(&value, unknown<CUlimit>(limit));
  };
  ROW("cuCtxGetLimit/stack", get(CU_LIMIT_STACK_SIZE), text(value));
  ROW("cuCtxGetLimit/printf", get(CU_LIMIT_PRINTF_FIFO_SIZE), text(value));
  ROW("cuCtxGetLimit/heap", get(CU_LIMIT_MALLOC_HEAP_SIZE), text(value));
  ROW("cuCtxGetLimit/sync-depth", get(CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH));
  ROW("cuCtxGetLimit/pending-launches", get(CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT),
      text(value));
  ROW("cuCtxGetLimit/l2-fetch", get(CU_LIMIT_MAX_L2_FETCH_GRANULARITY), text(value));
  ROW("cuCtxGetLimit/persisting-l2@", get(CU_LIMIT_PERSISTING_L2_CACHE_SIZE), text(value));
  ROW("cuCtxGetLimit/shared@", get(CU_LIMIT_SHMEM_SIZE), text(value));
  ROW("cuCtxGetLimit/cig", get(CU_LIMIT_CIG_ENABLED), text(value));
  ROW("cuCtxGetLimit/cig-shared", get(CU_LIMIT_CIG_SHMEM_FALLBACK_ENABLED));
  ROW("cuCtxGetLimit/unknown", get(10));
  ROW("cuCtxGetLimit/null", cuCtxGetLimit(nullptr, CU_LIMIT_STACK_SIZE));
  ROW("cuCtxSetLimit/unknown", cuCtxSetLimit(unknown<CUlimit>(10), 1));
  ROW("cuCtxSetLimit/sync-depth", cuCtxSetLimit(CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH, 2));
}

void code_rows() {
  CUfunction missing = nullptr;
  CUdeviceptr place = 0;
  std::size_t bytes = 0;
  std::string log;
  ROW("cuModuleLoadData/null", cuModuleLoadData(&module, nullptr));
  ROW("cuModuleLoadData/garbage", load(kGarbage));
  ROW("cuModuleLoadData/broken", load(kBroken));
  ROW("cuModuleLoadData/newer-target", load(kNewerTarget));
  ROW("cuModuleLoadData/newer-version", load(kNewerVersion));
  ROW("cuModuleLoadDataEx/log", load_with_log(kBroken, log), log);
  ROW("cuModuleLoadDataEx/no-log", load_with_log(kCode, log), log);
  ROW("cuModuleLoad/no-file", cuModuleLoad(&module, "/there/is/no/such.cubin"));
  ROW("cuModuleLoadData/normal", cuModuleLoadData(&module, kCode));
  ROW("cuModuleGetFunction/normal", cuModuleGetFunction(&add, module, "add"));
  ROW("cuModuleGetFunction/missing", cuModuleGetFunction(&missing, module, "subtract"));
  ROW("cuModuleGetFunction/null", cuModuleGetFunction(&missing, module, nullptr));
  ROW("cuModuleGetGlobal/normal", cuModuleGetGlobal(&place, &bytes, module, "numbers"),
      text(bytes));
  ROW("cuModuleGetGlobal/missing", cuModuleGetGlobal(&place, &bytes, module, "letters"));
  ROW("cuModuleGetGlobal/size-only", cuModuleGetGlobal(nullptr, &bytes, module, "numbers"),
      text(bytes));
  unsigned count = 0;
  ROW("cuModuleGetFunctionCount/normal", cuModuleGetFunctionCount(&count, module), text(count));

  CUlibrary library = nullptr;
  CUkernel kernel = nullptr;
  const auto load_library = [&](const void* code) {
    return cuLibraryLoadData(&library, code, nullptr, nullptr, 0, nullptr, nullptr, 0);
  };
  ROW("cuLibraryLoadData/null", load_library(nullptr));
  ROW("cuLibraryLoadData/garbage", load_library(kGarbage));
  ROW("cuLibraryLoadData/normal", load_library(kCode));
  ROW("cuLibraryGetKernelCount/normal", cuLibraryGetKernelCount(&count, library), text(count));
  ROW("cuLibraryGetKernel/normal", cuLibraryGetKernel(&kernel, library, "nothing"));
  ROW("cuLibraryGetKernel/missing", cuLibraryGetKernel(&kernel, library, "subtract"));
  ROW("cuLibraryGetGlobal/missing", cuLibraryGetGlobal(&place, &bytes, library, "letters"));
  ROW("cuLibraryGetManaged/missing", cuLibraryGetManaged(&place, &bytes, library, "numbers"));
  ROW("cuLaunchKernel/of-library", cuLaunchKernel(reinterpret_cast<CUfunction>(kernel), 1, 1, 1, 1,
                                                  1, 1, 0, nullptr, nullptr, nullptr));
  (void)cuCtxSynchronize();
  ROW("cuLibraryUnload/normal", cuLibraryUnload(library));
}

void launch_rows() {
  int value = 0;
  ROW("cuFuncGetAttribute/threads",
      cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, add), text(value));
  ROW("cuFuncGetAttribute/dynamic-shared",
      cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, add),
      text(value));
  ROW("cuFuncGetAttribute/unknown",
      cuFuncGetAttribute(&value, unknown<CUfunction_attribute>(99), add));
  ROW("cuFuncGetAttribute/null", cuFuncGetAttribute(nullptr, CU_FUNC_ATTRIBUTE_NUM_REGS, add));
  ROW("cuFuncSetAttribute/most-shared@",
      cuFuncSetAttribute(add, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 232448),
      text(attribute_of(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)));
  ROW("cuFuncSetAttribute/too-much-shared@",
      cuFuncSetAttribute(add, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 232449));
  ROW("cuFuncSetAttribute/negative-shared",
      cuFuncSetAttribute(add, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, -1));
  (void)cuFuncSetAttribute(add, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 49152);
  ROW("cuFuncSetAttribute/carveout",
      cuFuncSetAttribute(add, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 50));
  ROW("cuFuncSetAttribute/carveout-beyond",
      cuFuncSetAttribute(add, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 101));
  ROW("cuFuncSetAttribute/read-only", cuFuncSetAttribute(add, CU_FUNC_ATTRIBUTE_NUM_REGS, 8));
  ROW("cuFuncGetAttribute/no-function",
      cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, nullptr));

  ROW("cuLaunchKernel/normal", launch({1, 1, 1}, {1, 1, 1}));
  ROW("cuLaunchKernel/legacy-stream", launch({1, 1, 1}, {1, 1, 1}, 0, CU_STREAM_LEGACY));
  ROW("cuLaunchKernel/per-thread-stream", launch({1, 1, 1}, {1, 1, 1}, 0, CU_STREAM_PER_THREAD));
  ROW("cuLaunchKernel/no-blocks", launch({0, 1, 1}, {1, 1, 1}));
  ROW("cuLaunchKernel/no-threads", launch({1, 1, 1}, {0, 1, 1}));
  ROW("cuLaunchKernel/many-threads", launch({1, 1, 1}, {2000, 1, 1}));
  ROW("cuLaunchKernel/deep-block", launch({1, 1, 1}, {1, 1, 65}));
  ROW("cuLaunchKernel/high-grid", launch({1, 65536, 1}, {1, 1, 1}));
  ROW("cuLaunchKernel/long-grid", launch({0x80000000u, 1, 1}, {1, 1, 1}));
  ROW("cuLaunchKernel/much-shared", launch({1, 1, 1}, {1, 1, 1}, 1 << 20));
  ROW("cuLaunchKernel/no-parameters",
      cuLaunchKernel(add, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
  ROW("cuLaunchKernel/no-function",
      cuLaunchKernel(nullptr, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
  CUdeviceptr memory = 0;
  int number = 1;
  void* parameters[] = {&memory, &number};
  ROW("cuLaunchKernel/packed", launch_packed(12));
  ROW("cuLaunchKernel/packed-padded", launch_packed(16));
  ROW("cuLaunchKernel/packed-short", launch_packed(8));
  ROW("cuLaunchKernel/packed-and-single", launch_packed(12, parameters));
  ROW("cuLaunchKernelEx/ignored", launch_with_attribute(CU_LAUNCH_ATTRIBUTE_IGNORE));
  ROW("cuLaunchKernelEx/not-cooperative", launch_with_attribute(CU_LAUNCH_ATTRIBUTE_COOPERATIVE));
  ROW("cuLaunchKernelEx/unknown", launch_with_attribute(99));
  ROW("cuLaunchCooperativeKernel/too-large",
      cuLaunchCooperativeKernel(add, 1 << 20, 1, 1, 1, 1, 1, 0, nullptr, parameters));
  ROW("cuCtxSynchronize/after-launches", cuCtxSynchronize());
  int blocks = 0;
  ROW("cuOccupancyMaxActiveBlocksPerMultiprocessor/no-threads",
      cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, add, 0, 0));
  ROW("cuOccupancyMaxActiveBlocksPerMultiprocessor/null",
      cuOccupancyMaxActiveBlocksPerMultiprocessor(nullptr, add, 32, 0));
  ROW("cuModuleUnload/normal", cuModuleUnload(module));
  ROW("cuModuleUnload/null", cuModuleUnload(nullptr));
}

}  // namespace conformance
