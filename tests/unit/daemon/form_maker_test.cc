// Who gets forms, and when: behind the program's launches, the sessions in turn, once for all.
#include "daemon/engine/form_maker.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "tests/unit/daemon/fake_device.h"
#include "tests/unit/daemon/temporary_directory.h"

namespace slate::daemon {
namespace {

std::string kernel_text(const std::string& name) {
  return ".visible .entry " + name +
         "(.param .u64 a)\n{\n\t.reg .b32 %r<2>;\n\tmov.u32 %r1, %ctaid.x;\n\tret;\n}\n";
}
constexpr const char* kHead = ".version 8.8\n.target sm_90\n.address_size 64\n";

/// Knows the kernels whose forms were compiled, in order.
class RecordingDevice : public FakeDevice {
 public:
  Result<std::vector<std::byte>> compile(std::string_view ptx,
                                         std::chrono::milliseconds most_cpu) override {
    const std::size_t at = ptx.find("__slate_worker");
    if (at != ptx.npos && at > 0) kernels += ptx[at - 1];
    return FakeDevice::compile(ptx, most_cpu);
  }

  std::string kernels;
};

class FormMakerTest : public testing::Test {
 protected:
  FormMakerTest() { device_.set_compiler("fake 1"); }

  void open(FormMaker::Settings settings = {}) {
    maker_.reset();
    compiler_ = std::make_unique<Compiler>(
        device_, open_cache(device_, directory_.path(), std::uint64_t{64} << 20));
    maker_ = std::make_unique<FormMaker>(*compiler_, settings);
  }
  static std::shared_ptr<const FormSource> source(const std::string& kernels = "ab") {
    std::string text = kHead;
    for (const char kernel : kernels) text += kernel_text(std::string(1, kernel));
    return std::make_shared<const FormSource>(text, nullptr);
  }
  static bool comes(const std::shared_ptr<FormMaker::Order>& order) {
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!order->done() && std::chrono::steady_clock::now() < limit)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return order->done();
  }

  TemporaryDirectory directory_;
  FakeDevice device_;
  std::unique_ptr<Compiler> compiler_;
  std::unique_ptr<FormMaker> maker_;
};

TEST_F(FormMakerTest, AnOrderIsMadeBehindTheCaller) {
  open();
  device_.hold_compiler(true);
  const auto order = maker_->order({0, 1}, source(), "a");
  EXPECT_FALSE(order->done());
  device_.hold_compiler(false);
  ASSERT_TRUE(comes(order));
  EXPECT_EQ(order->outcome()->why_none, "");
  EXPECT_EQ(order->outcome()->forms.worker, "a__slate_worker");
  EXPECT_EQ(maker_->counts().made, 1u);
}

TEST_F(FormMakerTest, WhatWasMadeOnceIsThereForAllSessionsAndEngines) {
  open();
  EXPECT_EQ(maker_->find(*source(), "a"), nullptr);
  ASSERT_TRUE(comes(maker_->order({0, 1}, source(), "a")));
  EXPECT_NE(maker_->find(*source(), "a"), nullptr);
  open();
  const auto found = maker_->find(*source(), "a");
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->forms.worker, "a__slate_worker");
  EXPECT_EQ(device_.compilations(), 1u);
  EXPECT_EQ(maker_->find(*source("abc"), "a"), nullptr) << "another module's";
}

TEST_F(FormMakerTest, TheModulesOwnCodeIsPartOfTheQuestion) {
  open();
  ASSERT_TRUE(comes(maker_->order({0, 1}, source(), "a")));
  const FormSource other(source()->text,
                         std::make_shared<const std::vector<std::byte>>(4, std::byte{1}));
  EXPECT_EQ(maker_->find(other, "a"), nullptr);
}

TEST_F(FormMakerTest, ThatAKernelHasNoneIsKeptToo) {
  open();
  const auto indirect = std::make_shared<const FormSource>(
      std::string(kHead) +
          ".func f() { ret; }\n.visible .entry a()\n{\n\t.reg .b64 %rd<2>;\n\tmov.u64 %rd1, f;\n"
          "\tret;\n}\n",
      nullptr);
  ASSERT_TRUE(comes(maker_->order({0, 1}, indirect, "a")));
  const auto found = maker_->find(*indirect, "a");
  ASSERT_NE(found, nullptr);
  EXPECT_NE(found->why_none, "");
  EXPECT_EQ(maker_->counts().without_forms, 1u);
}

TEST_F(FormMakerTest, SessionsTakeTurns) {
  open();
  device_.hold_compiler(true);
  // While the first is compiled, the others wait.
  std::vector<std::shared_ptr<FormMaker::Order>> first;
  for (const char kernel : std::string("abcdefgh"))
    first.push_back(maker_->order({0, 1}, source("abcdefgh"), std::string(1, kernel)));
  const auto second = maker_->order({0, 2}, source("xy"), "x");
  device_.hold_compiler(false);
  ASSERT_TRUE(comes(second));
  for (const auto& order : first) EXPECT_TRUE(comes(order));
  EXPECT_EQ(maker_->counts().made, 9u);
}

TEST(FormMakerTurnsTest, UsersTakeTurnsHoweverManySessionsOneHas) {
  RecordingDevice device;
  device.set_compiler("fake 1");
  const TemporaryDirectory directory;
  Compiler compiler(device, open_cache(device, directory.path(), std::uint64_t{64} << 20));
  FormMaker maker(compiler, {});
  constexpr uid_t kMany = 1, kOne = 2;
  const auto module = std::make_shared<const FormSource>(
      kHead + kernel_text("a") + kernel_text("b") + kernel_text("c") + kernel_text("x"), nullptr);
  device.hold_compiler(true);
  std::vector<std::shared_ptr<FormMaker::Order>> orders = {maker.order({kMany, 1}, module, "a")};
  while (device.compilations() == 0) std::this_thread::yield();
  orders.push_back(maker.order({kMany, 2}, module, "b"));
  orders.push_back(maker.order({kMany, 3}, module, "c"));
  orders.push_back(maker.order({kOne, 4}, module, "x"));
  device.hold_compiler(false);
  for (const auto& order : orders) {
    while (!order->done()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(device.kernels, "axbc");
}

TEST_F(FormMakerTest, WhatNobodyWantsAnyMoreIsNotMade) {
  open();
  device_.hold_compiler(true);
  const auto first = maker_->order({0, 1}, source(), "a");
  while (device_.compilations() == 0) std::this_thread::yield();
  maker_->order({0, 1}, source(), "b").reset();
  const auto last = maker_->order({0, 1}, source("c"), "c");
  device_.hold_compiler(false);
  ASSERT_TRUE(comes(last));
  EXPECT_EQ(device_.compilations(), 2u);
}

TEST_F(FormMakerTest, ASessionThatSpentItsTimeGetsNoMore) {
  open({.most_a_session = std::chrono::milliseconds(0)});
  const auto order = maker_->order({0, 1}, source(), "a");
  ASSERT_TRUE(comes(order));
  EXPECT_NE(order->outcome()->why_none, "");
  EXPECT_EQ(device_.compilations(), 0u);
}

TEST_F(FormMakerTest, AtTheEndNothingIsBegun) {
  open();
  device_.hold_compiler(true);
  const auto first = maker_->order({0, 1}, source(), "a");
  while (device_.compilations() == 0) std::this_thread::yield();
  const auto second = maker_->order({0, 1}, source(), "b");
  std::thread release([this] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    device_.hold_compiler(false);
  });
  maker_.reset();
  release.join();
  EXPECT_TRUE(first->done());
  EXPECT_FALSE(second->done());
  EXPECT_EQ(device_.compilations(), 1u);
}

TEST_F(FormMakerTest, WithoutACompilerTheTextIsWhatTheDeviceGets) {
  device_.set_compiler("");
  open();
  const auto made = maker_->make(source(), "a", {});
  EXPECT_EQ(made->kind, device::ImageKind::kPtx);
  EXPECT_FALSE(made->code.empty());
  EXPECT_EQ(maker_->find(*source(), "a"), nullptr) << "nothing is kept";
}

}  // namespace
}  // namespace slate::daemon
