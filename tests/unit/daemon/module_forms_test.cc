// When a session's kernels get their forms: never in a launch's way, and only if they matter.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "daemon/engine/module_store.h"
#include "tests/unit/daemon/fake_device.h"
#include "tests/unit/daemon/temporary_directory.h"

namespace slate::daemon {
namespace {

constexpr std::string_view kModuleText = R"(.version 8.8
.target sm_90
.address_size 64
.global .align 8 .u64 g;
.visible .entry k(.param .u64 a)
{
	.reg .b64 %rd<2>;
	.reg .b32 %r<2>;
	mov.u32 %r1, %ctaid.x;
	ld.global.u64 %rd1, [g];
	ret;
}
)";

class ModuleFormsTest : public testing::Test {
 protected:
  ModuleFormsTest() {
    device_.set_compiler("fake 1");
    device_.add_kernel("k", {});
    device_.add_kernel("k__slate_worker", {});
  }
  ~ModuleFormsTest() override {
    if (store_) store_->release();
    store_.reset();
    maker_.reset();
  }

  void open(FormMaker::Settings settings = {}) {
    if (store_) store_->release();
    store_.reset();
    maker_.reset();
    compiler_ = std::make_unique<Compiler>(
        device_, open_cache(device_, directory_.path(), std::uint64_t{64} << 20));
    maker_ = std::make_unique<FormMaker>(*compiler_, settings);
    store_ = std::make_unique<ModuleStore>(device_, *compiler_, maker_.get(), 1);
  }
  Result<void> send(std::uint32_t kind, std::string_view text) {
    return store_->add_chunk({1, text.size(), 0, kind, 0}, std::as_bytes(std::span(text)));
  }
  FunctionRecord& kernel() {
    if (!store_->find_function(1)) {
      EXPECT_TRUE(store_->add_function(1, 1, "k"));
    }
    return **store_->find_function(1);
  }
  void launch() {
    store_->attend(kernel());
    if (kernel().form_progress == FormProgress::kWatched) store_->order_forms(kernel());
  }
  void wait_for_order() {
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!kernel().form_order->done() && std::chrono::steady_clock::now() < limit)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

  TemporaryDirectory directory_;
  FakeDevice device_;
  std::unique_ptr<Compiler> compiler_;
  std::unique_ptr<FormMaker> maker_;
  std::unique_ptr<ModuleStore> store_;
};

TEST_F(ModuleFormsTest, TheProgramsOwnCodeIsAllThatIsLoadedAtFirst) {
  open();
  ASSERT_TRUE(send(ipc::kImageSource, kModuleText));
  ASSERT_TRUE(send(ipc::kImageElf, "code"));
  launch();
  EXPECT_EQ(device_.loaded(), std::vector<std::string>{"cubin:code"});
  EXPECT_EQ(device_.compilations(), 0u);
  EXPECT_EQ(kernel().form_progress, FormProgress::kWatched);
  EXPECT_EQ(kernel().forms, nullptr);
}

TEST_F(ModuleFormsTest, AKernelThatTakesNoTimeGetsNoForms) {
  open();
  ASSERT_TRUE(send(ipc::kImageSource, kModuleText));
  ASSERT_TRUE(send(ipc::kImageElf, "code"));
  kernel().profiles.push_back({.block = {1, 1, 1}, .expected_ms = 0.001});
  for (int i = 0; i < 1000; ++i) launch();
  EXPECT_EQ(kernel().form_progress, FormProgress::kWatched);
}

TEST_F(ModuleFormsTest, AKernelThatMattersGetsThemOnceTheyAreMade) {
  open();
  ASSERT_TRUE(send(ipc::kImageSource, kModuleText));
  ASSERT_TRUE(send(ipc::kImageElf, "code"));
  kernel().profiles.push_back({.block = {1, 1, 1}, .expected_ms = 4});
  device_.hold_compiler(true);
  for (int i = 0; i < 3; ++i) launch();
  EXPECT_EQ(kernel().form_progress, FormProgress::kOrdered);
  launch();
  EXPECT_EQ(kernel().forms, nullptr) << "its launches do not wait";
  device_.hold_compiler(false);
  wait_for_order();
  launch();
  EXPECT_EQ(kernel().form_progress, FormProgress::kSettled);
}

TEST_F(ModuleFormsTest, WhatIsMadeAlreadyIsThereWithTheFirstLaunch) {
  open({.profiles = false, .at_once = true});
  ASSERT_TRUE(send(ipc::kImagePtx, kModuleText));
  launch();
  ASSERT_EQ(kernel().form_progress, FormProgress::kSettled);
  const std::size_t compilations = device_.compilations();
  open();
  ASSERT_TRUE(send(ipc::kImagePtx, kModuleText));
  launch();
  EXPECT_EQ(kernel().form_progress, FormProgress::kSettled);
  EXPECT_EQ(device_.compilations(), compilations);
}

TEST_F(ModuleFormsTest, WithoutACompilerFormsReachTheVariablesOfTheProgramsModule) {
  device_.set_compiler("");
  open({.profiles = false, .at_once = true});
  ASSERT_TRUE(send(ipc::kImagePtx, kModuleText));
  launch();
  ASSERT_NE(kernel().forms, nullptr);
  EXPECT_EQ(kernel().forms->worker, "k__slate_worker");
  EXPECT_NE(kernel().form_module, device::Module{});
  ASSERT_EQ(device_.loaded().size(), 2u);
  EXPECT_NE(device_.loaded()[1].find("__slate_variables[1] = {0x"), std::string::npos);
  EXPECT_EQ(store_->loaded().count(), 1u) << "of the program's own";
  const auto unused = store_->forget(1);
  ASSERT_TRUE(unused);
  EXPECT_EQ(unused->modules.size(), 2u);
  for (const device::Module module : unused->modules) store_->loaded().unload_now(module);
}

TEST_F(ModuleFormsTest, CodeThatTheDeviceRefusesIsCompiledFromItsSource) {
  open();
  device_.refuse_code();
  ASSERT_TRUE(send(ipc::kImageSource, kModuleText));
  ASSERT_TRUE(send(ipc::kImageElf, "code of a newer toolkit"));
  ASSERT_EQ(device_.loaded().size(), 2u);
  EXPECT_EQ(device_.loaded()[1], "cubin:code:" + std::string(kModuleText));
}

}  // namespace
}  // namespace slate::daemon
