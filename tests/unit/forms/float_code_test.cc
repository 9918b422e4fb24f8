// The machine code of kernels, compared by their multiplications and additions: with ptxas, where
// there is one. That ptxas fuses what contraction.h says is seen here too.
#include "daemon/dispatch/float_code.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "base/elf.h"
#include "device/cuda/ptxas.h"
#include "injector/analysis/analysis.h"
#include "injector/forms/settled_sums.h"

namespace slate::daemon {
namespace {

using Cubin = std::vector<std::byte>;

std::string kernel(const std::string& body) {
  return ".version 8.8\n.target sm_90\n.address_size 64\n.const .align 4 .f32 c[4];\n"
         ".visible .entry k(.param .u64 a, .param .f32 n, .param .f64 m)\n{\n"
         ".reg .pred %p<9>; .reg .b32 %r<30>; .reg .b64 %rd<9>;\n"
         ".reg .f32 %f<30>; .reg .f64 %d<30>; .reg .b16 %h<9>;\n"
         "ld.param.u64 %rd1, [a]; ld.param.f32 %f10, [n]; ld.param.f64 %d10, [m];\n"
         "ld.global.f32 %f1, [%rd1]; ld.global.f32 %f2, [%rd1+4]; ld.global.f32 %f3, [%rd1+8];\n"
         "ld.global.f64 %d1, [%rd1+16]; ld.global.f64 %d2, [%rd1+24];\n"
         "ld.global.f64 %d3, [%rd1+32]; ld.global.b16 %h1, [%rd1+40];\n"
         "ld.global.b16 %h2, [%rd1+42]; ld.global.b16 %h3, [%rd1+44];\n"
         "ld.global.b32 %r1, [%rd1+12]; ld.global.b32 %r2, [%rd1+48];\n"
         "ld.global.b32 %r3, [%rd1+52]; setp.ne.s32 %p1, %r1, 0;\n" +
         body + "\nret;\n}\n";
}

const std::string kStore = " st.global.f32 [%rd1+100], %f5;\n";
const std::string kMul = "mul.f32 %f4, %f1, %f2;\n";
const std::string kAdd = "add.f32 %f5, %f4, %f3;" + kStore;

class FloatCodeTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!cuda::find_ptxas("")) GTEST_SKIP() << "no ptxas";
  }

  Cubin assemble(const std::string& ptx, int major = 9, int minor = 0) {
    cuda::PtxasSettings settings;
    settings.major = major;
    settings.minor = minor;
    settings.driver_version = 99000;
    auto code = cuda::Ptxas(settings).compile(ptx);
    EXPECT_TRUE(code) << code.error().message << "\n" << ptx;
    return code ? std::move(*code) : Cubin();
  }

  FloatMatch match(const std::string& one, const std::string& other) {
    const Cubin first = assemble(kernel(one)), second = assemble(kernel(other));
    return match_float_code({first, "k"}, {second, "k"});
  }

  /// The kernel's own code against that of its settled text.
  FloatMatch match_settled(const std::string& body) {
    const Cubin native = assemble(kernel(body));
    const auto module = ptx::parse(kernel(body));
    EXPECT_TRUE(module) << module.error().message;
    const auto settled = injector::settle_sums(**module, {true});
    EXPECT_TRUE(settled);
    const Cubin code = assemble(settled->ptx);
    return match_float_code({native, "k"}, {code, "k"});
  }
};

TEST_F(FloatCodeTest, AFusedSumIsToldFromOneThatIsNot) {
  EXPECT_EQ(match(kMul + kAdd, kMul + kAdd), FloatMatch::kSameCode);
  EXPECT_EQ(match(kMul + kAdd, kMul + "add.rn.f32 %f5, %f4, %f3;" + kStore), FloatMatch::kDiffers);
  EXPECT_EQ(match("mul.f64 %d4, %d1, %d2; add.f64 %d5, %d4, %d3; st.global.f64 [%rd1], %d5;",
                  "mul.f64 %d4, %d1, %d2; add.rn.f64 %d5, %d4, %d3; st.global.f64 [%rd1], %d5;"),
            FloatMatch::kDiffers);
  EXPECT_EQ(match("mul.f16 %h4, %h1, %h2; add.f16 %h5, %h4, %h3; st.global.b16 [%rd1], %h5;",
                  "mul.f16 %h4, %h1, %h2; add.rn.f16 %h5, %h4, %h3; st.global.b16 [%rd1], %h5;"),
            FloatMatch::kDiffers);
  EXPECT_EQ(
      match("mul.f16x2 %r4, %r1, %r2; add.f16x2 %r5, %r4, %r3; st.global.b32 [%rd1], %r5;",
            "mul.f16x2 %r4, %r1, %r2; add.rn.f16x2 %r5, %r4, %r3; st.global.b32 [%rd1], %r5;"),
      FloatMatch::kDiffers);
  EXPECT_EQ(
      match("mul.bf16x2 %r4, %r1, %r2; add.bf16x2 %r5, %r4, %r3; st.global.b32 [%rd1], %r5;",
            "mul.bf16x2 %r4, %r1, %r2; add.rn.bf16x2 %r5, %r4, %r3; st.global.b32 [%rd1], %r5;"),
      FloatMatch::kDiffers);
}

TEST_F(FloatCodeTest, OtherCodeAroundThemDoesNotMatter) {
  EXPECT_EQ(match(kMul + kAdd, "bar.sync 0; st.global.b32 [%rd1+200], 7;\n" + kMul + kAdd),
            FloatMatch::kSameCount);
  // Negatives and constants are moved by instructions that also add and multiply.
  EXPECT_EQ(match(kMul + kAdd,
                  "neg.f32 %f7, %f1; st.global.f32 [%rd1+200], %f7;\n"
                  "st.global.f32 [%rd1+204], 0f40490FDB;\n" +
                      kMul + kAdd),
            FloatMatch::kSameCount);
}

TEST_F(FloatCodeTest, AnEntryThatIsNotThereIsUnknown) {
  const Cubin code = assemble(kernel(kMul + kAdd));
  EXPECT_EQ(match_float_code({code, "k"}, {code, "other"}), FloatMatch::kUnknown);
  EXPECT_EQ(match_float_code({{}, "k"}, {code, "k"}), FloatMatch::kUnknown);
}

TEST_F(FloatCodeTest, TheArchitectureIsTheCodes) {
  const std::string text = kernel(kMul + kAdd);
  EXPECT_EQ(architecture_of(assemble(text)), 90u);
  EXPECT_EQ(architecture_of(assemble(text, 10, 0)), 100u);
  EXPECT_EQ(architecture_of({}), 0u);
}

/// What each of these shows is in contraction_test.cc.
TEST_F(FloatCodeTest, PtxasFusesWhatTheAnalysisSays) {
  const std::string apart = "@%p1 bra L; bar.sync 0;\n" + kAdd + "L:";
  const std::string second = "mul.f32 %f6, %f1, %f3;\n";
  const std::string third = "add.f32 %f7, %f4, %f1; st.global.f32 [%rd1+104], %f7;\n";
  const std::string cases[] = {
      kMul + kAdd,
      kMul + "sub.f32 %f5, %f3, %f4;" + kStore,
      kMul + "sub.f32 %f5, %f4, %f3;" + kStore,
      kMul + "@%p1 add.f32 %f3, %f4, %f3; mov.f32 %f5, %f3;" + kStore,
      "mul.sat.f32 %f4, %f1, %f2;\n" + kAdd,
      "mul.ftz.f32 %f4, %f1, %f2;\n" + kAdd,
      kMul + "add.sat.f32 %f5, %f4, %f3;" + kStore,
      kMul + kAdd + "st.global.f32 [%rd1+104], %f4;",
      kMul + kAdd + "sub.f32 %f6, %f1, %f4; st.global.f32 [%rd1+104], %f6;",
      kMul + "add.f32 %f5, %f4, %f4;" + kStore,
      kMul + second + "add.f32 %f5, %f4, %f6;" + kStore,
      kMul + second + "add.f32 %f5, %f6, %f4;" + kStore,
      kMul + second + "add.f32 %f5, %f4, %f6;" + kStore + third,
      kMul + second + "add.f32 %f5, %f4, %f6;" + kStore + third +
          "add.f32 %f8, %f6, %f1; st.global.f32 [%rd1+108], %f8;",
      kMul + "neg.f32 %f6, %f4; add.f32 %f5, %f6, %f3;" + kStore,
      kMul + "abs.f32 %f6, %f4; add.f32 %f5, %f6, %f3;" + kStore,
      kMul + apart,
      "mul.f32 %f4, %f1, 0f40490FDB;\n" + apart,
      "mul.f32 %f4, %f1, %f10;\n" + apart,
      "ld.const.f32 %f6, [c+4]; mul.f32 %f4, %f6, %f1;\n" + apart,
      "add.f32 %f7, %f10, %f10; mul.f32 %f4, %f1, %f7;\n" + apart,
      "mul.f32 %f4, %f1, 0f40490FDB; @%p1 bra L; mov.f32 %f4, %f3; bar.sync 0; L:\n" + kAdd,
      kMul + "membar.gl;" + kAdd,
      kMul + "div.rn.f32 %f7, %f3, %f1; st.global.f32 [%rd1+104], %f7;" + kAdd,
      kMul + "@%p1 st.global.b32 [%rd1+104], %r1;" + kAdd,
      kMul + "bar.sync 0;" + kAdd,
      kMul + "bra L; L:" + kAdd,
      "mul.f32 %f4, %f1, 0fBF800000;\n" + kAdd,
      "mul.f64 %d4, %d1, 0d4010000000000000; sub.f64 %d5, %d3, %d4; st.global.f64 [%rd1], %d5;",
      "mul.f64 %d4, %d1, %d10; sub.f64 %d5, %d4, %d3; st.global.f64 [%rd1], %d5;",
      "mul.f16 %h4, %h1, %h2; sub.f16 %h5, %h3, %h4; st.global.b16 [%rd1], %h5;",
  };
  for (const std::string& body : cases) {
    const FloatMatch found = match_settled(body);
    EXPECT_TRUE(found == FloatMatch::kSameCode || found == FloatMatch::kSameCount) << body;
  }
}

TEST_F(FloatCodeTest, AStrangersCodeIsReadWithinItsBounds) {
  const Cubin code = assemble(kernel(kMul + kAdd));
  std::mt19937 random(7);
  for (int round = 0; round < 3000; ++round) {
    Cubin mutant = code;
    if (round % 3 == 0) mutant.resize(random() % mutant.size());
    for (int i = 0; i < 4 && !mutant.empty(); ++i) {
      // The headers of the file and of its sections, mostly.
      const std::size_t end = mutant.size(), begin = round % 2 == 0 && end > 1200 ? end - 1200 : 0;
      mutant[begin + random() % (end - begin)] = static_cast<std::byte>(random());
    }
    match_float_code({mutant, "k"}, {code, "k"});
  }
}

class WhyBitsMayDifferTest : public FloatCodeTest {
 protected:
  /// The program's code is made of `native`, the forms of `text`.
  std::string why(const std::string& native, const std::string& text, int major = 9) {
    const auto module = ptx::parse(text);
    EXPECT_TRUE(module) << module.error().message;
    const auto injected = injector::inject(**module, {.settle_sums = true, .most_registers = {}});
    EXPECT_TRUE(injected);
    const injector::KernelForms& forms = injected->kernels.front();
    EXPECT_FALSE(forms.worker.empty());
    const Cubin made = assemble(injected->ptx, major);
    return why_bits_may_differ(forms, forms.worker, assemble(native, major), made, made);
  }
};

TEST_F(WhyBitsMayDifferTest, CodeThatFusesAsItsFormsDoHasThem) {
  EXPECT_EQ(why(kernel(kMul + kAdd), kernel(kMul + kAdd)), "");
  const std::string alone = kernel("mov.f32 %f4, %f1;\n" + kAdd);
  EXPECT_EQ(why(alone, alone), "");
}

TEST_F(WhyBitsMayDifferTest, CodeThatFusesOtherwiseHasNone) {
  // As with `nvcc -Xptxas -fmad=false`.
  const std::string reason =
      why(kernel(kMul + "add.rn.f32 %f5, %f4, %f3;" + kStore), kernel(kMul + kAdd));
  EXPECT_NE(reason.find("machine code has it otherwise"), std::string::npos) << reason;
}

TEST_F(WhyBitsMayDifferTest, CodeForAnotherArchitectureIsComparedToo) {
  const std::string text = kernel("add.rn.f32 %f5, %f1, %f3;" + kStore);
  EXPECT_EQ(why(text, text, 10), "");
  const std::string other = kernel("mul.rn.f32 %f5, %f1, %f3;" + kStore);
  EXPECT_NE(why(other, text, 10).find("another text"), std::string::npos);
}

TEST_F(WhyBitsMayDifferTest, FormsWhoseSumsAreOpenAreComparedThemselves) {
  const std::string text = kernel("div.full.f32 %f4, %f1, %f2;\n" + kAdd);
  EXPECT_EQ(why(text, text), "");
}

/// ptxas splits the code at what the profile form adds for a generic address, and then fuses no
/// more what it fused in the kernel.
TEST_F(WhyBitsMayDifferTest, OnlyFormsOfASettledTextFuseAsTheKernelDoes) {
  const std::string text =
      kernel(kMul + "ld.f32 %f7, [%rd1+60]; st.global.f32 [%rd1+104], %f7;\n" + kAdd);
  const Cubin native = assemble(text);
  const auto module = ptx::parse(text);
  ASSERT_TRUE(module);
  const auto match_profile = [&](bool settles) {
    const auto injected =
        injector::inject(**module, {.profile = true, .settle_sums = settles, .most_registers = {}});
    EXPECT_TRUE(injected);
    const Cubin forms = assemble(injected->ptx);
    return match_float_code({native, "k"}, {forms, injected->kernels.front().profile});
  };
  EXPECT_EQ(match_profile(false), FloatMatch::kDiffers);
  EXPECT_EQ(match_profile(true), FloatMatch::kSameCount);
}

/// The settled kernels of a file against their own machine code: none may be lost.
void expect_kept(const std::string& path,
                 const std::function<Cubin(const std::string&)>& assemble) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  const auto module = ptx::parse(text.str());
  ASSERT_TRUE(module) << module.error().message;
  const auto injected = injector::inject(**module, {.settle_sums = true, .most_registers = {}});
  ASSERT_TRUE(injected) << injected.error().message;
  const bool any = std::ranges::any_of(injected->kernels, [](const injector::KernelForms& kernel) {
    return !kernel.analysis.may_fuse.empty();
  });
  if (!any) return;
  const Cubin native = assemble(text.str()), forms = assemble(injected->ptx);
  for (const injector::KernelForms& kernel : injected->kernels) {
    for (const std::string& form : {kernel.worker, kernel.slice}) {
      if (form.empty()) continue;
      EXPECT_EQ(why_bits_may_differ(kernel, form, native, forms, forms), "") << form;
    }
  }
}

TEST_F(FloatCodeTest, KernelsOfFilesKeepTheirForms) {
  for (const char* folder : {SLATE_GOLDEN "/kernels", SLATE_PTX}) {
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      if (entry.path().extension() != ".ptx") continue;
      SCOPED_TRACE(entry.path());
      expect_kept(entry.path(), [&](const std::string& ptx) { return assemble(ptx); });
    }
  }
}

}  // namespace
}  // namespace slate::daemon
