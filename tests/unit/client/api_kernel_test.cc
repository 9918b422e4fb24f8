// slate.h's functions on kernels, in C, against a fake daemon: what is checked before a launch is
// sent, and what is sent.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstring>

#define SLATE_C_ONLY
#include "client/slate.h"
#include "tests/unit/client/api_daemon.h"
#include "tests/unit/client/fake_daemon.h"

namespace {

using slate::ErrorCode;
using slate::ipc::CommandType;
using slate::test::kTestPtx;

class ApiKernelTest : public ::testing::Test {
 protected:
  ApiKernelTest() {
    daemon.describe_parameters({8, 4, 2});
    EXPECT_EQ(slate_module_load_ptx(&module, kTestPtx, std::strlen(kTestPtx)), SLATE_SUCCESS);
    EXPECT_EQ(slate_module_kernel(&kernel, module, "scale<float>"), SLATE_SUCCESS);
  }
  slate_status launch(slate_dim3 grid, slate_dim3 block, size_t shared = 0,
                      cudaStream_t stream = nullptr) {
    void* pointer = nullptr;
    float factor = 1;
    short count = 0;
    void* arguments[] = {&pointer, &factor, &count};
    return slate_kernel_launch(kernel, grid, block, shared, stream, arguments, 3);
  }
  std::vector<slate::ipc::Launch> sent() {
    daemon.settle();
    return daemon.fake().launches();
  }
  static std::string message() { return slate_last_message(); }

  slate::test::ApiDaemon daemon;
  slate_module* module = nullptr;
  slate_kernel* kernel = nullptr;
};

TEST_F(ApiKernelTest, AKernelsNeedsAreTheDaemons) {
  slate_kernel_info info;
  ASSERT_EQ(slate_kernel_get_info(&info, kernel), SLATE_SUCCESS);
  EXPECT_EQ(info.registers, 40u);
  EXPECT_EQ(info.static_shared_bytes, 256u);
  EXPECT_EQ(info.max_dynamic_shared_bytes, 48896u);
  EXPECT_EQ(info.constant_bytes, 32u);
  EXPECT_EQ(info.local_bytes, 8u);
  EXPECT_EQ(info.max_threads_per_block, 1024u);
  EXPECT_EQ(info.parameter_count, 3u);
  EXPECT_EQ(info.parameter_bytes, 14u);
  EXPECT_EQ(info.reserved[3], 0u);
  size_t offset = 0, bytes = 0;
  EXPECT_EQ(slate_kernel_get_parameter(&offset, &bytes, kernel, 1), SLATE_SUCCESS);
  EXPECT_EQ(offset, 8u);
  EXPECT_EQ(bytes, 4u);
  EXPECT_EQ(slate_kernel_get_parameter(nullptr, nullptr, kernel, 2), SLATE_SUCCESS);
  const char* name = nullptr;
  EXPECT_EQ(slate_kernel_get_name(&name, kernel), SLATE_SUCCESS);
  EXPECT_STREQ(name, "_Z5scaleIfEvPT_");
}

TEST_F(ApiKernelTest, QuestionsWithoutAPlaceOrAKernelAreRefused) {
  slate_kernel_info info;
  const char* name = nullptr;
  EXPECT_EQ(slate_kernel_get_info(nullptr, kernel), SLATE_ERROR_INVALID_VALUE);
  EXPECT_EQ(slate_kernel_get_info(&info, nullptr), SLATE_ERROR_INVALID_HANDLE);
  EXPECT_EQ(slate_kernel_get_name(nullptr, kernel), SLATE_ERROR_INVALID_VALUE);
  EXPECT_EQ(slate_kernel_get_name(&name, nullptr), SLATE_ERROR_INVALID_HANDLE);
  EXPECT_EQ(message(), "the kernel is null");
  EXPECT_EQ(slate_kernel_get_parameter(nullptr, nullptr, kernel, 3), SLATE_ERROR_INVALID_VALUE);
  EXPECT_EQ(message(), "kernel scale<float> has 3 parameters");
  EXPECT_EQ(slate_kernel_get_name(&name, reinterpret_cast<slate_kernel*>(module)),
            SLATE_ERROR_INVALID_HANDLE)
      << "a module's handle is no kernel's";
  EXPECT_EQ(slate_kernel_set_max_dynamic_shared(nullptr, 0), SLATE_ERROR_INVALID_HANDLE);
  EXPECT_EQ(slate_kernel_launch(nullptr, {1, 1, 1}, {1, 1, 1}, 0, nullptr, nullptr, 0),
            SLATE_ERROR_INVALID_HANDLE);
}

TEST_F(ApiKernelTest, ALaunchOnACapturingStreamIsRefusedAndEndsTheCapture) {
  cudaStream_t stream = nullptr;
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
  ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
  EXPECT_EQ(launch({1, 1, 1}, {32, 1, 1}, 0, stream), SLATE_ERROR_NOT_SUPPORTED);
  EXPECT_NE(message().find("graph"), std::string::npos);
  EXPECT_EQ(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureInvalidated);
  cudaGetLastError();
  EXPECT_TRUE(sent().empty());
  EXPECT_EQ(launch({1, 1, 1}, {32, 1, 1}, 0, stream), SLATE_SUCCESS) << message();
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

TEST_F(ApiKernelTest, ALaunchIsSentAsGiven) {
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
  ASSERT_EQ(launch({4, 3, 2}, {8, 4, 2}, 100, stream), SLATE_SUCCESS) << message();
  ASSERT_EQ(launch({1, 1, 1}, {32, 1, 1}, 0, cudaStreamPerThread), SLATE_SUCCESS) << message();
  ASSERT_EQ(launch({1, 1, 1}, {32, 1, 1}, 0, cudaStreamLegacy), SLATE_SUCCESS) << message();
  const auto launches = sent();
  ASSERT_EQ(launches.size(), 3u);
  EXPECT_EQ(launches[0].grid[0], 4u);
  EXPECT_EQ(launches[0].grid[2], 2u);
  EXPECT_EQ(launches[0].block[1], 4u);
  EXPECT_EQ(launches[0].dynamic_shared_bytes, 100u);
  EXPECT_EQ(launches[0].parameter_bytes, 14u);
  EXPECT_EQ(launches[0].stream, reinterpret_cast<std::uintptr_t>(stream));
  EXPECT_NE(launches[1].stream, 0u);
  EXPECT_EQ(launches[2].stream, 0u);
}

TEST_F(ApiKernelTest, TheNumberOfArgumentsHasToBeRight) {
  void* pointer = nullptr;
  void* arguments[] = {&pointer, &pointer, nullptr};
  const slate_dim3 one{1, 1, 1};
  EXPECT_EQ(slate_kernel_launch(kernel, one, one, 0, nullptr, arguments, 2),
            SLATE_ERROR_INVALID_VALUE);
  EXPECT_EQ(message(), "kernel scale<float> takes 3 arguments, not 2");
  EXPECT_EQ(slate_kernel_launch(kernel, one, one, 0, nullptr, arguments, 4),
            SLATE_ERROR_INVALID_VALUE);
  EXPECT_EQ(slate_kernel_launch(kernel, one, one, 0, nullptr, nullptr, 3),
            SLATE_ERROR_INVALID_VALUE);
  EXPECT_EQ(message(), "the list of arguments is null");
  EXPECT_EQ(slate_kernel_launch(kernel, one, one, 0, nullptr, arguments, 3),
            SLATE_ERROR_INVALID_VALUE);
  EXPECT_EQ(message(), "the pointer to argument 3 of kernel scale<float> is null");
  EXPECT_TRUE(sent().empty());
}

TEST_F(ApiKernelTest, AKernelWithoutParametersNeedsNoArguments) {
  daemon.describe_parameters({});
  slate_kernel* plain = nullptr;
  ASSERT_EQ(slate_module_kernel(&plain, module, "plain"), SLATE_SUCCESS);
  EXPECT_EQ(slate_kernel_launch(plain, {1, 1, 1}, {1, 1, 1}, 0, nullptr, nullptr, 0),
            SLATE_SUCCESS);
  EXPECT_EQ(sent().size(), 1u);
}

TEST_F(ApiKernelTest, ShapesBeyondTheDeviceAreRefused) {
  EXPECT_EQ(launch({0, 1, 1}, {32, 1, 1}), SLATE_ERROR_INVALID_VALUE);
  EXPECT_EQ(launch({1, 1, 1}, {32, 0, 1}), SLATE_ERROR_INVALID_VALUE);
  EXPECT_EQ(launch({1, 70000, 1}, {32, 1, 1}), SLATE_ERROR_INVALID_VALUE);
  EXPECT_EQ(launch({1, 1, 1}, {1024, 2, 1}), SLATE_ERROR_INVALID_VALUE);
  EXPECT_EQ(message(),
            "kernel scale<float>: the launch's block is empty or too large: 2048 threads");
  EXPECT_TRUE(sent().empty());
}

TEST_F(ApiKernelTest, AStreamThatIsNoneIsRefused) {
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
  ASSERT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  EXPECT_EQ(launch({1, 1, 1}, {1, 1, 1}, 0, stream), SLATE_ERROR_INVALID_HANDLE);
  EXPECT_EQ(message(), "the launch's stream does not exist");
}

TEST_F(ApiKernelTest, DynamicSharedMemoryHasALimitThatCanBeRaised) {
  EXPECT_EQ(launch({1, 1, 1}, {1, 1, 1}, 48896), SLATE_SUCCESS);
  EXPECT_EQ(launch({1, 1, 1}, {1, 1, 1}, 48897), SLATE_ERROR_INVALID_VALUE);
  EXPECT_NE(message().find("48897 bytes"), std::string::npos) << message();
  EXPECT_EQ(launch({1, 1, 1}, {1, 1, 1}, size_t{1} << 32), SLATE_ERROR_INVALID_VALUE);
  ASSERT_EQ(slate_kernel_set_max_dynamic_shared(kernel, 232448 - 256), SLATE_SUCCESS);
  slate_kernel_info info;
  ASSERT_EQ(slate_kernel_get_info(&info, kernel), SLATE_SUCCESS);
  EXPECT_EQ(info.max_dynamic_shared_bytes, 232192u);
  EXPECT_EQ(launch({1, 1, 1}, {1, 1, 1}, 232192), SLATE_SUCCESS);
  EXPECT_EQ(slate_kernel_set_max_dynamic_shared(kernel, 232448 - 255), SLATE_ERROR_INVALID_VALUE);
  EXPECT_EQ(
      message(),
      "kernel scale<float> can get at most 232192 bytes of dynamic shared memory, not 232193");
  daemon.fake().refuse(CommandType::kFunctionSet, {ErrorCode::kInvalidValue, "the driver"});
  EXPECT_EQ(slate_kernel_set_max_dynamic_shared(kernel, 100), SLATE_ERROR_INVALID_VALUE);
  EXPECT_EQ(message(), "kernel scale<float>: the driver");
}

TEST_F(ApiKernelTest, AnErrorOfQueuedWorkIsTheAnswerToALaterLaunchOnce) {
  daemon.fake().report_next(ErrorCode::kOutOfResources);
  slate_status status = SLATE_SUCCESS;
  for (int i = 0; i < 1'000'000 && status == SLATE_SUCCESS; ++i) {
    status = launch({1, 1, 1}, {1, 1, 1});
  }
  EXPECT_EQ(status, SLATE_ERROR_OUT_OF_RESOURCES);
  EXPECT_NE(message().find("earlier"), std::string::npos) << message();
  EXPECT_EQ(launch({1, 1, 1}, {1, 1, 1}), SLATE_SUCCESS);
}

TEST_F(ApiKernelTest, KernelsEndWithTheirModuleAndTheirSession) {
  ASSERT_EQ(slate_module_unload(module), SLATE_SUCCESS);
  EXPECT_EQ(launch({1, 1, 1}, {1, 1, 1}), SLATE_ERROR_INVALID_HANDLE);
  ASSERT_EQ(slate_module_load_ptx(&module, kTestPtx, std::strlen(kTestPtx)), SLATE_SUCCESS);
  ASSERT_EQ(slate_module_kernel(&kernel, module, "plain"), SLATE_SUCCESS);
  cudaDeviceReset();
  EXPECT_EQ(launch({1, 1, 1}, {1, 1, 1}), SLATE_ERROR_SESSION_ENDED);
  EXPECT_EQ(slate_kernel_set_max_dynamic_shared(kernel, 0), SLATE_ERROR_SESSION_ENDED);
  slate_kernel_info info;
  EXPECT_EQ(slate_kernel_get_info(&info, kernel), SLATE_SUCCESS) << "that is known without asking";
}

TEST_F(ApiKernelTest, WithoutItsDaemonALaunchFails) {
  daemon.stop();
  slate_status status = SLATE_SUCCESS;
  // The ring takes launches until the end of the pipe is noticed.
  for (int i = 0; i < 100'000 && status == SLATE_SUCCESS; ++i) {
    status = launch({1, 1, 1}, {1, 1, 1});
  }
  EXPECT_EQ(status, SLATE_ERROR_UNAVAILABLE) << message();
}

}  // namespace
