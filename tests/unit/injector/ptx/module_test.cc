#include "injector/ptx/module.h"

#include <gtest/gtest.h>

#include "dump.h"

namespace slate::ptx {
namespace {

TEST(ModuleTest, HeaderIsRead) {
  const auto module = parse("// x\n.version 8.10\n.target sm_100a, debug\n.address_size 64\n");
  ASSERT_TRUE(module);
  EXPECT_EQ((*module)->version_major, 8u);
  EXPECT_EQ((*module)->version_minor, 10u);
  EXPECT_EQ((*module)->target, "sm_100a");
  EXPECT_EQ((*module)->sm, 100u);
  EXPECT_EQ((*module)->address_size, 64u);
}

TEST(ModuleTest, HeaderIsRequired) {
  for (const char* text : {"", ".version 9.0", ".target sm_90", ".version 9\n.target sm_90",
                           ".version x\n.target sm_90", ".version 9.0 .target 90"}) {
    const auto module = parse(text);
    ASSERT_FALSE(module) << text;
    EXPECT_EQ(module.error().code, ErrorCode::kInvalidPtx);
    EXPECT_TRUE(module.error().message.starts_with("line ")) << module.error().message;
  }
}

TEST(ModuleTest, ZeroBytesAtTheEndAreKeptButNotRead) {
  const auto module = parse(kHeader + std::string(3, '\0'));
  ASSERT_TRUE(module);
  EXPECT_EQ((*module)->text.size(), kHeader.size() + 3);
}

TEST(ModuleTest, ModuleNamesMayBeUsedBeforeTheirDeclaration) {
  EXPECT_EQ(dump_of(kHeader + ".entry f() { mov.u64 a, g; mov.u64 a, x; call g; }"
                              ".global .u32 x; .func g() { }"),
            "global u32 x align 4 bytes 4\n"
            "entry f {\n  mov.u64 a#?, g#f1;\n  mov.u64 a#?, x#g0;\n  call g#f1;\n}\n"
            "func g {\n}\n");
}

TEST(ModuleTest, DefinitionIsPreferredToDeclaration) {
  const auto module = parse(kHeader +
                            ".func g(); .entry f() { call g; } .func g() { ret; } .func g();"
                            ".entry e(); .entry e() { ret; } .entry e(); .entry d(); .entry d();");
  ASSERT_TRUE(module);
  EXPECT_EQ((*module)->find_entry("e"), &(*module)->functions[5]);
  EXPECT_EQ((*module)->find_entry("d"), &(*module)->functions[7]);
  EXPECT_EQ((*module)->functions[1].instructions[0].operands[0].index, 2u);
  EXPECT_EQ((*module)->find_function("g"), &(*module)->functions[2]);
  EXPECT_EQ((*module)->find_entry("g"), nullptr);
  EXPECT_EQ((*module)->find_entry("f"), &(*module)->functions[1]);
}

TEST(ModuleTest, AliasesAreSeenThrough) {
  const auto module =
      parse(kHeader + ".func c1(); .func c2() { ret; } .alias c1, c2; .entry f() { call c1; }");
  ASSERT_TRUE(module) << module.error().message;
  EXPECT_EQ((*module)->functions[2].instructions[0].operands[0].index, 1u);
  EXPECT_EQ((*module)->find_function("c1")->name, "c2");
}

TEST(ModuleTest, DebugSectionsAreSkipped) {
  EXPECT_EQ(dump_of(kHeader + ".file 1 \"a b\", 5, 7\n.section .debug_info\n{\n.b32 .debug_abbrev\n"
                              ".b64 $L__x-$L__y\n.b8 1,2,3\n$L__z:\n}\n.global .u8 x;"),
            "global u8 x align 1 bytes 1\n");
}

TEST(ModuleTest, TypesHaveNamesAndSizes) {
  EXPECT_EQ(parse_type("bf16x2"), Type::kBf16x2);
  EXPECT_EQ(parse_type(""), Type::kNone);
  EXPECT_EQ(parse_type("u33"), Type::kNone);
  for (int i = 1; i <= static_cast<int>(Type::kSurfref); ++i) {
    const auto type = static_cast<Type>(i);
    EXPECT_EQ(parse_type(type_name(type)), type);
  }
  EXPECT_EQ(type_bytes(Type::kPred), 0u);
  EXPECT_EQ(type_bytes(Type::kB128), 16u);
}

TEST(ModuleTest, InstructionTypesCountFromTheEnd) {
  const auto module = parse(kHeader + ".entry f() { cvt.rni.sat.s32.f32 a, b; }");
  ASSERT_TRUE(module);
  const Instruction& convert = (*module)->functions[0].instructions[0];
  EXPECT_EQ(convert.type(), Type::kF32);
  EXPECT_EQ(convert.type(1), Type::kS32);
  EXPECT_EQ(convert.type(2), Type::kNone);
  EXPECT_TRUE(convert.has("sat"));
  EXPECT_FALSE(convert.has("s3"));
}

TEST(ModuleTest, VariablesAreThereWithoutBodies) {
  const std::string text =
      ".version 7.0\n.target sm_70\n.func f;\n.global .b8 a[4] = {1, 2};\n.entry k()\n{\n{ x; "
      "}\n}\n"
      ".const .b32 b;\n";
  const auto module = parse(text, {.bodies = false});
  ASSERT_TRUE(module) << module.error().message;
  EXPECT_EQ((*module)->variables.size(), 2u);
  EXPECT_EQ((*module)->variables[0].bytes, 4u);
  EXPECT_EQ((*module)->find_entry("k"), nullptr);
  EXPECT_FALSE(parse(text + ".entry l()\n{\n", {.bodies = false})) << "a body without end";
}

}  // namespace
}  // namespace slate::ptx
