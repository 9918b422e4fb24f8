// Modules and functions on a GPU: what loads, what does not and why, and what a function says of
// itself.
#include <cuda.h>

#include "gpu_fixture.h"

namespace slate::cuda {
namespace {

using GpuModuleTest = GpuTest;

TEST_F(GpuModuleTest, ParametersLieWhereThePtxPutsThem) {
  const auto info = device_->function_info(kernel("mixed"));
  ASSERT_TRUE(info) << info.error().message;
  EXPECT_EQ(info->name, "mixed");
  const std::vector<std::pair<std::uint32_t, std::uint32_t>> expected = {
      {0, 1}, {8, 8}, {16, 2}, {20, 12}, {32, 4}, {36, 1}};
  std::vector<std::pair<std::uint32_t, std::uint32_t>> found;
  for (const auto& parameter : info->parameters)
    found.emplace_back(parameter.offset, parameter.size);
  EXPECT_EQ(found, expected);
  EXPECT_FALSE(device_->lost());
}

TEST_F(GpuModuleTest, AFunctionKnowsItsResources) {
  const auto info = device_->function_info(kernel("add"));
  ASSERT_TRUE(info) << info.error().message;
  const DeviceInfo& gpu = device_->info();
  EXPECT_EQ(info->max_threads_per_block, 1024);
  EXPECT_GE(info->registers, 1);
  EXPECT_EQ(info->static_shared_bytes, 0);
  EXPECT_EQ(info->max_dynamic_shared_bytes,
            gpu.attributes[CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK]);
  EXPECT_EQ(info->ptx_version, 80);
  EXPECT_EQ(info->binary_version,
            gpu.attributes[CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR] * 10 +
                gpu.attributes[CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR]);
  const auto none = device_->function_info(kernel("count"));
  ASSERT_TRUE(none) << none.error().message;
  EXPECT_TRUE(none->parameters.empty());
}

TEST_F(GpuModuleTest, CompiledCodeDoesWhatItsPtxDoes) {
  const auto code = device_->compile(kTestPtx);
  ASSERT_TRUE(code) << code.error().message;
  const auto module = device_->load_module(device::ImageKind::kCubin, *code);
  ASSERT_TRUE(module) << module.error().message;
  const auto counters = device_->find_global(*module, "counters");
  ASSERT_TRUE(counters) << counters.error().message;
  write(counters->base, std::vector<std::uint32_t>{1, 2, 3, 4});
  const auto count = device_->find_function(*module, "count");
  ASSERT_TRUE(count) << count.error().message;
  ASSERT_TRUE(device_->launch({.function = *count, .grid = {2}, .block = {32}}, stream_));
  EXPECT_EQ(read<std::uint32_t>(counters->base, 4), (std::vector<std::uint32_t>{1, 2, 67, 4}));
  for (const char* name : {"add", "mixed"}) {
    const auto function = device_->find_function(*module, name);
    ASSERT_TRUE(function) << function.error().message;
    const auto compiled = device_->function_info(*function).value();
    const auto loaded = device_->function_info(kernel(name)).value();
    EXPECT_EQ(compiled.parameters.size(), loaded.parameters.size()) << name;
    EXPECT_EQ(compiled.registers, loaded.registers) << name;
    EXPECT_EQ(compiled.local_bytes, loaded.local_bytes) << name;
  }
  device_->unload_module(*module);
}

TEST_F(GpuModuleTest, PtxThatDoesNotCompileComesBackWithItsLine) {
  const auto code = device_->compile(
      ".version 8.0\n.target sm_80\n.address_size 64\n"
      ".visible .entry k() {\n  frobnicate.u32 %r1, 2;\n  ret;\n}\n");
  ASSERT_FALSE(code);
  EXPECT_EQ(code.error().code, ErrorCode::kInvalidPtx) << code.error().message;
  EXPECT_NE(code.error().message.find("line 5"), std::string::npos) << code.error().message;
  EXPECT_FALSE(device_->lost());
}

TEST_F(GpuModuleTest, OccupancyFollowsTheShapeOfTheBlock) {
  const device::Function function = kernel("add");
  const auto full = device_->max_blocks_per_sm(function, 1024, 0);
  ASSERT_TRUE(full) << full.error().message;
  const auto small = device_->max_blocks_per_sm(function, 64, 0);
  ASSERT_TRUE(small) << small.error().message;
  EXPECT_GT(*small, *full);
  const auto none = device_->max_blocks_per_sm(function, 64, 1 << 20);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ErrorCode::kOutOfResources) << none.error().message;
  EXPECT_FALSE(device_->lost());
}

TEST_F(GpuModuleTest, PtxThatDoesNotAssembleComesBackWithItsLine) {
  const auto module = load(
      ".version 8.0\n.target sm_80\n.address_size 64\n"
      ".visible .entry k() {\n  frobnicate.u32 %r1, 2;\n  ret;\n}\n");
  ASSERT_FALSE(module);
  EXPECT_EQ(module.error().code, ErrorCode::kInvalidPtx) << module.error().message;
  EXPECT_NE(module.error().message.find("line 5"), std::string::npos) << module.error().message;
  EXPECT_EQ(module.error().message.find('\n'), std::string::npos);
  EXPECT_FALSE(device_->lost());
}

TEST_F(GpuModuleTest, TextThatIsNoPtxIsInvalidPtx) {
  const auto module = load("// hello, world\n");
  ASSERT_FALSE(module);
  EXPECT_EQ(module.error().code, ErrorCode::kInvalidPtx) << module.error().message;
}

TEST_F(GpuModuleTest, NamesThatAreNotThereAreSymbolNotFound) {
  const auto module = load(kTestPtx);
  ASSERT_TRUE(module) << module.error().message;
  const auto function = device_->find_function(*module, "subtract");
  ASSERT_FALSE(function);
  EXPECT_EQ(function.error().code, ErrorCode::kSymbolNotFound);
  EXPECT_NE(function.error().message.find("subtract"), std::string::npos);
  const auto global = device_->find_global(*module, "no_counters");
  ASSERT_FALSE(global);
  EXPECT_EQ(global.error().code, ErrorCode::kSymbolNotFound);
  device_->unload_module(*module);
}

TEST_F(GpuModuleTest, AGlobalIsTheMemoryThatItsKernelsSee) {
  const auto module = load(kTestPtx);
  ASSERT_TRUE(module) << module.error().message;
  const auto counters = device_->find_global(*module, "counters");
  ASSERT_TRUE(counters) << counters.error().message;
  EXPECT_EQ(counters->bytes, 16);
  write(counters->base, std::vector<std::uint32_t>{1, 2, 3, 4});
  const auto count = device_->find_function(*module, "count");
  ASSERT_TRUE(count) << count.error().message;
  ASSERT_TRUE(device_->launch({.function = *count, .grid = {2}, .block = {32}}, stream_));
  EXPECT_EQ(read<std::uint32_t>(counters->base, 4), (std::vector<std::uint32_t>{1, 2, 67, 4}));
  device_->unload_module(*module);
}

TEST_F(GpuModuleTest, DynamicSharedMemoryIsLimitedUntilTheLimitIsRaised) {
  const device::Function function = kernel("use_shared");
  const auto limit = static_cast<std::uint32_t>(
      device_->info().attributes[CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN]);
  Parameters parameters;
  parameters.add(arena_.base).add(limit);
  const device::LaunchSpec spec{
      .function = function, .dynamic_shared_bytes = limit, .parameters = parameters.bytes()};
  EXPECT_FALSE(device_->launch(spec, stream_));

  EXPECT_FALSE(device_->set_max_dynamic_shared(function, limit + 1));
  const auto raised = device_->set_max_dynamic_shared(function, limit);
  ASSERT_TRUE(raised) << raised.error().message;
  EXPECT_EQ(device_->function_info(function).value().max_dynamic_shared_bytes, limit);
  const auto launched = device_->launch(spec, stream_);
  ASSERT_TRUE(launched) << launched.error().message;
  EXPECT_EQ(read<std::uint32_t>(arena_.base, 1).front(), 7);
  EXPECT_FALSE(device_->lost());
}

}  // namespace
}  // namespace slate::cuda
