// Loading a module with its forms: what is compiled again when a worker form takes too many
// registers.
#include "daemon/dispatch/form_module.h"

#include <gtest/gtest.h>

#include <span>
#include <string>

#include "tests/unit/daemon/fake_device.h"

namespace slate::daemon {
namespace {

constexpr const char* kText = R"(.version 8.8
.target sm_90
.address_size 64
.visible .entry k(.param .u64 a)
{
	.reg .b32 %r<3>;
	.shared .align 4 .b8 words[4096];
	mov.u32 %r1, %tid.x;
	st.shared.u32 [words], %r1;
	bar.sync 0;
	ret;
}
)";

class FormModuleTest : public testing::Test {
 protected:
  FormModuleTest() {
    device_.pretend_to_be_hardware();
    device_.add_kernel("k", {.registers = 33});
    device_.add_kernel("k__slate_slice", {.registers = 33});
    device_.add_kernel("k__slate_compact", {.registers = 40});
  }

  /// The texts that were loaded, with a worker form that needs so much.
  std::vector<std::string> load(FakeDevice::KernelNeeds worker) {
    device_.add_kernel("k__slate_worker", worker);
    const auto forms = load_forms(device_, rewriter_of(kText), [&](std::string_view text) {
      return device_.load_module(device::ImageKind::kPtx, std::as_bytes(std::span(text)));
    });
    EXPECT_TRUE(forms) << forms.error().message;
    if (!forms) return {};
    compact_ = forms->kernels.at(0).compact_worker;
    device_.unload_module(forms->module);
    return device_.loaded();
  }

  static bool has(const std::string& text, std::string_view part) {
    return text.find(part) != std::string::npos;
  }

  FakeDevice device_;
  std::string compact_;
};

TEST_F(FormModuleTest, WhatFitsIsCompiledOnce) {
  const auto texts = load({.registers = 40});  // as many as 33 take
  ASSERT_EQ(texts.size(), 1u);
  EXPECT_FALSE(has(texts[0], ".maxnreg"));
  EXPECT_FALSE(compact_.empty());
}

TEST_F(FormModuleTest, TooManyRegistersAreLimited) {
  const auto texts = load({.registers = 41});
  ASSERT_EQ(texts.size(), 2u);
  EXPECT_TRUE(has(texts[1], ".maxnreg 40"));
  EXPECT_TRUE(has(texts[1], "__slate_copies"));
  EXPECT_FALSE(compact_.empty());
}

TEST_F(FormModuleTest, WhatSpillsUnderTheLimitBecomesLean) {
  const auto texts = load({.registers = 41, .local_bytes = 8});
  ASSERT_EQ(texts.size(), 3u);
  EXPECT_TRUE(has(texts[2], ".maxnreg 40"));
  EXPECT_FALSE(has(texts[2], "__slate_copies"));
  EXPECT_TRUE(compact_.empty()) << "what is loaded has none";
}

TEST_F(FormModuleTest, TheCompactFormCountsToo) {
  device_.add_kernel("k__slate_compact", {.registers = 48});
  EXPECT_EQ(load({.registers = 40}).size(), 2u);
}

TEST_F(FormModuleTest, WhatTheKernelItselfSpillsIsNoReason) {
  device_.add_kernel("k", {.registers = 33, .local_bytes = 8});
  EXPECT_EQ(load({.registers = 41, .local_bytes = 8}).size(), 2u);
}

}  // namespace
}  // namespace slate::daemon
