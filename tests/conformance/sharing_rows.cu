// Managed memory, what programs share, code loaded at run time, cooperative launches.
#include "conformance.h"

namespace conformance {
namespace {

constexpr std::size_t kBytes = 1 << 20;
constexpr cudaMemLocation kDevice{cudaMemLocationTypeDevice, 0};
constexpr cudaMemLocation kHost{cudaMemLocationTypeHost, 0};

std::string attribute(const void* memory, cudaMemRangeAttribute which) {
  int value = 99;
  cudaMemRangeGetAttribute(&value, sizeof(value), which, memory, kBytes);
  return std::to_string(value);
}

void managed(char* plain) {
  char* memory = nullptr;
  ROW("cudaMallocManaged/normal", cudaMallocManaged(&memory, kBytes));
  void* other = nullptr;
  ROW("cudaMallocManaged/zero", cudaMallocManaged(&other, 0));
  ROW("cudaMallocManaged/null", cudaMallocManaged(static_cast<void**>(nullptr), 16));
  ROW("cudaMallocManaged/single", cudaMallocManaged(&other, 16, cudaMemAttachSingle));
  ROW("cudaMallocManaged/no-flags", cudaMallocManaged(&other, 16, 0));
  cudaPointerAttributes attributes{};
  ROW("cudaPointerGetAttributes/managed", cudaPointerGetAttributes(&attributes, memory + 5),
      std::to_string(attributes.type) + (attributes.hostPointer == memory + 5 ? " itself" : ""));
  ROW("cudaMemset/managed", cudaMemset(memory, 3, kBytes), std::to_string(memory[kBytes - 1]));
  ROW("cudaMemcpy/managed-to-managed",
      cudaMemcpy(memory, memory + 512, 256, cudaMemcpyDeviceToDevice));
  ROW("cudaMemcpy/managed-default", cudaMemcpy(plain, memory, 256, cudaMemcpyDefault));
  ROW("cudaMemPrefetchAsync/normal", cudaMemPrefetchAsync(memory, kBytes, kDevice, 0, nullptr),
      attribute(memory, cudaMemRangeAttributeLastPrefetchLocation));
  ROW("cudaMemPrefetchAsync/host", cudaMemPrefetchAsync(memory, kBytes, kHost, 0, nullptr),
      attribute(memory, cudaMemRangeAttributeLastPrefetchLocation));
  ROW("cudaMemPrefetchAsync/nothing", cudaMemPrefetchAsync(memory, 0, kDevice, 0, nullptr));
  ROW("cudaMemPrefetchAsync/flags", cudaMemPrefetchAsync(memory, kBytes, kDevice, 1, nullptr));
  ROW("cudaMemPrefetchAsync/plain", cudaMemPrefetchAsync(plain, 4096, kDevice, 0, nullptr));
  ROW("cudaMemPrefetchAsync/nowhere",
      cudaMemPrefetchAsync(memory, kBytes, {cudaMemLocationTypeDevice, 99}, 0, nullptr));
  ROW("cudaMemAdvise/read-mostly", cudaMemAdvise(memory, kBytes, cudaMemAdviseSetReadMostly, kHost),
      attribute(memory, cudaMemRangeAttributeReadMostly));
  ROW("cudaMemAdvise/preferred",
      cudaMemAdvise(memory, kBytes, cudaMemAdviseSetPreferredLocation, kHost),
      attribute(memory, cudaMemRangeAttributePreferredLocation));
  ROW("cudaMemAdvise/unknown", cudaMemAdvise(memory, kBytes, unknown<cudaMemoryAdvise>(77), kHost));
  ROW("cudaMemAdvise/plain", cudaMemAdvise(plain, 4096, cudaMemAdviseSetReadMostly, kHost));
  int value = 0;
  ROW("cudaMemRangeGetAttribute/size",
      cudaMemRangeGetAttribute(&value, 3, cudaMemRangeAttributeReadMostly, memory, kBytes));
  ROW("cudaMemRangeGetAttribute/unknown",
      cudaMemRangeGetAttribute(&value, 4, unknown<cudaMemRangeAttribute>(77), memory, kBytes));
  cudaStream_t stream = nullptr;
  cudaStreamCreate(&stream);
  ROW("cudaStreamAttachMemAsync/single",
      cudaStreamAttachMemAsync(stream, memory, 0, cudaMemAttachSingle));
  ROW("cudaStreamAttachMemAsync/part",
      cudaStreamAttachMemAsync(stream, memory, 5, cudaMemAttachSingle));
  ROW("cudaStreamAttachMemAsync/null-stream",
      cudaStreamAttachMemAsync(nullptr, memory, 0, cudaMemAttachSingle));
  cudaStreamDestroy(stream);
  ROW("cudaFree/managed", cudaFree(memory));
  ROW("cudaFree/managed-twice", cudaFree(memory));
}

void pinned(char* plain) {
  char* host = nullptr;
  cudaMallocHost(&host, kBytes);
  ROW("cudaMemset/pinned", cudaMemset(host, 3, kBytes), std::to_string(host[kBytes - 1]));
  ROW("cudaMemcpy/pinned-as-device", cudaMemcpy(plain, host, 256, cudaMemcpyDeviceToDevice));
  cudaFreeHost(host);
}

void ipc(char* plain) {
  cudaIpcMemHandle_t handle{};
  void* opened = nullptr;
  ROW("cudaIpcGetMemHandle/normal", cudaIpcGetMemHandle(&handle, plain));
  ROW("cudaIpcGetMemHandle/null", cudaIpcGetMemHandle(nullptr, plain));
  ROW("cudaIpcGetMemHandle/host", cudaIpcGetMemHandle(&handle, &handle));
  ROW("cudaIpcOpenMemHandle/flags", cudaIpcOpenMemHandle(&opened, handle, 0));
  ROW("cudaIpcCloseMemHandle/own", cudaIpcCloseMemHandle(plain));
  cudaEvent_t event = nullptr;
  cudaIpcEventHandle_t shared{};
  ROW("cudaEventCreateWithFlags/interprocess-timed",
      cudaEventCreateWithFlags(&event, cudaEventInterprocess));
  cudaEventCreateWithFlags(&event, cudaEventInterprocess | cudaEventDisableTiming);
  ROW("cudaIpcGetEventHandle/normal", cudaIpcGetEventHandle(&shared, event));
  cudaEventDestroy(event);
  cudaEventCreate(&event);
  ROW("cudaIpcGetEventHandle/plain", cudaIpcGetEventHandle(&shared, event));
  cudaEventDestroy(event);
}

constexpr char kCode[] =
    ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry nothing() { ret; }\n";

void libraries() {
  cudaLibrary_t library = nullptr;
  const auto load = [&](const void* code) {
    return cudaLibraryLoadData(&library, code, nullptr, nullptr, 0, nullptr, nullptr, 0);
  };
  ROW("cudaLibraryLoadData/normal", load(kCode));
  unsigned count = 99;
  ROW("cudaLibraryGetKernelCount/normal", cudaLibraryGetKernelCount(&count, library),
      std::to_string(count));
  cudaKernel_t kernel = nullptr;
  ROW("cudaLibraryGetKernel/normal", cudaLibraryGetKernel(&kernel, library, "nothing"));
  ROW("cudaLaunchKernel/of-library",
      cudaLaunchKernel(kernel, dim3(1), dim3(1), nullptr, 0, nullptr));
  ROW("cudaLibraryGetKernel/missing", cudaLibraryGetKernel(&kernel, library, "something"));
  void* address = nullptr;
  std::size_t bytes = 0;
  ROW("cudaLibraryGetGlobal/missing", cudaLibraryGetGlobal(&address, &bytes, library, "x"));
  ROW("cudaLibraryGetManaged/missing", cudaLibraryGetManaged(&address, &bytes, library, "x"));
  ROW("cudaLibraryUnload/normal", cudaLibraryUnload(library));
  ROW("cudaLibraryLoadData/null", load(nullptr));
  ROW("cudaLibraryLoadFromFile/missing",
      cudaLibraryLoadFromFile(&library, "/nonexistent", nullptr, nullptr, 0, nullptr, nullptr, 0));
}

void cooperative() {
  int* out = nullptr;
  double value = 0;
  void* arguments[] = {&out, &value};
  ROW("cudaLaunchCooperativeKernel/normal",
      cudaLaunchCooperativeKernel(two_parameters, dim3(1), dim3(32), arguments, 0, nullptr));
  ROW("cudaLaunchCooperativeKernel/too-large",
      cudaLaunchCooperativeKernel(two_parameters, dim3(1 << 20), dim3(32), arguments, 0, nullptr));
  ROW("cudaLaunchCooperativeKernel/no-blocks",
      cudaLaunchCooperativeKernel(two_parameters, dim3(0), dim3(32), arguments, 0, nullptr));
  ROW("cudaLaunchCooperativeKernel/bad-stream",
      cudaLaunchCooperativeKernel(two_parameters, dim3(1), dim3(32), arguments, 0,
                                  wild_handle<cudaStream_t>()));
}

void forbidden_captures() {
  cudaStream_t stream = nullptr;
  cudaGraph_t graph = nullptr;
  void* memory = nullptr;
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
  ROW("cudaMalloc/global-capture", cudaMalloc(&memory, 16));
  ROW("cudaStreamEndCapture/after-malloc", cudaStreamEndCapture(stream, &graph));
  cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed);
  ROW("cudaMalloc/relaxed-capture", cudaMalloc(&memory, 16));
  ROW("cudaStreamEndCapture/after-allowed-malloc", cudaStreamEndCapture(stream, &graph));
  cudaGraphDestroy(graph);
  cudaFree(memory);
  cudaStreamDestroy(stream);
}

}  // namespace

void sharing_rows() {
  char* plain = nullptr;
  cudaMalloc(&plain, kBytes);
  managed(plain);
  pinned(plain);
  ipc(plain);
  cudaFree(plain);
  libraries();
  cooperative();
  forbidden_captures();
}

}  // namespace conformance
