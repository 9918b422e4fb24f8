#include <gtest/gtest.h>

#include "dump.h"
#include "injector/ptx/module.h"

namespace slate::ptx {
namespace {

struct BodyCase {
  const char* text;
  const char* dump;
};

TEST(BodyTest, OperandsOfEveryKind) {
  const BodyCase cases[] = {
      {"mov.u32 x, -5;", "mov.u32 x#?, -5;"},
      {"mov.u32 x, 2+3*4;", "mov.u32 x#?, 14;"},
      {"mov.f32 x, 0f3F800000;", "mov.f32 x#?, 0f3F800000;"},
      {"mov.f64 x, -0d3FF0000000000000;", "mov.f64 x#?, 0dBFF0000000000000;"},
      {"mov.f32 x, 1.5;", "mov.f32 x#?, 1.5;"},
      {"mov.f32 x, .5;", "mov.f32 x#?, 0.5;"},
      {"mov.u32 x, %tid.x;", "mov.u32 x#?, %tid.x;"},
      {"mov.u64 x, %clock64;", "mov.u64 x#?, %clock64;"},
      {"mov.u32 x, %envreg7;", "mov.u32 x#?, %envreg7;"},
      {"mov.u32 x, WARP_SZ;", "mov.u32 x#?, WARP_SZ;"},
      {"mov.u32 x, WARP_SZ-1;", "mov.u32 x#?, 31;"},
      {"mov.u64 x, y+8;", "mov.u64 x#?, y#?+8;"},
      {"ld.param.u64 x, [p];", "ld.param.u64 x#?, [p#p0];"},
      {"ld.param.u64 x, [p+4];", "ld.param.u64 x#?, [p#p0+4];"},
      {"ld.global.u64 x, [y+-8];", "ld.global.u64 x#?, [y#?+-8];"},
      {"ld.global.u64 x, [y-8];", "ld.global.u64 x#?, [y#?+-8];"},
      {"ld.global.u64 x, [y-8+4];", "ld.global.u64 x#?, [y#?+-4];"},
      {"ld.shared.u64 x, [4096];", "ld.shared.u64 x#?, [4096];"},
      {"ld.v4.f32 {a,b,c,_}, [y];", "ld.v4.f32 {a#?, b#?, c#?, _}, [y#?];"},
      {"setp.eq.s32 a|b, 1, 2;", "setp.eq.s32 a#?|b#?, 1, 2;"},
      {"setp.eq.s32 _|b, 1, 2;", "setp.eq.s32 _|b#?, 1, 2;"},
      {"setp.eq.and.s32 a, 1, 2, !c;", "setp.eq.and.s32 a#?, 1, 2, not c#?;"},
      {"mov.u32 x, v.x;", "mov.u32 x#?, v.x#?;"},
      {"mov.u32 x, v.g;", "mov.u32 x#?, v.y#?;"},
      {"vadd.u32.u32.s32 x, y.b3, -z.h1, w;", "vadd.u32.u32.s32 x#?, y.b3#?, not z.h#?, w#?;"},
      {"tex.2d.v4.f32.f32 {a,b,c,d}, [t, s, {x,y}];",
       "tex.2d.v4.f32.f32 {a#?, b#?, c#?, d#?}, [t#?, s#?, {x#?, y#?}];"},
      {"tex.1d.v4.f32.s32 {a,b,c,d}, [5, {x}];",
       "tex.1d.v4.f32.s32 {a#?, b#?, c#?, d#?}, [5, {x#?}];"},
      {"add .s32 x, y, z;", "add.s32 x#?, y#?, z#?;"},
      {"ret;", "ret;"},
      {"bar.sync 0, 128;", "bar.sync 0, 128;"},
      {"cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [a], [t, {x}], "
       "[m];",
       "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [a#?], "
       "[t#?, {x#?}], [m#?];"},
      {"tcgen05.ld.sync.aligned.16x256b.x1.b32 {a}, [b];",
       "tcgen05.ld.sync.aligned.16x256b.x1.b32 {a#?}, [b#?];"},
  };
  for (const BodyCase& one : cases) {
    std::string expected = one.dump;
    // The component stands before the annotation, and .h1 is dumped in its own letter.
    if (const auto at = expected.find("z.h#?"); at != std::string::npos)
      expected.insert(at + 3, 1, '1');
    EXPECT_EQ(dump_of_body(one.text), expected) << one.text;
  }
}

TEST(BodyTest, CallsOfEveryForm) {
  const BodyCase cases[] = {
      {"call g;", "call g#?;"},
      {"call.uni g, (a, 5);", "call.uni g#?, (a#?, 5);"},
      {"call (r), g, ();", "call (r#?), g#?, ();"},
      {"call.uni (r),\n g,\n (\n a,\n b\n );", "call.uni (r#?), g#?, (a#?, b#?);"},
      {"call (r), %rd1, (a), proto;", "call (r#?), %rd1#?, (a#?), proto#?;"},
      {"call %rd1, (a), list;", "call %rd1#?, (a#?), list#?;"},
  };
  for (const BodyCase& one : cases) EXPECT_EQ(dump_of_body(one.text), one.dump) << one.text;
}

TEST(BodyTest, GuardsKeepTheirSign) {
  EXPECT_EQ(dump_of_body(".reg .pred %p<2>; @%p1 ret; @!%p1 bra E; E: exit;"),
            "@%p1#v0 ret; @not %p1#v0 bra E#l0; exit;");
}

TEST(BodyTest, RangeMakesTheRegistersThatAreUsed) {
  const auto module =
      parse(kHeader +
            ".entry f() { .reg .b32 %r<1000000000>; mov.b32 %r7, %r999999999; mov.b32 %r7, %r0; }");
  ASSERT_TRUE(module) << module.error().message;
  const Function& function = (*module)->functions[0];
  ASSERT_EQ(function.variables.size(), 3u);
  EXPECT_EQ(function.variables[0].name, "%r7");
  EXPECT_EQ(function.variables[0].type, Type::kB32);
  EXPECT_EQ(function.variables[1].name, "%r999999999");
  EXPECT_EQ(function.variables[2].name, "%r0");
}

TEST(BodyTest, NumbersOutsideOfARangeAreOtherNames) {
  EXPECT_EQ(dump_of_body(".reg .b32 %r<5>; mov.b32 %r4, %r5; mov.b32 %r04, %r;"),
            "mov.b32 %r4#v0, %r5#?; mov.b32 %r04#?, %r#?;");
}

TEST(BodyTest, InnerScopesHideOuterOnes) {
  EXPECT_EQ(dump_of_body(".reg .b32 a, %r<3>; mov.b32 a, %r1;"
                         "{ .reg .b32 a, %r<2>; mov.b32 a, %r1; mov.b32 a, %r2;"
                         "  { .reg .b32 %r1; mov.b32 %r1, %r0; } }"
                         "mov.b32 a, %r1;"),
            "mov.b32 a#v0, %r1#v1; mov.b32 a#v2, %r1#v3; mov.b32 a#v2, %r2#v4; "
            "mov.b32 %r1#v5, %r0#v6; mov.b32 a#v0, %r1#v1;");
}

TEST(BodyTest, LabelsBelongToTheirScope) {
  EXPECT_EQ(dump_of_body("bra L; { bra L; L: bra M; } { L: bra L; } L: bra L; M: ret;"),
            "bra L#l2; bra L#l0; bra M#l3; bra L#l1; bra L#l2; ret;");
}

TEST(BodyTest, LabelsNameTheNextInstruction) {
  const auto module = parse(kHeader + ".entry f() { A: B: ret; ret; C: }");
  ASSERT_TRUE(module);
  const auto& labels = (*module)->functions[0].labels;
  EXPECT_EQ(labels[0].target, 0u);
  EXPECT_EQ(labels[1].target, 0u);
  EXPECT_EQ(labels[2].target, 2u);
}

TEST(BodyTest, TargetsAndPrototypesAreLabels) {
  EXPECT_EQ(
      dump_of(kHeader + ".entry f() { .reg .u32 i; T: .branchtargets A, B; A: brx.idx i, T; B: "
                        "P: .callprototype (.param .b32 _) _ (.param .b64 _) .noreturn; "
                        "call (x), i, (y), P; }"),
      "prototype _ .noreturn()\n"
      "  return param b32 _ align 4 bytes 4\n"
      "  given param b64 _ align 8 bytes 8\n"
      "entry f {\n"
      "  reg u32 i align 4 bytes 4\n"
      "  T -> 0 A B\n"
      "  A -> 0\n"
      "  B -> 1\n"
      "  P -> 1 prototype 0\n"
      "  brx.idx i#v0, T#l0;\n"
      "  call (x#?), i#v0, (y#?), P#l3;\n"
      "}\n");
}

TEST(BodyTest, DirectivesBetweenInstructionsAreNoInstructions) {
  EXPECT_EQ(dump_of_body(
                ".loc 1 2 3\n.pragma \"nounroll\";\n.loc 1 4 5, function_name $L__i+8, "
                "inlined_at 1 2 3\n;ret; .shared .align 8 .b8 s[4]; .local .b64 l; mov.u64 s, l;"),
            "ret; mov.u64 s#v0, l#v1;");
}

TEST(BodyTest, SpansPointAtTheText) {
  const auto module = parse(kHeader + ".entry f(.param .u32 a) { L: @!p ld.global.u32 x, [y+4]; }");
  ASSERT_TRUE(module);
  const Function& function = (*module)->functions[0];
  const auto text = [&](Span span) {
    return (*module)->text.substr(span.begin, span.end - span.begin);
  };
  EXPECT_EQ(text(function.span), ".entry f(.param .u32 a) { L: @!p ld.global.u32 x, [y+4]; }");
  EXPECT_EQ(text(function.parameters_span), ".param .u32 a");
  EXPECT_EQ(text(function.parameters[0].span), ".param .u32 a");
  EXPECT_EQ(text(function.body), "{ L: @!p ld.global.u32 x, [y+4]; }");
  EXPECT_EQ(text(function.labels[0].span), "L:");
  const Instruction& load = function.instructions[0];
  EXPECT_EQ(load.line, 4u);
  EXPECT_EQ(text(load.span), "@!p ld.global.u32 x, [y+4];");
  EXPECT_EQ(text(load.opcode_span), "ld.global.u32");
  EXPECT_EQ(text(load.guard->span), "!p");
  EXPECT_EQ(text(load.operands[1].span), "[y+4]");
  EXPECT_EQ(text(load.operands[1].parts[0].span), "y");
}

TEST(BodyTest, MistakesAreNamed) {
  const BodyCase cases[] = {
      {"ret", "line 4: expected an operand at `}`"},
      {"ret a b;", "line 4: expected `;` after an instruction at `b`"},
      {"add.s32 a, , b;", "line 4: expected an operand at `,`"},
      {"mov.u32 a, v.q;", "line 4: unknown component of a vector at `v.q`"},
      {"ld.u32 a, [b;", "line 4: expected `]` after an address at `;`"},
      {".reg .b32 %r<2>; mov.b32 a, %r1+4;",
       "line 4: a register plus something outside of brackets at `+`"},
      {".reg .b32 %r<99999999999>;", "line 4: bad number of registers at `99999999999`"},
      {".reg .b32 %r<1>; .reg .b32 %r<2>;",
       "line 4: a range of registers declared twice before this at `}`"},
      {".what;", "line 4: unknown directive in a body at `.what`"},
      {"5;", "line 4: expected a statement at `5`"},
      {"@5 ret;", "line 4: expected a predicate after @ at `5`"},
      {"@%tid.x ret;", "line 4: expected a predicate before this at `ret`"},
      {"@WARP_SZ ret;", "line 4: expected a predicate before this at `ret`"},
      {"{", "line 4: expected `}`, found the end of the text"},
      {"} }", "line 4: expected a directive at `}`"},
  };
  for (const BodyCase& one : cases) EXPECT_EQ(dump_of_body(one.text), one.dump) << one.text;
}

TEST(BodyTest, NestingIsBounded) {
  EXPECT_NE(dump_of_body(std::string(100000, '{')).find("scopes nested too deep"),
            std::string::npos);
  EXPECT_NE(dump_of_body("mov.u32 " + std::string(100000, '{')).find("operand nested too deep"),
            std::string::npos);
  std::string pairs = "mov.u32 a";
  for (int i = 0; i < 100000; ++i) pairs += "|a";
  EXPECT_NE(dump_of_body(pairs + ";").find("operand nested too deep"), std::string::npos);
}

}  // namespace
}  // namespace slate::ptx
