// printf and assert in kernels.
#include <gtest/gtest.h>

#include "tests/unit/sim_core/harness.h"

namespace slate::sim::test {
namespace {

const char* const kPrintf =
    ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 l);\n";

std::string bytes_of(const std::string& text) {
  std::string out;
  for (const char c : text) out += std::to_string(static_cast<int>(c)) + ",";
  return out + "0";
}

std::string variable(const std::string& name, const std::string& text) {
  return ".global .align 1 .b8 " + name + "[" + std::to_string(text.size() + 1) + "] = {" +
         bytes_of(text) + "};\n";
}

const char* const kCall = R"(
    mov.u64 %rd20, format; cvta.global.u64 %rd21, %rd20;
    mov.u64 %rd22, depot; cvta.local.u64 %rd23, %rd22;
    { .param .b64 p0; .param .b64 p1; .param .b32 q0;
      st.param.b64 [p0], %rd21; st.param.b64 [p1], %rd23;
      call.uni (q0), vprintf, (p0, p1);
      ld.param.b32 %r30, [q0]; }
)";

TEST(SystemTest, PrintfFormatsEveryKindOfArgument) {
  Machine machine;
  const std::string before = std::string(kPrintf) +
                             variable("format", "%d|%5u|%-4x|%lld|%.2f|%s|%c|%%|%*d|%08X\n") +
                             variable("word", "text");
  const std::string body = std::string(R"(
    .local .align 8 .b8 depot[64];
    setp.ne.u32 %p1, %r1, 2; @%p1 exit;
    mov.u64 %rd6, depot;
    mov.s32 %r2, -7; st.local.u32 [%rd6], %r2;
    st.local.u32 [%rd6+4], 42; st.local.u32 [%rd6+8], 255;
    mov.s64 %rd7, -5000000000; st.local.u64 [%rd6+16], %rd7;
    mov.f64 %fd1, 0d400921FB54442D18; st.local.f64 [%rd6+24], %fd1;
    mov.u64 %rd8, word; cvta.global.u64 %rd9, %rd8; st.local.u64 [%rd6+32], %rd9;
    st.local.u32 [%rd6+40], 65; st.local.u32 [%rd6+44], 6; st.local.u32 [%rd6+48], 9;
    st.local.u32 [%rd6+52], 48879;
)") + kCall + "st.global.u32 [%rd1], %r30;";
  const Outcome outcome = machine.run(entry(body, before));
  ASSERT_TRUE(outcome.ok()) << outcome.message();
  EXPECT_EQ(outcome.printed, "-7|   42|ff  |-5000000000|3.14|text|A|%|     9|0000BEEF\n");
  EXPECT_EQ(machine.words()[0], 10u) << "number of arguments";
}

TEST(SystemTest, LanesPrintInOrder) {
  Machine machine;
  const std::string before = std::string(kPrintf) + variable("format", "%d ");
  const std::string body = std::string(R"(
    .local .align 8 .b8 depot[8];
    setp.ge.u32 %p1, %r1, 4; @%p1 exit;
    st.local.u32 [depot], %r1;
)") + kCall;
  const Outcome outcome = machine.run(entry(body, before));
  ASSERT_TRUE(outcome.ok()) << outcome.message();
  EXPECT_EQ(outcome.printed, "0 1 2 3 ");
}

TEST(SystemTest, AWildStringFaults) {
  Machine machine;
  const std::string before = std::string(kPrintf) + variable("format", "%s");
  const std::string body = std::string(R"(
    .local .align 8 .b8 depot[8];
    mov.u64 %rd6, 64; st.local.u64 [depot], %rd6;
)") + kCall;
  const Outcome outcome = machine.run(entry(body, before));
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.error->code, ErrorCode::kIllegalAddress);
}

TEST(SystemTest, HugeWidthsAreRefusedNotAllocated) {
  Machine machine;
  const std::string before = std::string(kPrintf) + variable("format", "a%2000000000dz");
  const std::string body = std::string(".local .align 8 .b8 depot[8];\n") + kCall;
  const Outcome outcome = machine.run(entry(body, before));
  ASSERT_TRUE(outcome.ok()) << outcome.message();
  EXPECT_LT(outcome.printed.size(), 100u);
}

TEST(SystemTest, AssertStopsTheKernelInCudasWords) {
  Machine machine;
  const std::string before =
      ".extern .func __assertfail(.param .b64 m, .param .b64 f, .param .b32 l, .param .b64 n, "
      ".param .b64 s);\n" +
      variable("message", "x > 0") + variable("file", "a.cu") + variable("name", "void k()");
  const std::string body = R"(
    setp.ne.u32 %p1, %r1, 3; @%p1 exit;
    mov.u64 %rd6, message; mov.u64 %rd7, file; mov.u64 %rd8, name; mov.u64 %rd9, 1;
    { .param .b64 p0; .param .b64 p1; .param .b32 p2; .param .b64 p3; .param .b64 p4;
      st.param.b64 [p0], %rd6; st.param.b64 [p1], %rd7; st.param.b32 [p2], 12;
      st.param.b64 [p3], %rd8; st.param.b64 [p4], %rd9;
      call.uni __assertfail, (p0, p1, p2, p3, p4); })";
  Shape setup;
  setup.grid = {2, 1, 1};
  const Outcome outcome = machine.run(entry(body, before), setup);
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.error->code, ErrorCode::kAssert);
  EXPECT_EQ(outcome.printed,
            "a.cu:12: void k(): block: [0,0,0], thread: [3,0,0] Assertion `x > 0` failed.\n");
}

}  // namespace
}  // namespace slate::sim::test
