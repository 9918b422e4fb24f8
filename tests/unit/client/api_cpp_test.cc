// The C++ layer of slate.h: what it throws, who owns what, and what its launches check.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <optional>

#include "client/slate.h"
#include "tests/unit/client/api_daemon.h"

namespace {

using slate::test::kTestPtx;

static_assert(!std::is_copy_constructible_v<slate::Module>);
static_assert(!std::is_copy_assignable_v<slate::Module>);
static_assert(std::is_nothrow_move_constructible_v<slate::Module>);
static_assert(std::is_nothrow_move_assignable_v<slate::Module>);
static_assert(std::is_copy_constructible_v<slate::Kernel>);
static_assert(slate::Dim3(7).y == 1 && slate::Dim3(1, 2, 3).z == 3);
static_assert(!std::is_constructible_v<slate::Dim3, float>);

class ApiCppTest : public ::testing::Test {
 protected:
  /// The status and the text that `body` throws.
  template <typename Body>
  static std::pair<slate_status, std::string> thrown(const Body& body) {
    try {
      body();
    } catch (const slate::Error& error) {
      return {error.status(), error.what()};
    }
    return {SLATE_SUCCESS, ""};
  }

  slate::test::ApiDaemon daemon;
};

TEST_F(ApiCppTest, FailuresBecomeErrorsWithTheWholeMessage) {
  const auto [status, text] = thrown([] { slate::Module::from_ptx("no PTX"); });
  EXPECT_EQ(status, SLATE_ERROR_INVALID_PTX);
  EXPECT_EQ(text, slate_last_message());
  EXPECT_EQ(thrown([] { slate::Module::from_source(""); }).first, SLATE_ERROR_INVALID_VALUE);
  EXPECT_EQ(thrown([] { slate::Module::from_file("/nonexistent"); }).first,
            SLATE_ERROR_FILE_NOT_FOUND);
  const slate::Module module = slate::Module::from_ptx(kTestPtx);
  EXPECT_EQ(thrown([&] { (void)module.kernel("none"); }).first, SLATE_ERROR_NOT_FOUND);
  EXPECT_EQ(thrown([&] { (void)module.global("none"); }).first, SLATE_ERROR_NOT_FOUND);
}

TEST_F(ApiCppTest, AnEmptyModuleAnswersNothing) {
  slate::Module module;
  EXPECT_FALSE(module);
  EXPECT_EQ(thrown([&] { (void)module.kernel("plain"); }).first, SLATE_ERROR_INVALID_HANDLE);
  EXPECT_EQ(thrown([&] { (void)module.log(); }).first, SLATE_ERROR_INVALID_HANDLE);
  slate::Module full = slate::Module::from_ptx(kTestPtx);
  module = std::move(full);
  EXPECT_TRUE(module);
  EXPECT_FALSE(full);  // NOLINT: moved from, and said to be empty then
}

TEST_F(ApiCppTest, TheLastOfModuleAndKernelsUnloads) {
  std::optional<slate::Kernel> kernel;
  {
    const slate::Module module = slate::Module::from_ptx(kTestPtx);
    kernel = module.kernel("plain");
  }
  kernel->launch({1}, {32}, nullptr, nullptr);
  daemon.settle();
  EXPECT_EQ(daemon.unloads(), 0);
  EXPECT_EQ(daemon.launches(), 1);
  kernel.reset();
  daemon.settle();
  EXPECT_EQ(daemon.unloads(), 1);
  { const slate::Module again = slate::Module::from_ptx(kTestPtx); }
  daemon.settle();
  EXPECT_EQ(daemon.unloads(), 2);
}

TEST_F(ApiCppTest, SourceOptionsReachTheCompiler) {
  slate::SourceOptions options;
  options.name = "mine.cu";
  options.options = {"-DN=4", "-DM=2"};
  options.instances = {"scale<float>"};
  const slate::Module module = slate::Module::from_source("text", options);
  EXPECT_EQ(module.log(), "a warning");
  EXPECT_EQ(module.kernel("scale<float>").name(), "_Z5scaleIfEvPT_");
}

TEST_F(ApiCppTest, AKernelTellsItsNeeds) {
  daemon.describe_parameters({8, 4});
  const slate::Kernel kernel = slate::Module::from_ptx(kTestPtx).kernel("plain");
  EXPECT_EQ(kernel.parameter_sizes(), (std::vector<std::size_t>{8, 4}));
  EXPECT_EQ(kernel.info().registers, 40u);
  kernel.set_max_dynamic_shared(100'000);
  EXPECT_EQ(kernel.info().max_dynamic_shared_bytes, 100'000u);
}

TEST_F(ApiCppTest, GlobalsHaveAnAddressAndASize) {
  const slate::Module module = slate::Module::from_ptx(kTestPtx);
  const slate::Global global = module.global("factor");
  EXPECT_NE(global.address, nullptr);
  EXPECT_EQ(global.bytes, 64u);
}

TEST_F(ApiCppTest, ArgumentsAreCheckedAgainstTheParameters) {
  daemon.describe_parameters({8, 4});
  const slate::Kernel kernel = slate::Module::from_ptx(kTestPtx).kernel("scale<float>");
  int* pointer = nullptr;
  kernel.launch({2}, {32}, nullptr, pointer, 2.0f);
  const auto few = thrown([&] { kernel.launch({2}, {32}, nullptr, pointer); });
  EXPECT_EQ(few.first, SLATE_ERROR_INVALID_VALUE);
  EXPECT_EQ(few.second, "kernel scale<float> takes 2 arguments, not 1");
  const auto wide = thrown([&] { kernel.launch({2}, {32}, nullptr, pointer, 2.0); });
  EXPECT_EQ(wide.first, SLATE_ERROR_INVALID_VALUE);
  EXPECT_EQ(wide.second, "argument 2 of kernel scale<float> has 8 bytes, its parameter has 4");
  EXPECT_EQ(thrown([&] { kernel.launch({0}, {32}, nullptr, pointer, 2.0f); }).first,
            SLATE_ERROR_INVALID_VALUE);
  daemon.settle();
  EXPECT_EQ(daemon.launches(), 1);
}

TEST_F(ApiCppTest, SizesComeFromNumbersAndFromCudasTypes) {
  daemon.describe_parameters({});
  const slate::Kernel kernel = slate::Module::from_ptx(kTestPtx).kernel("plain");
  const int signed_size = 3;
  const std::size_t wide_size = 4;
  kernel.launch({signed_size, wide_size}, {16, 16}, nullptr);
  kernel.launch(dim3(2, 2), dim3(32), nullptr);
  kernel.launch_with_shared(1024, {1}, {64}, nullptr);
  EXPECT_EQ(slate::Dim3(4, 5, 6).as<dim3>().y, 5u);
  EXPECT_EQ(slate::Dim3(dim3(4, 5, 6)).z, 6u);
  EXPECT_EQ(thrown([&] { kernel.launch({-1}, {1}, nullptr); }).first, SLATE_ERROR_INVALID_VALUE);
  EXPECT_EQ(thrown([&] { kernel.launch({1ull << 32}, {1}, nullptr); }).first,
            SLATE_ERROR_INVALID_VALUE);
  daemon.settle();
  EXPECT_EQ(daemon.launches(), 3);
}

}  // namespace
