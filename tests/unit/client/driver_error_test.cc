#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "client/driver/front.h"

namespace slate::driver {
namespace {

const auto kNoError = static_cast<CUresult>(203);  // older headers had one

TEST(DriverErrorTest, EveryErrorHasTheNameOfItsEnumeratorAndAText) {
  const char *name = nullptr, *text = nullptr;
  EXPECT_EQ(cuGetErrorName(CUDA_ERROR_NOT_SUPPORTED, &name), CUDA_SUCCESS);
  EXPECT_STREQ(name, "CUDA_ERROR_NOT_SUPPORTED");
  EXPECT_EQ(cuGetErrorString(CUDA_SUCCESS, &text), CUDA_SUCCESS);
  EXPECT_STREQ(text, "no error");
  EXPECT_EQ(cuGetErrorString(CUDA_ERROR_INVALID_VALUE, &text), CUDA_SUCCESS);
  EXPECT_STREQ(text, "invalid argument");
  int errors = 0;
  for (int number = 0; number <= 1000; ++number) {
    const auto error = static_cast<CUresult>(number);
    if (cuGetErrorName(error, &name) != CUDA_SUCCESS) continue;
    ++errors;
    EXPECT_EQ(cuGetErrorString(error, &text), CUDA_SUCCESS) << name;
    EXPECT_GT(std::strlen(text), 5u) << name;
    EXPECT_EQ(std::string(name).rfind("CUDA_", 0), 0u) << name;
  }
  EXPECT_EQ(errors, 101);
}

TEST(DriverErrorTest, AnUnknownNumberIsRefusedWithANullText) {
  // 35 is cudart's alone: the driver is too old.
  for (const CUresult error : {kNoError, static_cast<CUresult>(35), static_cast<CUresult>(1000)}) {
    const char *name = "name", *text = "text";
    EXPECT_EQ(cuGetErrorName(error, &name), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuGetErrorString(error, &text), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(name, nullptr);
    EXPECT_EQ(text, nullptr);
  }
  EXPECT_EQ(cuGetErrorName(CUDA_SUCCESS, nullptr), CUDA_ERROR_INVALID_VALUE);
}

}  // namespace
}  // namespace slate::driver
