// Linking of code by libcuda's calls, against a fake daemon.
#include <cstring>
#include <string>
#include <string_view>

#include "tests/unit/client/driver_fixture.h"

namespace slate::test {
namespace {

class LinkTest : public DriverFrontTest {
 protected:
  CUresult add(CUjitInputType type, std::string_view text) {
    return cuLinkAddData_v2(state, type, const_cast<char*>(text.data()), text.size(), "input", 0,
                            nullptr, nullptr);
  }
  void create(unsigned count = 0, CUjit_option* options = nullptr, void** values = nullptr) {
    ASSERT_EQ(cuLinkCreate_v2(count, options, values, &state), CUDA_SUCCESS);
  }

  CUlinkState state = nullptr;
  void* code = nullptr;
  std::size_t bytes = 0;
};

constexpr std::string_view kDefinition =
    ".version 8.0\n.target sm_75\n.address_size 64\n"
    ".visible .func (.reg .u32 r) twice(.reg .u32 x) { add.u32 r, x, x; ret; }\n";
constexpr std::string_view kUse =
    ".version 8.0\n.target sm_75\n.address_size 64\n"
    ".extern .func (.reg .u32 r) twice(.reg .u32 x);\n"
    ".visible .entry work() { .reg .u32 a; mov.u32 a, 1; call (a), twice, (a); ret; }\n";

TEST_F(LinkTest, TextsBecomeOneText) {
  create();
  EXPECT_EQ(add(CU_JIT_INPUT_PTX, kUse), CUDA_SUCCESS);
  EXPECT_EQ(add(CU_JIT_INPUT_PTX, kDefinition), CUDA_SUCCESS);
  ASSERT_EQ(cuLinkComplete(state, &code, &bytes), CUDA_SUCCESS);
  const std::string text = static_cast<const char*>(code);
  EXPECT_EQ(bytes, text.size() + 1);
  EXPECT_NE(text.find("twice"), text.npos);
  EXPECT_NE(text.find(".entry work"), text.npos);
  EXPECT_EQ(text.find(".extern"), text.npos);
  EXPECT_EQ(cuLinkDestroy(state), CUDA_SUCCESS);
  EXPECT_EQ(cuLinkDestroy(state), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(cuLinkComplete(state, &code, &bytes), CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(LinkTest, WhatCannotBeLinkedIsSaidInTheLog) {
  char log[256] = "old";
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {log, reinterpret_cast<void*>(sizeof(log))};
  create(2, options, values);
  EXPECT_EQ(cuLinkComplete(state, &code, &bytes), CUDA_ERROR_INVALID_VALUE) << "nothing to link";
  EXPECT_EQ(add(CU_JIT_INPUT_PTX, "garbage"), CUDA_ERROR_INVALID_PTX);
  EXPECT_EQ(add(CU_JIT_INPUT_LIBRARY, kUse), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_NE(std::strstr(log, "not linked"), nullptr);
  EXPECT_EQ(reinterpret_cast<std::size_t>(values[1]), std::strlen(log));
  EXPECT_EQ(cuLinkAddFile_v2(state, CU_JIT_INPUT_PTX, "/nonexistent", 0, nullptr, nullptr),
            CUDA_ERROR_FILE_NOT_FOUND);
  EXPECT_EQ(cuLinkDestroy(state), CUDA_SUCCESS);
}

}  // namespace
}  // namespace slate::test
