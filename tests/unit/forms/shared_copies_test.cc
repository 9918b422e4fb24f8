// Which kernels get two copies of their shared memory, and which the compact form besides.
#include "injector/forms/shared_copies.h"

#include <gtest/gtest.h>

#include <string>

#include "injector/forms/inject.h"

namespace slate::injector {
namespace {

struct Kernel {
  std::string body;
  std::string variables = ".shared .align 4 .b8 words[64];\n";
  std::string before = {};
};

std::unique_ptr<const ptx::Module> parse(const Kernel& kernel) {
  auto module = ptx::parse(
      ".version 8.8\n.target sm_90\n.address_size 64\n" + kernel.before +
      ".visible .entry k(.param .u64 a, .param .u32 n)\n{\n"
      ".reg .pred %p<9>; .reg .b32 %r<30>; .reg .b64 %d<9>;\n" +
      kernel.variables + "mov.u32 %r1, %tid.x; ld.param.u32 %r2, [n]; setp.ge.u32 %p2, %r2, 7;\n" +
      kernel.body + "\nret;\n}\n");
  EXPECT_TRUE(module) << module.error().message;
  return std::move(*module);
}

bool has_copies(const Kernel& kernel) {
  const auto module = parse(kernel);
  const ModuleAnalysis analysis = analyse(*module);
  EXPECT_TRUE(analysis.entries.back().worker.legal());
  return SharedCopies::plan(*module, analysis.entries.back()).has_value();
}

const std::string kUse = "st.shared.u32 [words+8], %r1; bar.sync 0;\n";

TEST(SharedCopiesTest, ABarrierOnEveryWayIsNeeded) {
  EXPECT_TRUE(has_copies({.body = kUse}));
  EXPECT_TRUE(has_copies({.body = kUse + "@%p2 bra OVER;\nst.shared.u32 [words], %r1;\nOVER:"}));
  EXPECT_FALSE(has_copies({.body = "st.shared.u32 [words], %r1;"}));
  EXPECT_FALSE(has_copies({.body = "@%p2 bra OVER;\n" + kUse + "OVER:"}));
  EXPECT_FALSE(has_copies({.body = "@%p2 ret;\n" + kUse}));
  EXPECT_FALSE(has_copies({.body = "st.shared.u32 [words], %r1; @%p2 bar.sync 0;"}));
  EXPECT_FALSE(has_copies({.body = "st.shared.u32 [words], %r1; bar.sync 1, 64;"}));
}

TEST(SharedCopiesTest, MoreThanOneBarrierSeparatesWarpsInAnyCase) {
  EXPECT_FALSE(has_copies({.body = kUse + "bar.sync 0;"}));
  EXPECT_FALSE(has_copies({.body = "mov.u32 %r3, 0;\n"
                                   "LOOP: bar.sync 0;\nadd.u32 %r3, %r3, 1;\n"
                                   "setp.lt.u32 %p3, %r3, %r2; @%p3 bra LOOP;\n"}));
}

TEST(SharedCopiesTest, SharedMemoryMustBeTheKernelsOwn) {
  EXPECT_FALSE(has_copies({.body = "bar.sync 0;", .variables = "", .before = ""})) << "none";
  EXPECT_FALSE(has_copies({.body = kUse + "st.shared.u32 [others], %r1;",
                           .before = ".shared .align 4 .b8 others[64];\n"}));
  EXPECT_FALSE(has_copies({.body = kUse + "st.shared.u32 [dynamic], %r1;",
                           .before = ".extern .shared .align 4 .b8 dynamic[];\n"}));
  EXPECT_FALSE(has_copies({.body = kUse + "{ call.uni f; }", .before = ".func f()\n{\nret;\n}\n"}));
}

TEST(SharedCopiesTest, AddressesMayBeMovedAndNamedInBrackets) {
  EXPECT_TRUE(has_copies({.body = kUse + "mov.u32 %r3, words; mov.u64 %d1, words;"}));
  EXPECT_FALSE(has_copies({.body = kUse + "add.u32 %r3, %r1, words;"}));
  EXPECT_FALSE(has_copies({.body = kUse + "mov.u32 %r3, words+4;"}));
}

TEST(SharedCopiesTest, AreNotMadeOfMuch) {
  const auto array = [](std::uint64_t bytes) {
    return ".shared .align 16 .b8 words[" + std::to_string(bytes) + "];\n";
  };
  EXPECT_TRUE(has_copies({.body = kUse, .variables = array(SharedCopies::kMostBytes)}));
  EXPECT_FALSE(has_copies({.body = kUse, .variables = array(SharedCopies::kMostBytes + 16)}));
}

TEST(SharedCopiesTest, VariablesKeepTheirPlacesAndAlignments) {
  const auto module = parse({.body = kUse + "st.shared.u32 [more+4], %r1;",
                             .variables = ".shared .align 4 .b8 words[20];\n"
                                          ".shared .align 16 .b8 more[40];\n"});
  const auto injected = inject(*module, {.slice = false, .most_registers = {}});
  ASSERT_TRUE(injected);
  const std::string& text = injected->ptx;
  EXPECT_NE(text.find(".shared .align 16 .b8 __slate_copies[160];"), std::string::npos);
  EXPECT_NE(text.find("st.shared.u32 [%__slate_copy+8], %r1;"), std::string::npos);
  EXPECT_NE(text.find("st.shared.u32 [%__slate_copy+36], %r1;"), std::string::npos);
}

InjectedModule inject_with(std::uint64_t bytes, InjectOptions options) {
  const auto module = parse(
      {.body = kUse, .variables = ".shared .align 4 .b8 words[" + std::to_string(bytes) + "];\n"});
  auto injected = inject(*module, options);
  EXPECT_TRUE(injected);
  for (KernelForms& kernel : injected->kernels) kernel.analysis.name = {};
  return std::move(*injected);
}

TEST(SharedCopiesTest, WhereTheyMayCostBlocksThereIsACompactForm) {
  const InjectedModule small = inject_with(SharedCopies::kFreeBytes, {.most_registers = {}});
  EXPECT_EQ(small.kernels[0].compact_worker, "");
  const InjectedModule large = inject_with(SharedCopies::kFreeBytes + 4, {.most_registers = {}});
  EXPECT_EQ(large.kernels[0].compact_worker, "k__slate_compact");
  const auto module = ptx::parse(large.ptx);
  ASSERT_TRUE(module);
  const auto shared_bytes = [&](std::string_view entry) {
    std::uint64_t bytes = 0;
    for (const auto& variable : (*module)->find_entry(entry)->variables) {
      if (variable.space == ptx::Space::kShared) bytes += variable.bytes;
    }
    return bytes;
  };
  EXPECT_EQ(shared_bytes("k__slate_compact"), SharedCopies::kFreeBytes + 4 + 64);
  EXPECT_EQ(shared_bytes("k__slate_worker"), 2 * (SharedCopies::kFreeBytes + 4) + 64);
}

TEST(SharedCopiesTest, TheLeanLoopHasOne) {
  const RegisterLimit lean{.most = 32}, limited{.most = 32, .lean = false};
  EXPECT_EQ(inject_with(64, {.most_registers = {{"k", lean}}}).ptx.find("__slate_copies"),
            std::string::npos);
  const std::string text = inject_with(64, {.most_registers = {{"k", limited}}}).ptx;
  EXPECT_NE(text.find("__slate_copies"), std::string::npos);
  EXPECT_NE(text.find(".maxnreg 32"), std::string::npos);
}

}  // namespace
}  // namespace slate::injector
