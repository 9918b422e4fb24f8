// Contexts that are pushed, popped and shared between threads; streams and events of several of
// them; functions of the program that streams call.
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "check.h"

namespace {

constexpr char kPtx[] = R"(
.version 7.0
.target sm_75
.address_size 64

// Adds `number` to each of 256 words, `rounds` times.
.visible .entry add(.param .u64 words, .param .u32 number, .param .u32 rounds)
{
  .reg .pred %p<2>;
  .reg .b32 %r<6>;
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [words];
  ld.param.u32 %r1, [number];
  ld.param.u32 %r2, [rounds];
  mov.u32 %r3, %tid.x;
  cvta.to.global.u64 %rd1, %rd1;
  mul.wide.u32 %rd2, %r3, 4;
  add.s64 %rd3, %rd1, %rd2;
  ld.global.u32 %r4, [%rd3];
LOOP:
  add.s32 %r4, %r4, %r1;
  sub.s32 %r2, %r2, 1;
  setp.ne.u32 %p1, %r2, 0;
  @%p1 bra LOOP;
  st.global.u32 [%rd3], %r4;
  ret;
}
)";

constexpr unsigned kWords = 256;
constexpr std::size_t kBytes = kWords * sizeof(unsigned);

CUfunction load_add() {
  CUmodule module = nullptr;
  CUfunction add = nullptr;
  CHECK(cuModuleLoadData(&module, kPtx));
  CHECK(cuModuleGetFunction(&add, module, "add"));
  return add;
}

void launch(CUfunction add, CUdeviceptr words, unsigned number, unsigned rounds, CUstream stream) {
  void* arguments[] = {&words, &number, &rounds};
  CHECK(cuLaunchKernel(add, 1, 1, 1, kWords, 1, 1, 0, stream, arguments, nullptr));
}

/// The common value of all words; "several" when they differ.
std::string value_of(CUdeviceptr words) {
  std::vector<unsigned> host(kWords);
  CHECK(cuMemcpyDtoH(host.data(), words, kBytes));
  for (const unsigned each : host) {
    if (each != host[0]) return "several";
  }
  return std::to_string(host[0]);
}

CUcontext current() {
  CUcontext context = nullptr;
  CHECK(cuCtxGetCurrent(&context));
  return context;
}

void stack(CUcontext first, CUcontext second) {
  CUcontext popped = nullptr;
  std::printf("the second is current: %d\n", current() == second);
  CHECK(cuCtxPushCurrent(first));
  std::printf("the first is current: %d\n", current() == first);
  CHECK(cuCtxPopCurrent(&popped));
  std::printf("the first was popped: %d, the second is current: %d\n", popped == first,
              current() == second);
  unsigned long long ids[2] = {};
  CHECK(cuCtxGetId(first, &ids[0]));
  CHECK(cuCtxGetId(second, &ids[1]));
  std::printf("they have different numbers: %d\n", ids[0] != ids[1]);
}

/// Two streams take turns, by events.
void take_turns() {
  const CUfunction add = load_add();
  CUdeviceptr words = 0;
  CUstream streams[2] = {};
  CUevent start = nullptr, stop = nullptr, turn = nullptr;
  CHECK(cuMemAlloc(&words, kBytes));
  CHECK(cuMemsetD32(words, 0, kWords));
  CHECK(cuStreamCreate(&streams[0], CU_STREAM_NON_BLOCKING));
  CHECK(cuStreamCreateWithPriority(&streams[1], CU_STREAM_NON_BLOCKING, -1));
  CHECK(cuEventCreate(&start, CU_EVENT_DEFAULT));
  CHECK(cuEventCreate(&stop, CU_EVENT_BLOCKING_SYNC));
  CHECK(cuEventCreate(&turn, CU_EVENT_DISABLE_TIMING));
  CHECK(cuEventRecord(start, streams[0]));
  for (unsigned i = 0; i < 10; ++i) {
    launch(add, words, i, 100, streams[i % 2]);
    CHECK(cuEventRecord(turn, streams[i % 2]));
    CHECK(cuStreamWaitEvent(streams[(i + 1) % 2], turn, 0));
  }
  CHECK(cuEventRecord(stop, streams[0]));
  CHECK(cuEventSynchronize(stop));
  float milliseconds = -1;
  CHECK(cuEventElapsedTime(&milliseconds, start, stop));
  std::printf("after ten turns: %s, which took time: %d\n", value_of(words).c_str(),
              milliseconds > 0);
  for (const CUevent each : {start, stop, turn}) CHECK(cuEventDestroy(each));
  for (const CUstream each : streams) CHECK(cuStreamDestroy(each));
  CHECK(cuMemFree(words));
}

/// The program's functions run in the order of the stream.
void call_functions() {
  static std::atomic<int> order{0};
  static int two = 2;
  CUstream stream = nullptr;
  CHECK(cuStreamCreate(&stream, CU_STREAM_DEFAULT));
  CHECK(cuLaunchHostFunc(
      stream, [](void*) { order = order * 10 + 1; }, nullptr));
  CHECK(cuLaunchHostFunc(
      stream, [](void* to) { order = order * 10 + *static_cast<int*>(to); }, &two));
  CHECK(cuStreamAddCallback(
      stream,
      [](CUstream, CUresult result, void*) {
        order = order * 10 + (result == CUDA_SUCCESS ? 3 : 0);
      },
      nullptr, 0));
  CHECK(cuStreamSynchronize(stream));
  std::printf("functions were called: %d\n", order.load());
  CHECK(cuStreamDestroy(stream));
}

/// Threads share a context, each with its own default stream.
void share(CUcontext context) {
  constexpr unsigned kThreads = 4;
  const CUfunction add = load_add();
  CUdeviceptr words[kThreads] = {};
  for (CUdeviceptr& each : words) {
    CHECK(cuMemAlloc(&each, kBytes));
    CHECK(cuMemsetD8(each, 0, kBytes));
  }
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < kThreads; ++i) {
    threads.emplace_back([=, place = words[i]] {
      std::printf("%s", current() == nullptr ? "" : "a new thread has a context\n");
      CHECK(cuCtxSetCurrent(context));
      for (unsigned round = 0; round < 20; ++round)
        launch(add, place, i + 1, 10, CU_STREAM_PER_THREAD);
      CHECK(cuStreamSynchronize(CU_STREAM_PER_THREAD));
    });
  }
  for (std::thread& each : threads) each.join();
  for (const CUdeviceptr each : words) {
    std::printf("a thread's words: %s\n", value_of(each).c_str());
    CHECK(cuMemFree(each));
  }
}

}  // namespace

int main() {
  CUcontext first = nullptr, second = nullptr, primary = nullptr;
  CHECK(cuInit(0));
  CHECK(cuCtxCreate(&first, nullptr, CU_CTX_SCHED_BLOCKING_SYNC, 0));
  CHECK(cuCtxCreate(&second, nullptr, 0, 0));
  stack(first, second);
  take_turns();
  CHECK(cuCtxDestroy(second));
  std::printf("destroyed, the first is current: %d\n", current() == first);
  call_functions();
  share(first);
  CHECK(cuCtxDestroy(first));
  std::printf("none is current: %d\n", current() == nullptr);

  CHECK(cuDevicePrimaryCtxRetain(&primary, 0));
  CHECK(cuCtxPushCurrent(primary));
  take_turns();
  CHECK(cuCtxPopCurrent(nullptr));
  CHECK(cuDevicePrimaryCtxRelease(0));
  return 0;
}
