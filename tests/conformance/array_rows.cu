// CUDA arrays, their copies, texture and surface objects.
#include <cstring>

#include "conformance.h"

namespace conformance {
namespace {

std::string text(const cudaChannelFormatDesc& desc) {
  return std::to_string(desc.x) + " " + std::to_string(desc.y) + " " + std::to_string(desc.z) +
         " " + std::to_string(desc.w) + " " + std::to_string(desc.f);
}
std::string text(const cudaExtent& extent) {
  return std::to_string(extent.width) + " " + std::to_string(extent.height) + " " +
         std::to_string(extent.depth);
}

void making() {
  const auto floats = cudaCreateChannelDesc<float>();
  cudaArray_t array = nullptr;
  ROW("cudaMallocArray/normal", cudaMallocArray(&array, &floats, 64, 16));
  ROW("cudaFreeArray/normal", cudaFreeArray(array));
  ROW("cudaFreeArray/null", cudaFreeArray(nullptr));
  ROW("cudaMallocArray/null", cudaMallocArray(nullptr, &floats, 64, 16));
  ROW("cudaMallocArray/no-desc", cudaMallocArray(&array, nullptr, 64, 16));
  ROW("cudaMallocArray/no-width", cudaMallocArray(&array, &floats, 0, 16));
  ROW("cudaMallocArray/too-wide", cudaMallocArray(&array, &floats, 1 << 30, 16));
  const auto three = cudaCreateChannelDesc(8, 8, 8, 0, cudaChannelFormatKindUnsigned);
  ROW("cudaMallocArray/three-channels", cudaMallocArray(&array, &three, 64, 16));
  const auto uneven = cudaCreateChannelDesc(8, 16, 0, 0, cudaChannelFormatKindUnsigned);
  ROW("cudaMallocArray/uneven", cudaMallocArray(&array, &uneven, 64, 16));
  const auto small = cudaCreateChannelDesc(8, 0, 0, 0, cudaChannelFormatKindFloat);
  ROW("cudaMallocArray/float-of-8", cudaMallocArray(&array, &small, 64, 16));
  const auto none = cudaCreateChannelDesc(8, 0, 0, 0, cudaChannelFormatKindNone);
  ROW("cudaMallocArray/kind-none", cudaMallocArray(&array, &none, 64, 16));
  ROW("cudaMallocArray/layered", cudaMallocArray(&array, &floats, 64, 16, cudaArrayLayered));

  const auto malloc3D = [&](const char* name, cudaExtent extent, unsigned flags) {
    cudaArray_t made = nullptr;
    ROW(name, cudaMalloc3DArray(&made, &floats, extent, flags));
    if (made != nullptr) cudaFreeArray(made);
  };
  malloc3D("cudaMalloc3DArray/1D", make_cudaExtent(64, 0, 0), 0);
  malloc3D("cudaMalloc3DArray/2D", make_cudaExtent(64, 16, 0), 0);
  malloc3D("cudaMalloc3DArray/3D", make_cudaExtent(64, 16, 4), 0);
  malloc3D("cudaMalloc3DArray/no-height", make_cudaExtent(64, 0, 4), 0);
  malloc3D("cudaMalloc3DArray/layered-1D", make_cudaExtent(64, 0, 4), cudaArrayLayered);
  malloc3D("cudaMalloc3DArray/layered-2D", make_cudaExtent(64, 16, 4), cudaArrayLayered);
  malloc3D("cudaMalloc3DArray/no-layers", make_cudaExtent(64, 16, 0), cudaArrayLayered);
  malloc3D("cudaMalloc3DArray/cubemap", make_cudaExtent(16, 16, 6), cudaArrayCubemap);
  malloc3D("cudaMalloc3DArray/cubemap-of-five", make_cudaExtent(16, 16, 5), cudaArrayCubemap);
  malloc3D("cudaMalloc3DArray/cubemap-not-square", make_cudaExtent(16, 8, 6), cudaArrayCubemap);
  malloc3D("cudaMalloc3DArray/layered-cubemap", make_cudaExtent(16, 16, 12),
           cudaArrayCubemap | cudaArrayLayered);
  malloc3D("cudaMalloc3DArray/gather-3D", make_cudaExtent(16, 16, 4), cudaArrayTextureGather);
}

void telling() {
  const auto desc = cudaCreateChannelDesc<short2>();
  cudaArray_t array = nullptr;
  cudaMallocArray(&array, &desc, 64, 16, cudaArraySurfaceLoadStore);
  cudaChannelFormatDesc told{};
  cudaExtent extent{};
  unsigned flags = 77;
  ROW("cudaArrayGetInfo/normal", cudaArrayGetInfo(&told, &extent, &flags, array),
      text(told) + " " + text(extent) + " " + std::to_string(flags));
  ROW("cudaArrayGetInfo/nothing-wanted", cudaArrayGetInfo(nullptr, nullptr, nullptr, array));
  ROW("cudaArrayGetInfo/null", cudaArrayGetInfo(&told, &extent, &flags, nullptr));
  ROW("cudaGetChannelDesc/normal", cudaGetChannelDesc(&told, array), text(told));
  ROW("cudaGetChannelDesc/null", cudaGetChannelDesc(nullptr, array));
  cudaArray_t plane = nullptr;
  ROW("cudaArrayGetPlane/one-plane", cudaArrayGetPlane(&plane, array, 0));
  cudaArrayMemoryRequirements requirements{};
  ROW("cudaArrayGetMemoryRequirements/normal",
      cudaArrayGetMemoryRequirements(&requirements, array, 0));
  ROW("cudaArrayGetMemoryRequirements/beyond",
      cudaArrayGetMemoryRequirements(&requirements, array, 99));
  cudaArraySparseProperties properties{};
  ROW("cudaArrayGetSparseProperties/normal", cudaArrayGetSparseProperties(&properties, array));
  cudaFreeArray(array);
  std::size_t elements = 0;
  ROW("cudaDeviceGetTexture1DLinearMaxWidth/normal@",
      cudaDeviceGetTexture1DLinearMaxWidth(&elements, &desc, 0), std::to_string(elements));
  ROW("cudaDeviceGetTexture1DLinearMaxWidth/null",
      cudaDeviceGetTexture1DLinearMaxWidth(nullptr, &desc, 0));
  ROW("cudaDeviceGetTexture1DLinearMaxWidth/beyond",
      cudaDeviceGetTexture1DLinearMaxWidth(&elements, &desc, 99));
}

void levels() {
  const auto desc = cudaCreateChannelDesc<float>();
  cudaMipmappedArray_t array = nullptr;
  ROW("cudaMallocMipmappedArray/normal",
      cudaMallocMipmappedArray(&array, &desc, make_cudaExtent(16, 8, 0), 3));
  cudaArray_t level = nullptr;
  ROW("cudaGetMipmappedArrayLevel/normal", cudaGetMipmappedArrayLevel(&level, array, 2));
  cudaExtent extent{};
  ROW("cudaArrayGetInfo/level", cudaArrayGetInfo(nullptr, &extent, nullptr, level), text(extent));
  ROW("cudaGetMipmappedArrayLevel/beyond", cudaGetMipmappedArrayLevel(&level, array, 3));
  ROW("cudaGetMipmappedArrayLevel/null", cudaGetMipmappedArrayLevel(nullptr, array, 0));
  cudaArrayMemoryRequirements requirements{};
  ROW("cudaMipmappedArrayGetMemoryRequirements/normal",
      cudaMipmappedArrayGetMemoryRequirements(&requirements, array, 0));
  cudaArraySparseProperties properties{};
  ROW("cudaMipmappedArrayGetSparseProperties/normal",
      cudaMipmappedArrayGetSparseProperties(&properties, array));
  ROW("cudaFreeMipmappedArray/normal", cudaFreeMipmappedArray(array));
  ROW("cudaFreeMipmappedArray/null", cudaFreeMipmappedArray(nullptr));
  ROW("cudaMallocMipmappedArray/too-many",
      cudaMallocMipmappedArray(&array, &desc, make_cudaExtent(16, 8, 0), 99));
  ROW("cudaGetMipmappedArrayLevel/fifth", cudaGetMipmappedArrayLevel(&level, array, 4));
  ROW("cudaGetMipmappedArrayLevel/sixth", cudaGetMipmappedArrayLevel(&level, array, 5));
  cudaFreeMipmappedArray(array);
  ROW("cudaMallocMipmappedArray/null",
      cudaMallocMipmappedArray(nullptr, &desc, make_cudaExtent(16, 8, 0), 3));
}

void copies() {
  const auto desc = cudaCreateChannelDesc<float>();
  const auto bytes = cudaCreateChannelDesc<unsigned char>();
  cudaArray_t array = nullptr, other = nullptr, narrow = nullptr;
  cudaMallocArray(&array, &desc, 64, 16);
  cudaMallocArray(&other, &desc, 64, 16);
  cudaMallocArray(&narrow, &bytes, 64, 16);
  std::vector<float> host(64 * 16, 1.0f);
  float* const from = host.data();
  constexpr auto kTo = cudaMemcpyHostToDevice;
  constexpr auto kFrom = cudaMemcpyDeviceToHost;
  ROW("cudaMemcpy2DToArray/normal", cudaMemcpy2DToArray(array, 0, 0, from, 256, 256, 16, kTo));
  ROW("cudaMemcpy2DToArray/default",
      cudaMemcpy2DToArray(array, 0, 0, from, 256, 256, 16, cudaMemcpyDefault));
  ROW("cudaMemcpy2DToArray/too-wide", cudaMemcpy2DToArray(array, 4, 0, from, 256, 256, 16, kTo));
  ROW("cudaMemcpy2DToArray/too-high", cudaMemcpy2DToArray(array, 0, 1, from, 256, 256, 16, kTo));
  ROW("cudaMemcpy2DToArray/narrow", cudaMemcpy2DToArray(array, 0, 0, from, 128, 256, 16, kTo));
  ROW("cudaMemcpy2DToArray/nothing", cudaMemcpy2DToArray(array, 0, 0, from, 256, 0, 16, kTo));
  ROW("cudaMemcpy2DToArray/half-element", cudaMemcpy2DToArray(array, 2, 0, from, 256, 8, 1, kTo));
  ROW("cudaMemcpy2DToArray/from-direction",
      cudaMemcpy2DToArray(array, 0, 0, from, 256, 256, 16, kFrom));
  ROW("cudaMemcpy2DToArray/bad-kind",
      cudaMemcpy2DToArray(array, 0, 0, from, 256, 256, 16, unknown<cudaMemcpyKind>(77)));
  ROW("cudaMemcpy2DToArray/null", cudaMemcpy2DToArray(array, 0, 0, nullptr, 256, 256, 16, kTo));
  ROW("cudaMemcpy2DFromArray/normal",
      cudaMemcpy2DFromArray(from, 256, array, 0, 0, 256, 16, kFrom));
  ROW("cudaMemcpy2DFromArray/to-direction",
      cudaMemcpy2DFromArray(from, 256, array, 0, 0, 256, 16, kTo));
  ROW("cudaMemcpy2DToArrayAsync/normal",
      cudaMemcpy2DToArrayAsync(array, 0, 0, from, 256, 256, 16, kTo, nullptr));
  ROW("cudaMemcpy2DToArrayAsync/bad-stream",
      cudaMemcpy2DToArrayAsync(array, 0, 0, from, 256, 256, 16, kTo, wild_handle<cudaStream_t>()));
  ROW("cudaMemcpy2DFromArrayAsync/normal",
      cudaMemcpy2DFromArrayAsync(from, 256, array, 0, 0, 256, 16, kFrom, nullptr));
  ROW("cudaMemcpy2DArrayToArray/normal",
      cudaMemcpy2DArrayToArray(other, 0, 0, array, 4, 1, 128, 8));
  ROW("cudaMemcpy2DArrayToArray/other-elements",
      cudaMemcpy2DArrayToArray(narrow, 0, 0, array, 0, 0, 64, 8));
  ROW("cudaMemcpy2DArrayToArray/host-direction",
      cudaMemcpy2DArrayToArray(other, 0, 0, array, 0, 0, 64, 8, kTo));
  ROW("cudaMemcpyToArray/normal", cudaMemcpyToArray(array, 8, 2, from, 1000, kTo));
  ROW("cudaMemcpyToArray/past-end", cudaMemcpyToArray(array, 0, 15, from, 257 * 4, kTo));
  ROW("cudaMemcpyToArrayAsync/normal",
      cudaMemcpyToArrayAsync(array, 0, 0, from, 512, kTo, nullptr));
  ROW("cudaMemcpyFromArray/normal", cudaMemcpyFromArray(from, array, 8, 2, 1000, kFrom));
  ROW("cudaMemcpyFromArrayAsync/normal",
      cudaMemcpyFromArrayAsync(from, array, 0, 0, 512, kFrom, nullptr));
  ROW("cudaMemcpyArrayToArray/normal", cudaMemcpyArrayToArray(other, 4, 0, array, 8, 1, 600));

  cudaMemcpy3DParms parms{};
  parms.srcPtr = make_cudaPitchedPtr(from, 256, 64, 16);
  parms.dstArray = array;
  parms.extent = make_cudaExtent(64, 16, 1);
  parms.kind = kTo;
  ROW("cudaMemcpy3D/to-array", cudaMemcpy3D(&parms));
  parms.extent.depth = 0;
  ROW("cudaMemcpy3D/to-array-nothing", cudaMemcpy3D(&parms));
  parms.extent.depth = 2;
  ROW("cudaMemcpy3D/to-array-too-deep", cudaMemcpy3D(&parms));
  parms.extent.depth = 1;
  parms.dstPos.y = 1ull << 60;
  ROW("cudaMemcpy3D/to-array-far-row", cudaMemcpy3D(&parms));
  parms.dstPos.y = 0;
  parms.dstPos.x = 1ull << 62;
  ROW("cudaMemcpy3D/to-array-far-element", cudaMemcpy3D(&parms));
  parms.dstPos.x = 0;
  parms.srcArray = other;
  ROW("cudaMemcpy3D/two-sources", cudaMemcpy3D(&parms));
  parms.srcPtr = {};
  parms.kind = cudaMemcpyDeviceToDevice;
  ROW("cudaMemcpy3D/array-to-array", cudaMemcpy3D(&parms));
  parms.srcArray = nullptr;
  ROW("cudaMemcpy3D/no-source", cudaMemcpy3D(&parms));
  for (cudaArray_t each : {array, other, narrow}) cudaFreeArray(each);
}

cudaResourceDesc resource_of(cudaArray_t array) {
  cudaResourceDesc resource{};
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = array;
  return resource;
}

void textures() {
  const auto floats = cudaCreateChannelDesc<float>();
  const auto ints = cudaCreateChannelDesc<int>();
  cudaArray_t array = nullptr, integers = nullptr;
  cudaMallocArray(&array, &floats, 64, 16);
  cudaMallocArray(&integers, &ints, 64, 16);
  const cudaResourceDesc resource = resource_of(array);
  cudaTextureDesc desc{};
  desc.maxAnisotropy = 5;
  cudaTextureObject_t texture = 0;
  ROW("cudaCreateTextureObject/normal",
      cudaCreateTextureObject(&texture, &resource, &desc, nullptr));
  cudaResourceDesc told{};
  ROW("cudaGetTextureObjectResourceDesc/normal", cudaGetTextureObjectResourceDesc(&told, texture),
      told.resType == cudaResourceTypeArray && told.res.array.array == array ? "same" : "other");
  cudaTextureDesc told_desc{};
  ROW("cudaGetTextureObjectTextureDesc/normal",
      cudaGetTextureObjectTextureDesc(&told_desc, texture),
      std::to_string(told_desc.maxAnisotropy));
  cudaResourceViewDesc view{};
  ROW("cudaGetTextureObjectResourceViewDesc/none",
      cudaGetTextureObjectResourceViewDesc(&view, texture));
  ROW("cudaDestroyTextureObject/normal", cudaDestroyTextureObject(texture));
  ROW("cudaCreateTextureObject/null", cudaCreateTextureObject(nullptr, &resource, &desc, nullptr));
  ROW("cudaCreateTextureObject/no-resource",
      cudaCreateTextureObject(&texture, nullptr, &desc, nullptr));
  ROW("cudaCreateTextureObject/no-desc",
      cudaCreateTextureObject(&texture, &resource, nullptr, nullptr));
  cudaResourceDesc strange = resource;
  strange.resType = unknown<cudaResourceType>(77);
  ROW("cudaCreateTextureObject/bad-resource",
      cudaCreateTextureObject(&texture, &strange, &desc, nullptr));
  const cudaResourceDesc of_integers = resource_of(integers);
  desc.filterMode = cudaFilterModeLinear;
  ROW("cudaCreateTextureObject/filtered-integers",
      cudaCreateTextureObject(&texture, &of_integers, &desc, nullptr));
  desc.readMode = cudaReadModeNormalizedFloat;
  ROW("cudaCreateTextureObject/normalized-32-bits",
      cudaCreateTextureObject(&texture, &of_integers, &desc, nullptr));
  view.format = cudaResViewFormatFloat1;
  view.width = 64;
  view.height = 16;
  ROW("cudaCreateTextureObject/view", cudaCreateTextureObject(&texture, &resource, &desc, &view));
  cudaResourceViewDesc told_view{};
  ROW("cudaGetTextureObjectResourceViewDesc/normal",
      cudaGetTextureObjectResourceViewDesc(&told_view, texture), std::to_string(told_view.width));
  cudaDestroyTextureObject(texture);
  cudaFreeArray(array);
  cudaFreeArray(integers);
}

void textures_of_memory() {
  char* memory = nullptr;
  cudaMalloc(&memory, 1 << 16);
  const cudaTextureDesc desc{};
  cudaResourceDesc resource{};
  resource.resType = cudaResourceTypeLinear;
  resource.res.linear = {memory, cudaCreateChannelDesc<float>(), 1 << 16};
  cudaTextureObject_t texture = 0;
  ROW("cudaCreateTextureObject/linear",
      cudaCreateTextureObject(&texture, &resource, &desc, nullptr));
  cudaDestroyTextureObject(texture);
  resource.res.linear.devPtr = memory + 4;
  resource.res.linear.sizeInBytes = 64;
  ROW("cudaCreateTextureObject/linear-unaligned",
      cudaCreateTextureObject(&texture, &resource, &desc, nullptr));
  resource.res.linear.devPtr = nullptr;
  ROW("cudaCreateTextureObject/linear-null",
      cudaCreateTextureObject(&texture, &resource, &desc, nullptr));
  resource = {};
  resource.resType = cudaResourceTypePitch2D;
  resource.res.pitch2D = {memory, cudaCreateChannelDesc<float>(), 64, 16, 512};
  ROW("cudaCreateTextureObject/pitch2D",
      cudaCreateTextureObject(&texture, &resource, &desc, nullptr));
  cudaDestroyTextureObject(texture);
  resource.res.pitch2D.pitchInBytes = 128;
  ROW("cudaCreateTextureObject/pitch2D-narrow",
      cudaCreateTextureObject(&texture, &resource, &desc, nullptr));
  cudaFree(memory);
}

void surfaces() {
  const auto desc = cudaCreateChannelDesc<float>();
  cudaArray_t array = nullptr, plain = nullptr;
  cudaMallocArray(&array, &desc, 64, 16, cudaArraySurfaceLoadStore);
  cudaMallocArray(&plain, &desc, 64, 16);
  cudaResourceDesc resource = resource_of(array);
  cudaSurfaceObject_t surface = 0;
  ROW("cudaCreateSurfaceObject/normal", cudaCreateSurfaceObject(&surface, &resource));
  cudaResourceDesc told{};
  ROW("cudaGetSurfaceObjectResourceDesc/normal", cudaGetSurfaceObjectResourceDesc(&told, surface),
      told.res.array.array == array ? "same" : "other");
  ROW("cudaDestroySurfaceObject/normal", cudaDestroySurfaceObject(surface));
  ROW("cudaCreateSurfaceObject/null", cudaCreateSurfaceObject(nullptr, &resource));
  ROW("cudaCreateSurfaceObject/no-resource", cudaCreateSurfaceObject(&surface, nullptr));
  resource.resType = cudaResourceTypeLinear;
  ROW("cudaCreateSurfaceObject/linear", cudaCreateSurfaceObject(&surface, &resource));
  resource = resource_of(plain);
  ROW("cudaCreateSurfaceObject/without-flag", cudaCreateSurfaceObject(&surface, &resource));
  cudaFreeArray(array);
  cudaFreeArray(plain);
}

void in_graphs() {
  const auto desc = cudaCreateChannelDesc<float>();
  cudaArray_t array = nullptr;
  cudaMallocArray(&array, &desc, 64, 16);
  std::vector<float> host(64 * 16);
  cudaMemcpy3DParms parms{};
  parms.srcPtr = make_cudaPitchedPtr(host.data(), 256, 64, 16);
  parms.dstArray = array;
  parms.extent = make_cudaExtent(64, 16, 1);
  parms.kind = cudaMemcpyHostToDevice;
  cudaGraph_t graph = nullptr;
  cudaGraphCreate(&graph, 0);
  cudaGraphNode_t node = nullptr;
  ROW("cudaGraphAddMemcpyNode/array", cudaGraphAddMemcpyNode(&node, graph, nullptr, 0, &parms));
  cudaMemcpy3DParms told{};
  ROW("cudaGraphMemcpyNodeGetParams/array", cudaGraphMemcpyNodeGetParams(node, &told),
      told.dstArray == array ? "same" : "other");
  parms.extent.width = 65;
  ROW("cudaGraphAddMemcpyNode/array-too-wide",
      cudaGraphAddMemcpyNode(&node, graph, nullptr, 0, &parms));
  cudaGraphDestroy(graph);
  cudaFreeArray(array);
}

}  // namespace

void array_rows() {
  making();
  telling();
  levels();
  copies();
  textures();
  textures_of_memory();
  surfaces();
  in_graphs();
}

}  // namespace conformance
