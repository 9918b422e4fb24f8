// cuGetProcAddress against the answers that were recorded from driver 580 (CUDA 13.0).
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "client/driver/front.h"
#include "client/driver/functions.h"

namespace slate::driver {
namespace {

constexpr cuuint64_t kPerThread = CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;

void expect_untouched(const char* name, int version, cuuint64_t flags) {
  int place = 0;
  void* function = &place;
  CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
  EXPECT_EQ(cuGetProcAddress_v2(name, &function, version, flags, &status),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(function, &place);
  EXPECT_EQ(status, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
}

void expect(CUdriverProcAddressQueryResult expected_status, const void* expected, const char* name,
            int version, cuuint64_t flags) {
  SCOPED_TRACE(std::string(name) + " of " + std::to_string(version));
  int place = 0;
  void* function = &place;
  CUdriverProcAddressQueryResult status = expected_status == CU_GET_PROC_ADDRESS_SUCCESS
                                              ? CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND
                                              : CU_GET_PROC_ADDRESS_SUCCESS;
  EXPECT_EQ(cuGetProcAddress_v2(name, &function, version, flags, &status), CUDA_SUCCESS);
  EXPECT_EQ(function, expected);
  EXPECT_EQ(status, expected_status);
}

void expect_found(auto* expected, const char* name, int version, cuuint64_t flags = 0) {
  expect(CU_GET_PROC_ADDRESS_SUCCESS, reinterpret_cast<void*>(expected), name, version, flags);
}

TEST(DriverProcAddressTest, TheVersionPicksTheFunction) {
  expect_found(&cuMemAlloc, "cuMemAlloc", 2000);
  expect_found(&cuMemAlloc, "cuMemAlloc", 3010);
  expect_found(&cuMemAlloc_v2, "cuMemAlloc", 3020);
  expect_found(&cuMemAlloc_v2, "cuMemAlloc", 13000);
  expect_found(&cuCtxGetDevice, "cuCtxGetDevice", 12090);
  expect_found(&cuCtxGetDevice_v2, "cuCtxGetDevice", 13000);
  expect_found(&cuCtxSynchronize_v2, "cuCtxSynchronize", 13000);
  expect_found(&cuEventElapsedTime_v2, "cuEventElapsedTime", 12080);
  expect_found(&cuStreamGetCaptureInfo_v3, "cuStreamGetCaptureInfo", 12030);
  expect_found(&cuMemcpyBatchAsync_v2, "cuMemcpyBatchAsync", 13000);
  expect_found(&cuStreamBeginCapture, "cuStreamBeginCapture", 10000);
  expect_found(&cuStreamBeginCapture_v2, "cuStreamBeginCapture", 10010);
  expect_found(&cuGetProcAddress, "cuGetProcAddress", 11030);
  expect_found(&cuGetProcAddress_v2, "cuGetProcAddress", 12000);
}

TEST(DriverProcAddressTest, ThePerThreadFlagPicksTheVariantOrElseTheFunctionItself) {
  expect_found(&cuLaunchKernel_ptsz, "cuLaunchKernel", 7000, kPerThread);
  expect_found(&cuMemcpyHtoD_v2_ptds, "cuMemcpyHtoD", 13000, kPerThread);
  expect_found(&cuMemAlloc_v2, "cuMemAlloc", 3020, kPerThread);
  expect_found(&cuLaunchKernel, "cuLaunchKernel", 7000, CU_GET_PROC_ADDRESS_LEGACY_STREAM);
  expect_found(&cuLaunchKernel_ptsz, "cuLaunchKernel", 7000,
               kPerThread | CU_GET_PROC_ADDRESS_LEGACY_STREAM);
  expect(CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT, nullptr, "cuLaunchKernel", 6050, kPerThread);
}

TEST(DriverProcAddressTest, OnlyNamesWithoutASuffixAreKnown) {
  for (const char* name : {"cuNoSuchFunction", "cuMemAlloc_v2", "cuLaunchKernel_ptsz", "", "cu",
                           "cuMemAllocX", "zzz", "cuMemGetAttribute", "cudbgGetAPI"})
    expect(CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND, nullptr, name, 13000, 0);
}

TEST(DriverProcAddressTest, AVersionOlderThanTheFunctionIsNotSufficient) {
  expect(CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT, nullptr, "cuMemAlloc", 1000, 0);
  expect(CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT, nullptr, "cuGetProcAddress", 11020, 0);
  expect(CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT, nullptr, "cuLaunchKernel", 0, 0);
}

TEST(DriverProcAddressTest, ANewerVersionOrAnUnknownFlagLeavesEverythingUntouched) {
  expect_untouched("cuMemAlloc", 13010, 0);
  expect_untouched("cuNoSuchFunction", 13010, 0);
  expect_untouched("cuMemAlloc", 13000, 4);
}

TEST(DriverProcAddressTest, TheStatusMayBeNull) {
  void* function = nullptr;
  EXPECT_EQ(cuGetProcAddress_v2("cuInit", &function, 2000, 0, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(function, reinterpret_cast<void*>(&cuInit));
  EXPECT_EQ(cuGetProcAddress_v2("cuInitX", &function, 2000, 0, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(function, nullptr);
}

TEST(DriverProcAddressTest, TheFirstVersionRefusesWhatIsNotThere) {
  int place = 0;
  void* function = &place;
  EXPECT_EQ(cuGetProcAddress("cuInitX", &function, 13000, 0), CUDA_ERROR_NOT_FOUND);
  EXPECT_EQ(cuGetProcAddress("cuMemAlloc", &function, 1000, 0), CUDA_ERROR_NOT_FOUND);
  EXPECT_EQ(cuGetProcAddress("cuMemAlloc", &function, 13010, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(function, &place);
  EXPECT_EQ(cuGetProcAddress("cuMemAlloc", &function, 3020, 0), CUDA_SUCCESS);
  EXPECT_EQ(function, reinterpret_cast<void*>(&cuMemAlloc_v2));
}

TEST(DriverProcAddressTest, TheTableIsSortedAndFindsEachOfItsNames) {
  const auto names = named_functions();
  EXPECT_EQ(names.size(), 477u);
  EXPECT_TRUE(std::ranges::is_sorted(names, {}, &NamedFunction::name));
  for (const NamedFunction& each : names) {
    ASSERT_FALSE(each.versions.empty()) << each.name;
    EXPECT_TRUE(std::ranges::is_sorted(each.versions, {}, &FunctionVersion::since)) << each.name;
    for (const FunctionVersion& version : each.versions) {
      EXPECT_NE(version.legacy, nullptr) << each.name;
      expect_found(static_cast<char*>(version.legacy), each.name.data(), version.since);
    }
  }
}

}  // namespace
}  // namespace slate::driver
