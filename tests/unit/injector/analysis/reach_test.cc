// Which memory a kernel reaches, by which pointers, and what else it does. One small kernel a rule.
#include "injector/analysis/reach.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "injector/analysis/analysis.h"

namespace slate::injector {
namespace {

constexpr const char* kReachHeader = ".version 8.8\n.target sm_90\n.address_size 64\n";

Reach reach_in(const std::string& text) {
  const auto module = ptx::parse(kReachHeader + text);
  EXPECT_TRUE(module) << module.error().message;
  return analyse(**module).entries.back().reach;
}

/// Of a kernel with these instructions. a, b, c and i are in %a, %b, %c and %i.
Reach reach_of(const std::string& body, const std::string& before = "") {
  return reach_in(before +
                  ".entry k(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n,\n"
                  " .param .align 8 .b8 s[40], .param .u64 m)\n{\n"
                  ".reg .pred %p<9>; .reg .b32 %r<30>; .reg .b32 %i; .reg .b64 %d<20>;\n"
                  ".reg .b64 %a, %b, %c; .reg .f32 %f<9>;\n"
                  ".shared .align 16 .b8 tile[256]; .local .align 8 .b8 depot[64];\n"
                  "ld.param.u64 %a, [a]; ld.param.u64 %b, [b]; ld.param.u64 %c, [c];\n"
                  "mov.u32 %i, %tid.x;\n" +
                  body + "\nret;\n}\n");
}

/// "parameter 0 r; parameter 1 rw": sorted, with what is done there.
std::string text_of(const Reach& reach) {
  EXPECT_TRUE(reach.complete);
  std::vector<std::string> all;
  for (const ReachedMemory& memory : reach.memory) {
    std::string text = memory.description() + ' ';
    if (memory.read != 0) text += 'r';
    if (memory.written != 0) text += 'w';
    if (memory.atomic != 0) text += 'a';
    if (memory.ordered != 0) text += 'o';
    if (memory.hinted != 0) text += 'h';
    if (memory.is_constant) text += 'c';
    all.push_back(text);
  }
  std::ranges::sort(all);
  std::string joined;
  for (const std::string& one : all) joined += (joined.empty() ? "" : "; ") + one;
  return joined;
}

std::string memory_of(const std::string& body, const std::string& before = "") {
  return text_of(reach_of(body, before));
}

const std::string kUnknown = "memory by a pointer that is not known ";

TEST(ReachTest, AnAddressLeadsWhereItsPointerLeads) {
  EXPECT_EQ(memory_of("mul.wide.s32 %d1, %i, 4; add.s64 %d2, %a, %d1; ld.global.f32 %f1, [%d2];\n"
                      "add.s64 %d3, %b, %d1; st.global.f32 [%d3+8], %f1;"),
            "parameter 0 r; parameter 1 w");
}

TEST(ReachTest, ConversionsOfAddressesKeepTheirPointer) {
  EXPECT_EQ(memory_of("cvta.to.global.u64 %d1, %a; cvta.global.u64 %d2, %d1; mov.b64 %d3, %d2;\n"
                      "ld.f32 %f1, [%d3];"),
            "parameter 0 r");
}

TEST(ReachTest, AChoiceOfPointersLeadsToBoth) {
  EXPECT_EQ(memory_of("selp.b64 %d1, %a, %b, %p1; st.global.f32 [%d1], %f1;"),
            "parameter 0 w; parameter 1 w");
  EXPECT_EQ(memory_of("mov.u64 %d1, %a; @%p1 mov.u64 %d1, %b; st.global.f32 [%d1], %f1;"),
            "parameter 0 w; parameter 1 w");
  EXPECT_EQ(memory_of("mov.u64 %d1, %a; @%p1 bra L; mov.u64 %d1, %b; L: ld.u32 %r1, [%d1];"),
            "parameter 0 r; parameter 1 r");
}

TEST(ReachTest, NullLeadsNowhere) {
  EXPECT_EQ(memory_of("selp.b64 %d1, %a, 0, %p1; st.global.f32 [%d1], %f1;"), "parameter 0 w");
}

TEST(ReachTest, AnotherNumberMayBeAnAddress) {
  EXPECT_EQ(memory_of("cvt.u64.u32 %d2, %i; selp.b64 %d1, %a, %d2, %p1; st.global.f32 [%d1], %f1;"),
            kUnknown + "w; parameter 0 w");
  EXPECT_EQ(memory_of("mov.b64 %d2, 0; add.s64 %d2, %d2, %a; st.global.f32 [%d2], %f1;"),
            "parameter 0 w");
  EXPECT_EQ(memory_of("mov.b64 %d2, 0;\nL: add.s64 %d1, %a, %d2; ld.global.f32 %f1, [%d1];\n"
                      "add.s64 %d2, %d2, 4; @%p1 bra L;"),
            "parameter 0 r");
}

TEST(ReachTest, APointerFromMemoryIsNotKnown) {
  const Reach reach = reach_of(
      "ld.global.u64 %d1, [%a]; mul.wide.u32 %d2, %i, 4;\n"
      "add.s64 %d3, %d1, %d2; st.global.f32 [%d3], %f1;");
  EXPECT_EQ(text_of(reach), kUnknown + "w; parameter 0 r");
  EXPECT_FALSE(reach.from_arguments());
}

TEST(ReachTest, AnIndexFromMemoryIsANumber) {
  const Reach reach = reach_of(
      "ld.global.u32 %r1, [%a]; mul.wide.u32 %d2, %r1, 4;\n"
      "add.s64 %d3, %b, %d2; st.global.f32 [%d3], %f1;\n"
      "ld.global.u64 %d4, [%a]; shl.b64 %d5, %d4, 3; add.s64 %d6, %d5, %c;"
      "ld.global.f32 %f1, [%d6]; cvt.s64.s32 %d7, %r1;\n"
      "add.s64 %d8, %d7, %c; ld.global.u8 %r3, [%d8];");
  EXPECT_EQ(text_of(reach), "parameter 0 r; parameter 1 w; parameter 2 r");
  EXPECT_TRUE(reach.from_arguments());
}

TEST(ReachTest, SixtyFourBitsFromMemoryMayBeAPointer) {
  EXPECT_EQ(memory_of("ld.global.u64 %d1, [%a]; add.s64 %d2, %b, %d1; st.global.u8 [%d2], %r1;"),
            kUnknown + "w; parameter 0 r");
}

TEST(ReachTest, ALoopThatAdvancesAPointerStaysInItsMemory) {
  EXPECT_EQ(memory_of("mov.u64 %d1, %a;\nL: ld.global.f32 %f1, [%d1]; add.s64 %d1, %d1, 4;\n"
                      "setp.lt.u32 %p1, %r1, %i; @%p1 bra L;"),
            "parameter 0 r");
  EXPECT_EQ(memory_of("ld.param.u64 %d2, [m]; mov.u64 %d1, %a;\n"
                      "L: ld.global.f32 %f1, [%d1]; add.s64 %d1, %d1, %d2;\n@%p1 bra L;"),
            "a sum of parameter 0 and parameter 5 r; parameter 0 r");
}

TEST(ReachTest, PointersInStructsArePointersByTheirPlace) {
  EXPECT_EQ(memory_of("ld.param.u64 %d1, [s+8]; ld.global.u32 %r1, [%d1];\n"
                      "ld.param.v2.u64 {%d2, %d3}, [s+16]; st.global.u32 [%d3], %r1;"),
            "parameter 4 + 24 w; parameter 4 + 8 r");
  EXPECT_EQ(memory_of("mov.b64 %d1, s; add.s64 %d2, %d1, 8; ld.param.u64 %d3, [%d2+8];\n"
                      "st.global.u32 [%d3], %r1;"),
            "parameter 4 + 16 w");
  EXPECT_EQ(memory_of("mov.b64 %d1, s; cvta.param.u64 %d2, %d1; ld.u64 %d3, [%d2+24];\n"
                      "st.global.u32 [%d3], %r1;"),
            "parameter 4 + 24 w");
}

TEST(ReachTest, AChosenPointerOfAStructMayBeAnyOfThem) {
  const Reach reach = reach_of(
      "mul.wide.u32 %d2, %i, 8; mov.b64 %d1, s; add.s64 %d3, %d1, %d2;\n"
      "ld.param.u64 %d4, [%d3]; st.global.u32 [%d4], %r1;");
  EXPECT_EQ(text_of(reach), "a pointer somewhere in parameter 4 w");
  EXPECT_EQ(reach.memory[0].words[0].offset, 32u);
  EXPECT_EQ(reach.memory[0].words[0].extent, 40u);
}

TEST(ReachTest, HalvesOfAPointerMakeThePointerAgain) {
  EXPECT_EQ(memory_of("mov.b64 {%r1, %r2}, %a; add.cc.u32 %r3, %r1, 16; addc.u32 %r4, %r2, 0;\n"
                      "mov.b64 %d1, {%r3, %r4}; ld.global.u32 %r5, [%d1];"),
            "parameter 0 r");
  EXPECT_EQ(memory_of("ld.param.v2.u32 {%r1, %r2}, [b]; mov.b64 %d1, {%r1, %r2};\n"
                      "ld.global.u32 %r5, [%d1];"),
            "parameter 1 r");
  EXPECT_EQ(memory_of("cvt.u32.u64 %r1, %c; shr.u64 %d1, %c, 32; cvt.u32.u64 %r2, %d1;\n"
                      "cvt.u64.u32 %d2, %r2; shl.b64 %d3, %d2, 32; cvt.u64.u32 %d4, %r1;\n"
                      "or.b64 %d5, %d3, %d4; ld.global.u32 %r5, [%d5];"),
            "parameter 2 r");
}

TEST(ReachTest, HalvesOfTwoPointersMakeNoneThatIsKnown) {
  const std::string halves = "mov.b64 {%r1, %r2}, %a; mov.b64 {%r3, %r4}, %b;\n";
  const std::string load = "ld.global.u32 %r5, [%d1];";
  EXPECT_EQ(memory_of(halves + "mov.b64 %d1, {%r1, %r4};" + load), kUnknown + "r");
  EXPECT_EQ(memory_of(halves + "mov.b64 %d1, {%r2, %r1};" + load), kUnknown + "r");
  EXPECT_EQ(memory_of("ld.global.v2.u32 {%r1, %r2}, [%a]; mov.b64 %d1, {%r1, %r2};" + load),
            kUnknown + "r; parameter 0 r");
  EXPECT_EQ(memory_of("ld.global.u32 %r1, [%a]; cvt.u64.u32 %d2, %r1; mov.b64 {%r3, %r4}, %b;\n"
                      "bfi.b64 %d1, %d2, %d2, 32, 32;" +
                      load),
            kUnknown + "r; parameter 0 r");
}

TEST(ReachTest, APointerBesideAnotherIsASumOfBoth) {
  EXPECT_EQ(memory_of("sub.s64 %d1, %b, %a; add.s64 %d2, %a, %d1; ld.global.u32 %r1, [%d2];"),
            "a sum of parameter 0 and parameter 1 r");
  EXPECT_EQ(memory_of("mov.u64 %d1, v; add.s64 %d2, %a, %d1; ld.global.u32 %r1, [%d2];",
                      ".global .u32 v;\n"),
            "variable v r");
  EXPECT_EQ(reach_of("mov.u64 %d1, v; add.s64 %d2, %a, %d1; ld.global.u32 %r1, [%d2];",
                     ".global .u32 v;\n")
                .memory[0]
                .words.size(),
            1u)
      << "only if it is no pointer";
  EXPECT_EQ(memory_of("mov.u64 %d1, v; mov.u64 %d3, w; add.s64 %d2, %d3, %d1;\n"
                      "ld.global.u32 %r1, [%d2];",
                      ".global .u32 v;\n.global .u32 w;\n"),
            kUnknown + "r");
}

TEST(ReachTest, AddressesInSharedAndLocalMemoryAreFollowed) {
  EXPECT_EQ(memory_of("st.shared.u64 [tile], %a; ld.shared.u64 %d1, [tile+8];\n"
                      "st.global.u32 [%d1], %r1;"),
            "parameter 0 w");
  EXPECT_EQ(memory_of("mov.u64 %d2, depot; cvta.local.u64 %d3, %d2; st.u64 [%d3], %a;\n"
                      "st.local.u64 [%d2+8], %b; ld.local.u64 %d1, [%d2]; st.u32 [%d1], %r1;"),
            "parameter 0 w; parameter 1 w");
  EXPECT_EQ(memory_of("st.shared.v2.u32 [tile], {%r1, %i}; mov.b64 {%r1, %r2}, %a;\n"
                      "ld.shared.u64 %d1, [tile]; st.global.u32 [%d1], %r1;"),
            kUnknown + "w");
  EXPECT_EQ(memory_of("mov.u32 %r1, tile; cp.async.ca.shared.global [%r1], [%a], 8;\n"
                      "ld.shared.u64 %d1, [tile]; st.global.u32 [%d1], %r1;"),
            kUnknown + "w; parameter 0 r");
}

TEST(ReachTest, MemoryThatEndsWithTheBlockIsNotReached) {
  EXPECT_EQ(memory_of("mov.u64 %d2, depot; cvta.local.u64 %d3, %d2; st.u32 [%d3], %r1;\n"
                      "mov.u64 %d4, tile; cvta.shared.u64 %d5, %d4; atom.add.u32 %r2, [%d5], 1;\n"
                      "red.shared.add.u32 [tile], 1; ld.local.u32 %r1, [%d2];\n"
                      "alloca.u64 %d6, 16; st.u32 [%d6], %r1;"),
            "");
}

TEST(ReachTest, PointersPassThroughFunctions) {
  const std::string function =
      ".func (.param .b64 r) next(.param .b64 p, .param .b32 i)\n{\n"
      ".reg .b64 %d<9>; .reg .b32 %r<9>; ld.param.u64 %d1, [p]; ld.param.u32 %r1, [i];\n"
      "st.u32 [%d1], %r1; mul.wide.u32 %d2, %r1, 4; add.s64 %d3, %d1, %d2;\n"
      "st.param.b64 [r], %d3; ret;\n}\n";
  const auto call = [](const std::string& pointer) {
    return "{ .param .b64 p0; st.param.b64 [p0], " + pointer +
           "; .param .b32 p1; st.param.b32 [p1], %i; .param .b64 q;\n"
           "call.uni (q), next, (p0, p1); ld.param.b64 %d5, [q]; }\n";
  };
  EXPECT_EQ(memory_of(call("%b") + "ld.u32 %r1, [%d5];", function), "parameter 1 rw");
  EXPECT_EQ(memory_of(call("%b") + call("%c") + "ld.u32 %r1, [%a];", function),
            "parameter 0 r; parameter 1 w; parameter 2 w");
}

TEST(ReachTest, FunctionsWithRegistersAndRecursionAreFollowed) {
  EXPECT_EQ(
      memory_of("call (%d1), pick, (%a, %b); st.u32 [%d1], %r1;",
                ".func (.reg .b64 r) pick(.reg .b64 p, .reg .b64 q) { mov.b64 r, q; ret; }\n"),
      "parameter 1 w");
  EXPECT_EQ(memory_of("call put, (%a, %b);",
                      ".func put(.reg .b64 p, .reg .b64 q)\n"
                      "{ mov.b64 p, q; st.u32 [p], 1; ret; }\n"),
            "parameter 0 w; parameter 1 w");
  EXPECT_EQ(memory_of("call down, (%a, %b);",
                      ".func down(.reg .b64 p, .reg .b64 q)\n"
                      "{ .reg .pred %p1; st.u32 [p], 1; @%p1 call down, (q, p); ret; }\n"),
            "parameter 0 w; parameter 1 w");
}

TEST(ReachTest, CodeThatIsNotThereMayDoAnything) {
  const Reach reach = reach_of("call (%d1), strange, (%a); st.u32 [%d1], 1;",
                               ".extern .func (.reg .b64 r) strange(.reg .b64 p);\n");
  EXPECT_NE(reach.line(Effect::kCallsUnknown), 0u);
  EXPECT_FALSE(reach.from_arguments());
  EXPECT_EQ(text_of(reach), kUnknown + "w");
}

TEST(ReachTest, CallsThroughAPointerGetAnyPointer) {
  const Reach reach = reach_of(
      "mov.u64 %d1, f; { P: .callprototype _(.param .b64 _);\n"
      ".param .b64 p0; st.param.b64 [p0], %a; call %d1, (p0), P; }",
      ".func f(.param .b64 p) { .reg .b64 %d1; ld.param.u64 %d1, [p];\n"
      "st.u32 [%d1], 1; ret; }\n");
  EXPECT_NE(reach.line(Effect::kCallsPointer), 0u);
  EXPECT_EQ(text_of(reach), kUnknown + "w");
}

TEST(ReachTest, VariablesAreReachedByName) {
  const std::string variables = ".global .u32 v[4];\n.const .u32 w[4];\n";
  EXPECT_EQ(memory_of("ld.global.u32 %r1, [v+4]; mov.u64 %d1, v; cvta.global.u64 %d2, %d1;\n"
                      "st.u32 [%d2], %r1; ld.const.u32 %r2, [w+4];",
                      variables),
            "variable v rw; variable w rc");
}

TEST(ReachTest, ANumberInTheTextMayBeAnAddress) {
  EXPECT_EQ(memory_of("mov.u64 %d1, 139637976727552; st.global.u32 [%d1], %r1;"), kUnknown + "w");
  EXPECT_EQ(memory_of("mov.u64 %d1, 139637976727552; selp.b64 %d2, %a, %d1, %p1;\n"
                      "st.global.u32 [%d2], %r1;"),
            kUnknown + "w");
  EXPECT_EQ(memory_of("add.s64 %d1, %a, -4294967296; st.global.u32 [%d1], %r1;"), "parameter 0 w");
}

TEST(ReachTest, EveryKindOfAccessIsSeen) {
  for (const auto& [text, wanted] : std::initializer_list<std::pair<const char*, const char*>>{
           {"ldu.global.u32 %r1, [%a];", "parameter 0 r"},
           {"ld.global.nc.v4.u32 {%r1, %r2, %r3, %r4}, [%a];", "parameter 0 r"},
           {"atom.global.add.u32 %r1, [%a], 1;", "parameter 0 rwa"},
           {"red.add.u32 [%a], 1;", "parameter 0 rwa"},
           {"ld.volatile.global.u32 %r1, [%a];", "parameter 0 ro"},
           {"st.release.gpu.global.u32 [%a], 1;", "parameter 0 wo"},
           {"prefetch.global.L2 [%a];", "parameter 0 h"},
           {"discard.global.L2 [%a], 128;", "parameter 0 w"},
           {"cp.async.ca.shared.global [%r1], [%a], 4;", "parameter 0 r"},
           {"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%a], 16, "
            "[%r2];",
            "parameter 0 r"},
           {"cp.async.bulk.global.shared::cta.bulk_group [%a], [%r1], 16;", "parameter 0 w"},
           {"cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%a], [%r1], 16;",
            "parameter 0 rwa"},
           {"cp.async.bulk.prefetch.L2.global [%a], 16;", "parameter 0 h"},
           {"cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
            "[%r1], [%a, {%r2}], [%r3];",
            "memory by a pointer that is not known r"},
           {"cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [%a, {%r2}], [%r1];",
            "memory by a pointer that is not known w"},
           {"cp.async.commit_group; cp.async.wait_all;", ""},
           {"wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {%r1, %r2, %r3, %r4, %r5, %r6, %r7, "
            "%r8}, [%a], %r9;",
            "parameter 0 r"},
           {"wmma.store.d.sync.aligned.row.m16n16k16.global.f32 [%a], {%f1, %f2, %f3, %f4, %f5, "
            "%f6, %f7, %f8}, %r9;",
            "parameter 0 w"},
           {"multimem.red.release.sys.global.add.u32 [%a], 1;", "parameter 0 rwao"},
           {"tex.1d.v4.u32.s32 {%r1, %r2, %r3, %r4}, [%a, {%r5}];",
            "the texture or surface of parameter 0 r"},
           {"suld.b.1d.u32.trap %r1, [%a, {%r5}];", "the texture or surface of parameter 0 r"},
           {"sust.b.1d.u32.trap [%a, {%r5}], %r1;", "the texture or surface of parameter 0 w"},
           {"ld.global.u32 %r1, [%d9];", "memory by a pointer that is not known r"},
           {"ld.global.u32 %r1, [1024];", "memory by a pointer that is not known r"}}) {
    EXPECT_EQ(memory_of(text), wanted) << text;
  }
}

TEST(ReachTest, EffectsAreToldWithTheirLine) {
  for (const auto& [text, effect] : std::initializer_list<std::pair<const char*, Effect>>{
           {"call vprintf, (%a, %b);", Effect::kPrints},
           {"call (%d1), malloc, (%a);", Effect::kAllocates},
           {"call cudaLaunchDevice, (%a);", Effect::kLaunches},
           {"griddepcontrol.launch_dependents;", Effect::kStartsDependents},
           {"quiver.sync %r1;", Effect::kUnknownInstruction},
           {"mov.u64 %d1, %clock64;", Effect::kReadsTime},
           {"mov.u32 %r1, %smid;", Effect::kReadsPlace},
           {"mov.u32 %r1, %envreg2;", Effect::kWaitsForGrid}}) {
    const Reach reach = reach_of(text,
                                 ".extern .func vprintf(.reg .b64 p, .reg .b64 q);\n"
                                 ".extern .func (.reg .b64 r) malloc(.reg .b64 p);\n"
                                 ".extern .func cudaLaunchDevice(.reg .b64 p);\n");
    EXPECT_EQ(reach.line(effect), 15u) << text;
    for (std::size_t i = 0; i < reach.effects.size(); ++i) {
      EXPECT_EQ(reach.effects[i] != 0, static_cast<Effect>(i) == effect) << text << i;
    }
  }
}

TEST(ReachTest, ValuesByChanceMayBeWrittenButMayNotDecideWhere) {
  const std::string take = "atom.shared.add.u32 %r1, [tile], 1;\n";
  const std::string place = "mul.wide.u32 %d1, %r1, 4; add.s64 %d2, %a, %d1;\n";
  const auto by_chance = [](const std::string& body) {
    return reach_of(body).line(Effect::kChance) != 0;
  };
  EXPECT_FALSE(by_chance(take + "st.global.u32 [%a], %r1;"));
  EXPECT_TRUE(by_chance(take + place + "st.global.u32 [%d2], 1;"));
  EXPECT_FALSE(by_chance(take + place + "ld.global.u32 %r2, [%d2]; st.global.u32 [%b], %r2;"));
  EXPECT_TRUE(by_chance("mov.u32 %r1, %smid;\n" + place + "st.global.u32 [%d2], 1;"));
  EXPECT_FALSE(by_chance("mov.u64 %d1, %clock64; st.global.u64 [%a], %d1;"));
  EXPECT_TRUE(by_chance(take + "setp.eq.u32 %p1, %r1, 0; @%p1 st.global.u32 [%a], 1;"));
  EXPECT_TRUE(by_chance(take + "setp.eq.u32 %p1, %r1, 0; @%p1 bra L; st.global.u32 [%a], 1; L:"));
  EXPECT_TRUE(by_chance(take +
                        "st.shared.u32 [tile+4], %r1; bar.sync 0; ld.shared.u32 %r1, "
                        "[tile+4];" +
                        place + "st.global.u32 [%d2], 1;"));
}

TEST(ReachTest, CountsInSharedMemoryAreNotByChance) {
  const std::string body =
      "ld.shared.u32 %r1, [tile]; mul.wide.u32 %d1, %r1, 4; add.s64 %d2, %a, %d1;\n"
      "st.global.u32 [%d2], 1;";
  EXPECT_EQ(reach_of("red.shared.add.u32 [tile], 1;" + body).line(Effect::kChance), 0u);
  EXPECT_NE(reach_of("red.shared.add.f32 [tile], %f1;" + body).line(Effect::kChance), 0u);
  EXPECT_NE(reach_of("atom.shared.exch.b32 %r2, [tile], %i;" + body).line(Effect::kChance), 0u);
}

TEST(ReachTest, WithoutEnoughEffortItIsNotComplete) {
  const auto module = ptx::parse(std::string(kReachHeader) +
                                 ".entry k(.param .u64 a) { .reg .b64 %d1; .reg .b32 %r1;\n"
                                 "ld.param.u64 %d1, [a]; ld.global.u32 %r1, [%d1]; ret; }\n");
  ASSERT_TRUE(module) << module.error().message;
  Effort facts_effort;
  const auto facts = collect_facts(**module, facts_effort);
  Effort effort;
  EXPECT_TRUE(find_reach(**module, 0, facts, effort).complete);
  for (const std::uint64_t most : {std::uint64_t{0}, std::uint64_t{3}, effort.steps() - 1}) {
    Effort little(most);
    const Reach reach = find_reach(**module, 0, facts, little);
    EXPECT_FALSE(reach.complete) << most;
    EXPECT_FALSE(reach.from_arguments());
  }
}

TEST(ReachTest, APointerOfTooManyOriginsIsNotKnown) {
  std::string body = "mov.u64 %d1, %a;\n";
  for (int i = 0; i < 20; ++i) {
    body += "L" + std::to_string(i) + ": ld.param.u64 %d2, [many+" + std::to_string(8 * i) +
            "]; @%p1 mov.u64 %d1, %d2;\n";
  }
  for (const int wanted : {10, 20}) {
    const auto end = body.find("L" + std::to_string(wanted) + ":");
    const Reach reach = reach_in(
        ".entry k(.param .align 8 .b8 many[160])\n"
        "{ .reg .pred %p1; .reg .b64 %a, %d<3>; ld.param.u64 %a, [many];\n" +
        body.substr(0, end) + "st.global.u32 [%d1], 1; ret; }\n");
    EXPECT_TRUE(reach.complete);
    EXPECT_EQ(reach.memory.size(), wanted == 10 ? 10u : 1u);
    EXPECT_EQ(reach.from_arguments(), wanted == 10);
  }
}

std::uint64_t steps_of(const std::string& text) {
  const auto module = ptx::parse(kReachHeader + text);
  EXPECT_TRUE(module) << module.error().message;
  Effort for_facts;
  const auto facts = collect_facts(**module, for_facts);
  Effort own;
  const auto last = static_cast<std::uint32_t>((*module)->functions.size() - 1);
  EXPECT_EQ(find_reach(**module, last, facts, own).memory.size(), 1u);
  return own.steps();
}

std::string steps_of_a_pointer(std::uint32_t n) {
  std::string text =
      ".entry k(.param .u64 a) { .reg .b64 %d<9>; .reg .b32 %r1;\n"
      "ld.param.u64 %d1, [a]; mov.u64 %d2, %d1;\n";
  for (std::uint32_t i = 0; i < n; ++i) {
    text += "L" + std::to_string(i) + ": st.global.u32 [%d2], 1; add.s64 %d2, %d2, %d1;\n";
  }
  return text + "ret; }\n";
}

/// Each hands the pointer on, and back; those that are called stand first, or last.
std::string functions_in_a_row(std::uint32_t n, bool called_first) {
  std::string text;
  for (std::uint32_t i = 0; i < n; ++i) {
    const std::uint32_t at = called_first ? i : n - 1 - i;
    text += ".func (.reg .b64 r) f" + std::to_string(at) + "(.reg .b64 p) { ";
    text += at == 0 ? "st.u32 [p], 1; mov.b64 r, p;"
                    : "call (r), f" + std::to_string(at - 1) + ", (p);";
    text += " ret; }\n";
  }
  return text + ".entry k(.param .u64 a) { .reg .b64 %d<9>; ld.param.u64 %d1, [a];\ncall (%d2), f" +
         std::to_string(n - 1) + ", (%d1); st.u32 [%d2], 1; ret; }\n";
}

TEST(ReachTest, TwiceTheTextCostsTwiceAsMuch) {
  const auto expect_linear = [](auto&& text, const char* name) {
    const std::uint64_t once = steps_of(text(500));
    EXPECT_LE(steps_of(text(1000)), 2 * once + once / 4) << name;
  };
  expect_linear(steps_of_a_pointer, "steps");
  expect_linear([](std::uint32_t n) { return functions_in_a_row(n, true); }, "called first");
  expect_linear([](std::uint32_t n) { return functions_in_a_row(n, false); }, "called last");
}

}  // namespace
}  // namespace slate::injector
