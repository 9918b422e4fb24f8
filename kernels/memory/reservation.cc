#include "memory/reservation.h"

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "common/program.h"

namespace slate::kernels {
namespace {

constexpr std::size_t kPieces = 3;  // of a buffer, where it has so many granules

/// The driver's function of that name.
template <typename Function>
Function* found(const char* name) {
  constexpr unsigned kVersion = 12000;
  void* function = nullptr;
  cudaDriverEntryPointQueryResult result{};
  SLATE_REQUIRE(
      cudaGetDriverEntryPointByVersion(name, &function, kVersion, cudaEnableDefault, &result));
  if (function == nullptr) {
    std::fprintf(stderr, "the driver has no %s\n", name);
    std::exit(2);
  }
  return reinterpret_cast<Function*>(function);
}

/// Calls a function of the driver.
#define SLATE_DRIVER(function, ...)                                                \
  do {                                                                             \
    const CUresult result = found<decltype(function)>(#function)(__VA_ARGS__);     \
    if (result != CUDA_SUCCESS) {                                                  \
      std::fprintf(stderr, "%s: error %d\n", #function, static_cast<int>(result)); \
      std::exit(2);                                                                \
    }                                                                              \
  } while (false)

std::size_t rounded(std::size_t bytes, std::size_t granularity) {
  return (bytes + granularity - 1) / granularity * granularity;
}

}  // namespace

void Reservation::make(std::size_t count, std::size_t bytes) {
  int device = 0;
  SLATE_REQUIRE(cudaGetDevice(&device));
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
  std::size_t granularity = 0;
  SLATE_DRIVER(cuMemGetAllocationGranularity, &granularity, &properties,
               CU_MEM_ALLOC_GRANULARITY_MINIMUM);
  stride_ = rounded(bytes, granularity);
  bytes_ = count * stride_;
  SLATE_DRIVER(cuMemAddressReserve, &base_, bytes_, 0, 0, 0);
  const std::size_t piece = rounded(stride_ / kPieces, granularity);
  for (std::size_t at = 0; at < bytes_;) {
    const std::size_t size = std::min(piece, stride_ - at % stride_);
    SLATE_DRIVER(cuMemCreate, &pieces_.emplace_back(), size, &properties, 0);
    SLATE_DRIVER(cuMemMap, base_ + at, size, 0, pieces_.back(), 0);
    at += size;
  }
  const CUmemAccessDesc access{properties.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  SLATE_DRIVER(cuMemSetAccess, base_, bytes_, &access, 1);
}

void Reservation::release() {
  if (base_ == 0) return;
  SLATE_DRIVER(cuMemUnmap, base_, bytes_);
  for (const CUmemGenericAllocationHandle piece : pieces_) SLATE_DRIVER(cuMemRelease, piece);
  SLATE_DRIVER(cuMemAddressFree, base_, bytes_);
  pieces_.clear();
  base_ = 0;
}

}  // namespace slate::kernels
