// Decoding: what is said of an entry, register allocation, and PTX that is not understood.
#include <gtest/gtest.h>

#include "injector/ptx/module.h"
#include "tests/unit/sim_core/harness.h"

namespace slate::sim::test {
namespace {

Result<std::shared_ptr<const Program>> decode(const std::string& text, bool strict = false) {
  auto parsed = ptx::parse(text);
  if (!parsed) return std::unexpected(parsed.error());
  const std::shared_ptr<const ptx::Module> module = std::move(*parsed);
  for (const ptx::Function& function : module->functions) {
    if (function.is_entry) return Program::decode(module, function, {}, strict);
  }
  return fail(ErrorCode::kInvalidValue, "no entry");
}

TEST(ProgramTest, InfoDescribesTheEntry) {
  const auto program = decode(R"(.version 9.0
.target sm_90
.address_size 64
.shared .align 16 .b8 tile[1024];
.shared .align 4 .b8 unused[4096];
.visible .entry k(.param .u32 a, .param .u64 b, .param .align 4 .b8 c[12]) .maxntid 64, 2, 1
{
  .reg .b32 %r<4>; .local .align 8 .b8 depot[20];
  ld.shared.u32 %r1, [tile];
  ret;
})");
  ASSERT_TRUE(program.has_value()) << program.error().message;
  const device::FunctionInfo& info = (*program)->info();
  EXPECT_EQ(info.name, "k");
  EXPECT_EQ(info.max_threads_per_block, 128u);
  EXPECT_EQ(info.static_shared_bytes, 1024u);
  EXPECT_EQ(info.max_dynamic_shared_bytes, 48u * 1024 - 1024);
  EXPECT_EQ(info.local_bytes, 32u);
  EXPECT_EQ(info.ptx_version, 90u);
  EXPECT_EQ(info.binary_version, 90u);
  ASSERT_EQ(info.parameters.size(), 3u);
  EXPECT_EQ(info.parameters[1].offset, 8u);
  EXPECT_EQ(info.parameters[2].offset, 16u);
  EXPECT_EQ(info.parameters[2].size, 12u);
}

TEST(ProgramTest, AnUnknownInstructionFaultsOnlyWhenReached) {
  const std::string body = R"(
    setp.lt.u32 %p1, %r1, 64; @%p1 bra DONE;
    frobnicate.u32 %r2, %r3;
  DONE:)";
  Machine machine;
  EXPECT_TRUE(machine.run(entry(body)).ok());
  const Outcome outcome = machine.run(entry(body), {.block = {96, 1, 1}});
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.error->code, ErrorCode::kIllegalInstruction);
  EXPECT_NE(outcome.message().find("thread (64,0,0), line 17: frobnicate.u32"), std::string::npos)
      << outcome.message();
  const auto program = decode(entry(body));
  ASSERT_TRUE(program.has_value());
  ASSERT_EQ((*program)->unknown_instructions().size(), 1u);
  EXPECT_EQ((*program)->unknown_instructions()[0].text, "frobnicate.u32");
  EXPECT_FALSE(decode(entry(body), true).has_value());
}

TEST(ProgramTest, AModifierThatNobodyReadsIsNotUnderstood) {
  // Each of these would run as another operation if the strange word were passed over.
  for (const char* const body :
       {"ld.frob.u32 %r2, [%rd1];", "st.global.frob.u32 [%rd1], %r1;",
        "atom.global.frob.u32 %r2, [%rd1], %r1;", "shfl.sync.frob.b32 %r2, %r1, 1, 0, -1;",
        "vote.sync.frob.b32 %r2, %p1, -1;", "redux.sync.frob.s32 %r2, %r1, -1;",
        "barrier.frob.sync 0;", "cvta.frob.u64 %rd2, %rd1;", "mov.frob.u32 %r2, %r1;"}) {
    EXPECT_FALSE(decode(entry(body), true).has_value()) << body;
  }
}

TEST(ProgramTest, RegistersOfTheWrongSizeAreNotUnderstood) {
  // Each of these would write or read beyond its register.
  for (const char* const body :
       {"add.u64 %rd6, %rd1, %r1;", "add.u64 %r2, %rd1, %rd2;", "ld.global.u64 %r2, [%rd1];",
        "st.global.u64 [%rd1], %r1;", "mov.u64 %r2, %rd1;", "setp.eq.u32 %r2, %r1, 0;",
        "@%r1 add.u32 %r2, %r1, 1;", "shfl.sync.up.b32 %rd2, %r1, 1, 0, 0xffffffff;",
        "atom.global.add.u64 %r1, [%rd1], %rd2;", "vote.sync.ballot.b32 %r2, %r1, 1;"}) {
    EXPECT_FALSE(decode(entry(body), true).has_value()) << body;
  }
}

TEST(ProgramTest, AFrameIsKeptWithinReason) {
  // Each warp would need 16 MiB for it, of the host and not of the device's memory.
  const auto refused = decode(entry(".param .b8 q[520000];\nst.param.u32 [q], %r1;"));
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::kOutOfResources);
  EXPECT_TRUE(decode(entry(".param .b8 q[4096];\nst.param.u32 [q], %r1;")).has_value());
}

TEST(ProgramTest, RegistersThatLiveAcrossALoopKeepTheirPlace) {
  // %r10..%r19 are set before the loop and read after it; the loop uses many others.
  std::string body = "mov.u32 %r2, 0;\n";
  for (int i = 10; i < 20; ++i) {
    body += "add.u32 %r" + std::to_string(i) + ", %r1, " + std::to_string(i) + ";\n";
  }
  body += "LOOP:\n";
  for (int i = 20; i < 40; ++i) {
    body += "mul.lo.u32 %r" + std::to_string(i) + ", %r2, " + std::to_string(i) + ";\n";
  }
  body += "add.u32 %r2, %r2, 1; setp.le.u32 %p1, %r2, %r1; @%p1 bra LOOP;\nmov.u32 %r3, 0;\n";
  for (int i = 10; i < 20; ++i) body += "add.u32 %r3, %r3, %r" + std::to_string(i) + ";\n";
  body += "st.global.u32 [%rd4], %r3;";
  Machine machine;
  ASSERT_TRUE(machine.run(entry(body)).ok());
  for (std::uint32_t i = 0; i < 32; ++i) EXPECT_EQ(machine.words()[i], 10 * i + 145);
}

TEST(ProgramTest, LogicOfThreeMayGiveAPredicateToo) {
  Machine machine;
  // Bits of %r1 and 6; whether there is any, together with %p1.
  const std::string body = R"(
    mov.u32 %r2, 6; mov.u32 %r3, -1; setp.lt.u32 %p1, %r1, 4; setp.eq.u32 %p5, %r1, 3;
    lop3.and.b32 %r4|%p2, %r1, %r2, %r3, 0x80, %p1;
    lop3.or.b32 _|%p3, %r1, %r2, %r3, 0x80, !%p1;
    mov.pred %p4, %p5; @!%p5 lop3.xor.b32 %r3|%p4, %r1, %r2, %r3, 0x80, %p1;
    selp.u32 %r5, 1, 0, %p2; @%p3 add.u32 %r5, %r5, 2; @%p4 add.u32 %r5, %r5, 4;
    st.global.u32 [%rd4], %r4; st.global.u32 [%rd5], %r5;)";
  const Outcome outcome = machine.run(entry(body));
  ASSERT_TRUE(outcome.ok()) << outcome.message();
  for (std::uint32_t i = 0; i < 32; ++i) {
    const bool any = (i & 6) != 0;
    const bool p = i < 4;
    EXPECT_EQ(machine.words()[i], i & 6);
    EXPECT_EQ(machine.words_b()[i],
              (any && p ? 1u : 0u) + (any || !p ? 2u : 0u) + (i == 3 || any != p ? 4u : 0u))
        << i;
  }
}

TEST(ProgramTest, AGuardedDefinitionLeavesTheOldValueAlive) {
  Machine machine;
  const std::string body = R"(
    setp.lt.u32 %p1, %r1, 16;
    mov.u32 %r2, 5;
    add.u32 %r3, %r1, 1; add.u32 %r4, %r3, 1; add.u32 %r5, %r4, 1;
    @%p1 mov.u32 %r2, 6;
    add.u32 %r2, %r2, %r5;
    st.global.u32 [%rd4], %r2;)";
  ASSERT_TRUE(machine.run(entry(body)).ok());
  for (std::uint32_t i = 0; i < 32; ++i) EXPECT_EQ(machine.words()[i], i + 3 + (i < 16 ? 6 : 5));
}

TEST(ProgramTest, AKernelsOwnLimitOfRegistersHolds) {
  std::string body = ".reg .b32 %x<100>;\n";
  for (int i = 0; i < 100; ++i) body += "add.u32 %x" + std::to_string(i) + ", %r1, 1;\n";
  for (int i = 1; i < 100; ++i) body += "add.u32 %x0, %x0, %x" + std::to_string(i) + ";\n";
  body += "st.global.u32 [%rd4], %x0;";
  const std::string text = entry(body);
  EXPECT_EQ((*decode(text))->info().registers, 64u) << "for blocks of 1024 threads";
  for (const auto& [limit, registers] : {std::pair(40, 40u), std::pair(8, 24u)}) {
    std::string limited = text;
    limited.insert(limited.find('{'), ".maxnreg " + std::to_string(limit) + "\n");
    EXPECT_EQ((*decode(limited))->info().registers, registers);
  }
}

TEST(ProgramTest, ThousandsOfRegistersNeedFewPlaces) {
  std::string body = "mov.u32 %r2, %r1;\n.reg .b32 %x<4000>;\nmov.u32 %x0, %r1;\n";
  for (int i = 1; i < 4000; ++i) {
    body += "add.u32 %x" + std::to_string(i) + ", %x" + std::to_string(i - 1) + ", 1;\n";
  }
  body += "st.global.u32 [%rd4], %x3999;";
  const auto program = decode(entry(body));
  ASSERT_TRUE(program.has_value());
  EXPECT_LE((*program)->info().registers, 32u);
  Machine machine;
  const Outcome outcome = machine.run(entry(body));
  ASSERT_TRUE(outcome.ok());
  EXPECT_EQ(machine.words()[7], 7u + 3999);
  EXPECT_GE(outcome.thread_instructions, 32u * 4000);
}

}  // namespace
}  // namespace slate::sim::test
