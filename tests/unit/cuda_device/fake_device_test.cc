// CudaDevice on a driver made of fakes: opening, threads, faults, modules.
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <thread>

#include "fake_fixture.h"

namespace slate::cuda {
namespace {

using DeviceRulesTest = FakeGpuTest;

std::span<const std::byte> ptx() {
  static constexpr char kText[] = ".version 8.0";
  return std::as_bytes(std::span(kText));
}

TEST(DeviceOpeningTest, AnOrdinalBeyondTheLastGpuIsInvalid) {
  FakeDriver fake;
  for (const int ordinal : {-1, 1}) {
    const auto opened = CudaDevice::open(fake.driver(), ordinal);
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code, ErrorCode::kInvalidValue);
  }
}

TEST(DeviceOpeningTest, AContextIsReleasedWhenOpeningFailsLater) {
  FakeDriver fake;
  fake.fail("cuStreamCreateWithPriority", CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_FALSE(CudaDevice::open(fake.driver(), 0));
  EXPECT_EQ(fake.count("cuDevicePrimaryCtxRetain"), 1);
  EXPECT_EQ(fake.count("cuDevicePrimaryCtxRelease"), 1);
}

TEST_F(DeviceRulesTest, UnknownAttributesAreZero) {
  EXPECT_STREQ(device_->info().name, "Fake");
  EXPECT_EQ(device_->info().attributes[CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK], 1024);
  EXPECT_EQ(device_->info().attributes[CU_DEVICE_ATTRIBUTE_WARP_SIZE], 0);
  EXPECT_EQ(device_->info().is_simulated, 0);
}

TEST_F(DeviceRulesTest, WhatCanBeSetOfAFunctionGoesToTheDriver) {
  const device::Function function{0x1000};
  EXPECT_TRUE(device_->set_attribute(function, FunctionAttribute::kNonPortableClusters, 1));
  EXPECT_TRUE(device_->set_max_dynamic_shared(function, 100'000));
  EXPECT_EQ(fake_.count("cuFuncSetAttribute"), 2);
  EXPECT_EQ(device_->set_attribute(function, FunctionAttribute::kClusterWidth, 2).error().code,
            ErrorCode::kInvalidValue);
  EXPECT_EQ(device_->set_max_dynamic_shared(function, 1u << 31).error().code,
            ErrorCode::kInvalidValue);
  EXPECT_EQ(fake_.count("cuFuncSetAttribute"), 2);
}

TEST_F(DeviceRulesTest, TensorMapsAreTheDriversOfTheirKind) {
  TensorMapSpec spec;
  spec.rank = 2;
  EXPECT_TRUE(device_->encode_tensor_map(spec));
  EXPECT_EQ(fake_.count("cuTensorMapEncodeTiled"), 1);
  spec.kind = TensorMapKind::kIm2col;
  EXPECT_TRUE(device_->encode_tensor_map(spec));
  EXPECT_EQ(fake_.count("cuTensorMapEncodeIm2col"), 1);
  spec.kind = TensorMapKind::kIm2colWide;
  EXPECT_TRUE(device_->encode_tensor_map(spec));
  EXPECT_EQ(fake_.count("cuTensorMapEncodeIm2colWide"), 1);
  spec.kind = TensorMapKind{3};
  EXPECT_EQ(device_->encode_tensor_map(spec).error().code, ErrorCode::kInvalidValue);
  spec.kind = TensorMapKind::kTiled;
  for (const std::uint32_t rank : {0, 6}) {
    spec.rank = rank;
    EXPECT_EQ(device_->encode_tensor_map(spec).error().code, ErrorCode::kInvalidValue)
        << "beyond what the driver would read";
  }
  fake_.fail("cuTensorMapEncodeTiled", CUDA_ERROR_INVALID_VALUE);
  spec.rank = 2;
  EXPECT_EQ(device_->encode_tensor_map(spec).error().code, ErrorCode::kInvalidValue);
}

TEST_F(DeviceRulesTest, AThreadMakesTheContextCurrentOnce) {
  ASSERT_TRUE(device_->free_memory());
  ASSERT_TRUE(device_->free_memory());
  EXPECT_EQ(fake_.count("cuCtxSetCurrent"), 0);  // SetUp did it, on this thread
  std::thread([this] {
    EXPECT_TRUE(device_->free_memory());
    EXPECT_TRUE(device_->free_memory());
  }).join();
  EXPECT_EQ(fake_.count("cuCtxSetCurrent"), 1);
}

TEST_F(DeviceRulesTest, TwoDevicesOnOneThreadTakeTurns) {
  auto other = CudaDevice::open(fake_.driver(), 0);
  ASSERT_TRUE(other);
  fake_.forget_calls();
  ASSERT_TRUE(device_->free_memory());
  ASSERT_TRUE((*other)->free_memory());
  ASSERT_TRUE(device_->free_memory());
  EXPECT_EQ(fake_.count("cuCtxSetCurrent"), 3);
}

TEST_F(DeviceRulesTest, UnfinishedWorkIsNoError) {
  const auto event = device_->create_event(false);
  ASSERT_TRUE(event);
  fake_.fail("cuEventQuery", CUDA_ERROR_NOT_READY);
  const auto finished = device_->query(*event);
  ASSERT_TRUE(finished);
  EXPECT_FALSE(*finished);
  fake_.recover();
  EXPECT_TRUE(device_->query(*event).value());
  EXPECT_FALSE(device_->lost());
}

TEST_F(DeviceRulesTest, WatchedEventsAreReachedWithoutACall) {
  const auto event = device_->create_watched_event();
  ASSERT_TRUE(event);
  EXPECT_TRUE(device_->query(*event).value());
  for (const std::uint64_t round : {1, 2}) {
    ASSERT_TRUE(device_->record(*event, stream_));
    EXPECT_FALSE(device_->query(*event).value());
    const auto [word, value] = fake_.unwritten.back();
    EXPECT_EQ(value, round);
    fake_.forget_calls();
    *word = value;
    EXPECT_TRUE(device_->query(*event).value());
    EXPECT_TRUE(fake_.calls().empty());
  }
  device_->destroy_event(*event);
  EXPECT_EQ(device_->create_watched_event().value(), *event);
}

TEST_F(DeviceRulesTest, AFaultIsSeenThoughTheWordIsNeverWritten) {
  const auto event = device_->create_watched_event();
  ASSERT_TRUE(event);
  ASSERT_TRUE(device_->record(*event, stream_));
  fake_.fail("cuStreamQuery", CUDA_ERROR_ILLEGAL_ADDRESS);
  auto reached = device_->query(*event);
  while (reached && !*reached) reached = device_->query(*event);
  ASSERT_FALSE(reached);
  EXPECT_EQ(reached.error().code, ErrorCode::kIllegalAddress);
  EXPECT_TRUE(device_->lost());
  EXPECT_FALSE(device_->query(*event));
}

TEST_F(DeviceRulesTest, ADriverOrGpuThatCannotWriteWordsHasOrdinaryEvents) {
  for (const bool has_function : {true, false}) {
    device_.reset();
    fake_.writes_words = !has_function;
    if (!has_function) fake_.remove_write_value();
    fake_.forget_calls();
    auto opened = CudaDevice::open(fake_.driver(), 0);
    ASSERT_TRUE(opened);
    const auto event = (*opened)->create_watched_event();
    ASSERT_TRUE(event);
    const auto stream = (*opened)->create_stream(0);
    ASSERT_TRUE(stream);
    ASSERT_TRUE((*opened)->record(*event, *stream));
    EXPECT_EQ(fake_.count("cuEventRecord"), 1);
    EXPECT_EQ(fake_.count("cuStreamWriteValue64"), 0);
    EXPECT_TRUE((*opened)->query(*event).value());
  }
}

TEST_F(DeviceRulesTest, AFaultLosesTheDeviceForEver) {
  const auto event = device_->create_event(false);
  ASSERT_TRUE(event);
  fake_.fail("cuEventQuery", CUDA_ERROR_ILLEGAL_ADDRESS);
  const auto finished = device_->query(*event);
  ASSERT_FALSE(finished);
  EXPECT_EQ(finished.error().code, ErrorCode::kIllegalAddress);
  EXPECT_TRUE(device_->lost());
  fake_.recover();
  EXPECT_TRUE(device_->query(*event).value());
  EXPECT_TRUE(device_->lost());
}

TEST_F(DeviceRulesTest, AFaultIsNoticedByWhicheverCallSeesItFirst) {
  fake_.fail("cuStreamSynchronize", CUDA_ERROR_LAUNCH_FAILED);
  const auto mapped =
      device_->map({.base = std::uint64_t{1} << 40, .bytes = device_->granularity()});
  ASSERT_FALSE(mapped);
  EXPECT_EQ(mapped.error().code, ErrorCode::kLaunchFailed);
  EXPECT_TRUE(device_->lost());
}

TEST_F(DeviceRulesTest, ARefusalDoesNotLoseTheDevice) {
  fake_.fail("cuMemCreate", CUDA_ERROR_OUT_OF_MEMORY);
  const auto mapped =
      device_->map({.base = std::uint64_t{1} << 40, .bytes = device_->granularity()});
  ASSERT_FALSE(mapped);
  EXPECT_EQ(mapped.error().code, ErrorCode::kOutOfMemory);
  EXPECT_FALSE(device_->lost());
}

TEST_F(DeviceRulesTest, AnUnknownErrorLosesTheDeviceWhenNothingElseWorksEither) {
  const device::AddressRange range{.base = std::uint64_t{1} << 40, .bytes = device_->granularity()};
  fake_.fail("cuMemCreate", CUDA_ERROR_UNKNOWN);
  ASSERT_FALSE(device_->map(range));
  EXPECT_FALSE(device_->lost());
  fake_.fail("cuMemGetInfo", CUDA_ERROR_UNKNOWN);
  ASSERT_FALSE(device_->map(range));
  EXPECT_TRUE(device_->lost());
}

TEST_F(DeviceRulesTest, SharedHostMemoryIsRefusedWhereTheGpuHasAnotherAddressForIt) {
  const int fd = memfd_create("shared", 0);
  ASSERT_GE(fd, 0);
  ASSERT_EQ(ftruncate(fd, 4096), 0);
  const auto address = device_->map_host(fd, 4096, 0);
  ASSERT_TRUE(address) << address.error().message;
  EXPECT_EQ(fake_.count("cuMemHostUnregister"), 0);
  device_->unmap_host({*address, 4096});
  EXPECT_EQ(fake_.count("cuMemHostUnregister"), 1);
  fake_.host_memory_offset = 4096;
  const auto refused = device_->map_host(fd, 4096, 0);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kNotSupported);
  EXPECT_EQ(fake_.count("cuMemHostUnregister"), 2);
  close(fd);
}

TEST_F(DeviceRulesTest, PrioritiesAreClampedToTheGpusRange) {
  for (const int priority : {-100, -3, 7}) ASSERT_TRUE(device_->create_stream(priority));
  const std::vector<std::string> expected = {"cuStreamCreateWithPriority -5",
                                             "cuStreamCreateWithPriority -3",
                                             "cuStreamCreateWithPriority 0"};
  EXPECT_EQ(fake_.calls(), expected);
}

TEST_F(DeviceRulesTest, OnlyTimedEventsPayForTiming) {
  ASSERT_TRUE(device_->create_event(false));
  ASSERT_TRUE(device_->create_event(true));
  const std::vector<std::string> expected = {"cuEventCreate 2", "cuEventCreate 0"};
  EXPECT_EQ(fake_.calls(), expected);
}

TEST_F(DeviceRulesTest, CancelIsNotSupported) {
  const auto stream = device_->create_stream(0);
  ASSERT_TRUE(stream);
  EXPECT_EQ(device_->cancel(*stream).error().code, ErrorCode::kNotSupported);
}

TEST_F(DeviceRulesTest, ARefusedModuleComesWithTheAssemblersWords) {
  fake_.fail("cuModuleLoadDataEx", CUDA_ERROR_INVALID_PTX);
  const auto module = device_->load_module(device::ImageKind::kPtx, ptx());
  ASSERT_FALSE(module);
  EXPECT_EQ(module.error().code, ErrorCode::kInvalidPtx);
  EXPECT_TRUE(module.error().message.ends_with("line 3: no such opcode; line 9: gave up"))
      << module.error().message;
}

TEST_F(DeviceRulesTest, PtxThatTheDriverTakesForNoImageIsInvalidPtx) {
  fake_.fail("cuModuleLoadDataEx", CUDA_ERROR_INVALID_IMAGE);
  const auto module = device_->load_module(device::ImageKind::kPtx, ptx());
  ASSERT_FALSE(module);
  EXPECT_EQ(module.error().code, ErrorCode::kInvalidPtx);
}

TEST_F(DeviceRulesTest, WhatIsNoPtxDoesNotReachTheCompiler) {
  const auto code = device_->compile("hello");
  ASSERT_FALSE(code);
  EXPECT_EQ(code.error().code, ErrorCode::kInvalidPtx);
  EXPECT_NE(code.error().message.find("this is not PTX"), std::string::npos);
}

TEST_F(DeviceRulesTest, CompilingAsksNothingOfTheDriver) {
  device::OpenSettings settings;
  settings.assembler = "/no/such/ptxas";
  auto opened = CudaDevice::open(fake_.driver(), 0, settings);
  ASSERT_TRUE(opened);
  fake_.forget_calls();
  const auto code = (*opened)->compile(".version 8.0");
  ASSERT_FALSE(code);
  EXPECT_EQ(code.error().code, ErrorCode::kNotSupported);
  EXPECT_NE(code.error().message.find("/no/such/ptxas"), std::string::npos);
  EXPECT_EQ((*opened)->compiler_identity().error().message, code.error().message);
  EXPECT_TRUE(fake_.calls().empty());
}

TEST_F(DeviceRulesTest, OccupancyIsTheDriversAndNeverZero) {
  const auto blocks = device_->max_blocks_per_sm(device::Function{1}, 256, 1024);
  ASSERT_TRUE(blocks) << blocks.error().message;
  EXPECT_EQ(*blocks, 5);
  EXPECT_EQ(fake_.calls(),
            std::vector<std::string>{"cuOccupancyMaxActiveBlocksPerMultiprocessor 256 1024"});
  fake_.resident_blocks = 0;
  const auto none = device_->max_blocks_per_sm(device::Function{1}, 256, 1 << 20);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ErrorCode::kOutOfResources);
}

TEST_F(DeviceRulesTest, ThreadsThatNoBlockMayHaveAreAnInvalidConfiguration) {
  for (const std::uint32_t threads : {0U, 1025U, 0xffffffffU}) {
    const auto blocks = device_->max_blocks_per_sm(device::Function{1}, threads, 0);
    ASSERT_FALSE(blocks);
    EXPECT_EQ(blocks.error().code, ErrorCode::kInvalidConfiguration);
  }
}

TEST_F(DeviceRulesTest, AFunctionIsLoadedWhenItIsFoundNotWhenItIsLaunched) {
  const auto module = device_->load_module(device::ImageKind::kPtx, ptx());
  ASSERT_TRUE(module);
  fake_.forget_calls();
  ASSERT_TRUE(device_->find_function(*module, "kernel"));
  const std::vector<std::string> expected = {"cuModuleGetFunction kernel", "cuFuncLoad"};
  EXPECT_EQ(fake_.calls(), expected);
}

TEST_F(DeviceRulesTest, AnUnknownNameIsInTheMessage) {
  fake_.fail("cuModuleGetFunction", CUDA_ERROR_NOT_FOUND);
  fake_.fail("cuModuleGetGlobal", CUDA_ERROR_NOT_FOUND);
  const auto function = device_->find_function(device::Module{1}, "no_such_kernel");
  ASSERT_FALSE(function);
  EXPECT_EQ(function.error().code, ErrorCode::kSymbolNotFound);
  EXPECT_NE(function.error().message.find("'no_such_kernel'"), std::string::npos);
  const auto global = device_->find_global(device::Module{1}, "no_such_variable");
  ASSERT_FALSE(global);
  EXPECT_EQ(global.error().code, ErrorCode::kSymbolNotFound);
}

TEST_F(DeviceRulesTest, ParametersAreReadUpToTheFirstThatIsNotThere) {
  const auto info = device_->function_info(device::Function{1});
  ASSERT_TRUE(info);
  EXPECT_EQ(info->name, "kernel");
  ASSERT_EQ(info->parameters.size(), 3);
  EXPECT_EQ(info->parameters[1].offset, 8);
  EXPECT_EQ(info->parameters[1].size, 8);
  EXPECT_FALSE(device_->lost());
}

}  // namespace
}  // namespace slate::cuda
