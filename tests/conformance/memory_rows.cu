// Allocations, copies and fills of one, two and three dimensions, pinned memory, pointers.
#include "conformance.h"

namespace conformance {
namespace {

constexpr std::size_t kBytes = 1 << 20;

char* wild(char* memory) {
  return memory + (1ll << 40);
}

void allocations(char* memory) {
  void* pointer = &pointer;
  ROW("cudaMalloc/zero", cudaMalloc(&pointer, 0), pointer == nullptr ? "null" : "not null");
  ROW("cudaMalloc/null", cudaMalloc(static_cast<void**>(nullptr), 16));
  ROW("cudaMalloc/too-much", cudaMalloc(&pointer, 1ull << 50));
  ROW("cudaFree/null", cudaFree(nullptr));
  ROW("cudaFree/wild", cudaFree(wild(memory)));
  ROW("cudaFree/inside", cudaFree(memory + 256));
  std::size_t pitch = 0;
  ROW("cudaMallocPitch/normal", cudaMallocPitch(&pointer, &pitch, 100, 7), std::to_string(pitch));
  cudaFree(pointer);
  ROW("cudaMallocPitch/null", cudaMallocPitch(static_cast<void**>(nullptr), &pitch, 100, 7));
  ROW("cudaMallocPitch/zero", cudaMallocPitch(&pointer, &pitch, 0, 7),
      pointer == nullptr ? "null" : "not null");
  cudaPitchedPtr pitched{};
  ROW("cudaMalloc3D/normal", cudaMalloc3D(&pitched, make_cudaExtent(100, 7, 3)),
      std::to_string(pitched.pitch) + " " + std::to_string(pitched.xsize) + " " +
          std::to_string(pitched.ysize));
  ROW("cudaMemset3D/normal", cudaMemset3D(pitched, 1, make_cudaExtent(100, 7, 3)));
  ROW("cudaMemset3D/too-wide", cudaMemset3D(pitched, 1, make_cudaExtent(4096, 7, 3)));
  cudaFree(pitched.ptr);
  ROW("cudaMalloc3D/null", cudaMalloc3D(nullptr, make_cudaExtent(100, 7, 3)));
}

void copies(char* memory) {
  std::vector<char> host(kBytes, 'x');
  char* from = host.data();
  ROW("cudaMemcpy/normal", cudaMemcpy(memory, from, kBytes, cudaMemcpyHostToDevice));
  ROW("cudaMemcpy/default", cudaMemcpy(memory, from, 16, cudaMemcpyDefault));
  ROW("cudaMemcpy/bad-kind", cudaMemcpy(memory, from, 16, unknown<cudaMemcpyKind>(77)));
  ROW("cudaMemcpy/nothing", cudaMemcpy(memory, from, 0, cudaMemcpyHostToDevice));
  ROW("cudaMemcpy/past-end", cudaMemcpy(memory, from, kBytes + 1, cudaMemcpyHostToDevice));
  ROW("cudaMemcpy/null-to", cudaMemcpy(nullptr, from, 16, cudaMemcpyHostToDevice));
  ROW("cudaMemcpy/null-from", cudaMemcpy(memory, nullptr, 16, cudaMemcpyHostToDevice));
  ROW("cudaMemcpy/wild", cudaMemcpy(wild(memory), from, 16, cudaMemcpyHostToDevice));
  ROW("cudaMemcpy/overlap-on-device", cudaMemcpy(memory + 8, memory, 16, cudaMemcpyDeviceToDevice));
  ROW("cudaMemcpyAsync/bad-stream",
      cudaMemcpyAsync(memory, from, 16, cudaMemcpyHostToDevice, wild_handle<cudaStream_t>()));
  ROW("cudaMemcpy2D/normal", cudaMemcpy2D(memory, 512, from, 100, 100, 7, cudaMemcpyHostToDevice));
  ROW("cudaMemcpy2D/narrow-to",
      cudaMemcpy2D(memory, 64, from, 100, 100, 7, cudaMemcpyHostToDevice));
  ROW("cudaMemcpy2D/narrow-from",
      cudaMemcpy2D(memory, 512, from, 64, 100, 7, cudaMemcpyHostToDevice));
  ROW("cudaMemcpy2D/narrow-one-row",
      cudaMemcpy2D(memory, 64, from, 100, 100, 1, cudaMemcpyHostToDevice));
  ROW("cudaMemcpy2D/no-rows", cudaMemcpy2D(memory, 512, from, 100, 100, 0, cudaMemcpyHostToDevice));
  ROW("cudaMemcpy3D/null", cudaMemcpy3D(nullptr));
  // These wrap around to where they began. The memory: 2 slices of 4 rows of 256 bytes.
  const cudaPitchedPtr slices = make_cudaPitchedPtr(memory, 256, 256, 4);
  cudaMemcpy3DParms parms{};
  parms.srcPtr = slices;
  parms.dstPtr = make_cudaPitchedPtr(from, 256, 256, 4);
  parms.extent = make_cudaExtent(256, 2, 1);
  parms.kind = cudaMemcpyDeviceToHost;
  ROW("cudaMemcpy3D/from-device", cudaMemcpy3D(&parms));
  parms.srcPos.z = 1ull << 56;
  ROW("cudaMemcpy3D/far-slice", cudaMemcpy3D(&parms));
  parms.srcPos.z = 0;
  parms.srcPos.y = 1ull << 58;
  ROW("cudaMemcpy3D/far-row", cudaMemcpy3D(&parms));
  parms.srcPos.y = 0;
  parms.extent.depth = (1ull << 56) + 1;
  ROW("cudaMemcpy3D/too-many-slices", cudaMemcpy3D(&parms));
  ROW("cudaMemcpy2D/too-many-rows",
      cudaMemcpy2D(memory, 256, memory, 256, 256, (1ull << 56) + 1, cudaMemcpyDeviceToDevice));
  ROW("cudaMemset3D/too-many-slices",
      cudaMemset3D(slices, 1, make_cudaExtent(256, 2, (1ull << 54) + 1)));
  ROW("cudaMemset2D/too-many-rows", cudaMemset2D(memory, 256, 1, 256, (1ull << 56) + 1));
  ROW("cudaMemcpyPeer/self", cudaMemcpyPeer(memory, 0, memory + 1024, 0, 16));
  ROW("cudaMemcpyPeer/beyond", cudaMemcpyPeer(memory, 0, memory + 1024, 99, 16));
}

void fills(char* memory) {
  ROW("cudaMemset/normal", cudaMemset(memory, 7, kBytes));
  ROW("cudaMemset/nothing", cudaMemset(memory, 7, 0));
  ROW("cudaMemset/past-end", cudaMemset(memory, 7, kBytes + 1));
  ROW("cudaMemset/null", cudaMemset(nullptr, 7, 16));
  ROW("cudaMemset/wild", cudaMemset(wild(memory), 7, 16));
  ROW("cudaMemsetAsync/bad-stream", cudaMemsetAsync(memory, 7, 16, wild_handle<cudaStream_t>()));
  ROW("cudaMemset2D/normal", cudaMemset2D(memory, 512, 7, 100, 7));
  ROW("cudaMemset2D/narrow", cudaMemset2D(memory, 64, 7, 100, 7));
}

void pinned() {
  void* host = nullptr;
  ROW("cudaMallocHost/normal", cudaMallocHost(&host, kBytes));
  unsigned flags = 99;
  ROW("cudaHostGetFlags/normal", cudaHostGetFlags(&flags, host));
  ROW("cudaHostGetFlags/null", cudaHostGetFlags(nullptr, host));
  ROW("cudaHostGetFlags/plain", cudaHostGetFlags(&flags, &flags));
  ROW("cudaFreeHost/normal", cudaFreeHost(host));
  ROW("cudaFreeHost/null", cudaFreeHost(nullptr));
  ROW("cudaFreeHost/plain", cudaFreeHost(&flags));
  ROW("cudaHostAlloc/bad-flags", cudaHostAlloc(&host, 16, 0x8000));
  ROW("cudaHostAlloc/null", cudaHostAlloc(static_cast<void**>(nullptr), 16, 0));
  ROW("cudaMallocHost/zero", cudaMallocHost(&host, 0), host == nullptr ? "null" : "not null");
  std::vector<char> mine(1 << 16);
  ROW("cudaHostRegister/null", cudaHostRegister(nullptr, 16, 0));
  ROW("cudaHostRegister/nothing", cudaHostRegister(mine.data(), 0, 0));
  ROW("cudaHostRegister/bad-flags", cudaHostRegister(mine.data(), mine.size(), 0x8000));
  ROW("cudaHostRegister/normal", cudaHostRegister(mine.data(), mine.size(), 0));
  ROW("cudaHostRegister/twice", cudaHostRegister(mine.data(), mine.size(), 0));
  ROW("cudaHostUnregister/normal", cudaHostUnregister(mine.data()));
  ROW("cudaHostUnregister/twice", cudaHostUnregister(mine.data()));
}

void pointers(char* memory) {
  cudaPointerAttributes attributes{};
  ROW("cudaPointerGetAttributes/null", cudaPointerGetAttributes(nullptr, memory));
  ROW("cudaPointerGetAttributes/device", cudaPointerGetAttributes(&attributes, memory + 5),
      std::to_string(attributes.type) + " " + std::to_string(attributes.device) +
          (attributes.devicePointer == memory + 5 ? " itself" : " other"));
  ROW("cudaPointerGetAttributes/plain", cudaPointerGetAttributes(&attributes, &attributes),
      std::to_string(attributes.type));
}

}  // namespace

void memory_rows() {
  char* memory = nullptr;
  ROW("cudaMalloc/normal", cudaMalloc(&memory, kBytes));
  allocations(memory);
  copies(memory);
  fills(memory);
  pinned();
  pointers(memory);
  ROW("cudaFree/normal", cudaFree(memory));
  ROW("cudaFree/twice", cudaFree(memory));
}

}  // namespace conformance
