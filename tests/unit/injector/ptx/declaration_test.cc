#include <gtest/gtest.h>

#include "dump.h"

namespace slate::ptx {
namespace {

std::string declared(const std::string& text) {
  std::string out = dump_of(kHeader + text);
  if (out.ends_with('\n')) out.pop_back();
  return out;
}

struct DeclarationCase {
  const char* text;
  const char* dump;
};

TEST(DeclarationTest, VariablesHaveSpaceTypeSizeAndAlignment) {
  const DeclarationCase cases[] = {
      {".global .u32 x;", "global u32 x align 4 bytes 4"},
      {".visible .global .align 16 .b8 x[3];", "visible global b8 x[3] align 16 bytes 3"},
      {".global .align 8 .v4 .f32 x[2][3];", "global v4 f32 x[6] align 8 bytes 96"},
      {".global .v2 .f64 x;", "global v2 f64 x align 16 bytes 16"},
      {".extern .shared .align 16 .b8 s[];", "extern shared b8 s[0] align 16 bytes 0"},
      {".weak .const .b64 x;", "visible const b64 x align 8 bytes 8"},
      {".common .global .u8 x;", "visible global u8 x align 1 bytes 1"},
      {".const[2] .f32 x;", "const f32 x align 4 bytes 4"},
      {".global .attribute(.managed) .align 4 .u32 x;", "managed global u32 x align 4 bytes 4"},
      {".global .attribute(.unified(1,2)) .u32 x;", "global u32 x align 4 bytes 4"},
      {".global .u32 a, b[2], c = 5;",
       "global u32 a align 4 bytes 4\nglobal u32 b[2] align 4 bytes 8\n"
       "global u32 c align 4 bytes 4 = 05000000"},
      {".global .texref t;", "global texref t align 1 bytes 0"},
      {".global .samplerref s = { addr_mode_0 = clamp_to_border, filter_mode = nearest };",
       "global samplerref s align 1 bytes 0"},
      {".global .u8 x[2*3+1];", "global u8 x[7] align 1 bytes 7"},
  };
  for (const DeclarationCase& one : cases) EXPECT_EQ(declared(one.text), one.dump) << one.text;
}

TEST(DeclarationTest, InitialValuesBecomeBytes) {
  const DeclarationCase cases[] = {
      {".global .u8 x[] = {1, 2, 0xff};", "global u8 x[3] align 1 bytes 3 = 0102ff"},
      {".global .s16 x = -2;", "global s16 x align 2 bytes 2 = feff"},
      {".global .u32 x[4] = {1, 2};", "global u32 x[4] align 4 bytes 16 = 0100000002000000"},
      {".global .u8 x[2][3] = {{1}, {2, 3}};", "global u8 x[6] align 1 bytes 6 = 0100000203"},
      {".global .u8 x[2][2] = {1, 2, 3, 4};", "global u8 x[4] align 1 bytes 4 = 01020304"},
      {".global .u8 x[][2] = {{1, 2}, {3}};", "global u8 x[4] align 1 bytes 4 = 010203"},
      {".global .v2 .u8 x = {1, 2};", "global v2 u8 x align 2 bytes 2 = 0102"},
      {".global .v2 .u8 x[2] = {{1, 2}, {3, 4}};", "global v2 u8 x[2] align 2 bytes 4 = 01020304"},
      {".global .f32 x[3] = {0f3F800000, 1.0, 1};",
       "global f32 x[3] align 4 bytes 12 = 0000803f0000803f0000803f"},
      {".global .f64 x[2] = {0d3FF0000000000000, -1};",
       "global f64 x[2] align 8 bytes 16 = 000000000000f03f000000000000f0bf"},
      {".global .b32 x = 0f7FC00001;", "global b32 x align 4 bytes 4 = 0100c07f"},
      {".global .u64 x = 0xfedcba9876543210;", "global u64 x align 8 bytes 8 = 1032547698badcfe"},
      {".global .u32 x = (1 << 4) | 3;", "global u32 x align 4 bytes 4 = 13000000"},
      {".global .u32 x = WARP_SZ;", "global u32 x align 4 bytes 4 = 20000000"},
  };
  for (const DeclarationCase& one : cases) EXPECT_EQ(declared(one.text), one.dump) << one.text;
}

TEST(DeclarationTest, AddressesBecomeFixups) {
  const DeclarationCase cases[] = {
      {".global .u64 x[3] = {7, y, generic(z)+8};",
       "global u64 x[3] align 8 bytes 24 = 070000000000000000000000000000000000000000000000 "
       "address@8:8y+0 generic@16:8z+8"},
      {".global .u64 x = y-4;", "global u64 x align 8 bytes 8 = 0000000000000000 address@0:8y-4"},
      {".global .u64 x = generic(y+16);",
       "global u64 x align 8 bytes 8 = 0000000000000000 generic@0:8y+16"},
      {".global .u8 x[2] = {0xFF(y), 0xFF00(generic(y)+1)};",
       "global u8 x[2] align 1 bytes 2 = 0000 address@0:1y+0 generic@1:1y+1>>8"},
  };
  for (const DeclarationCase& one : cases) EXPECT_EQ(declared(one.text), one.dump) << one.text;
}

TEST(DeclarationTest, FunctionsHaveParametersAndDirectives) {
  const DeclarationCase cases[] = {
      {".extern .func g;", "extern func g"},
      {".func (.param .b32 r) g(.param .align 8 .b8 a[24], .param .b64 b);",
       "func g\n  return param b32 r align 4 bytes 4\n"
       "  given param b8 a[24] align 8 bytes 24\n  given param b64 b align 8 bytes 8"},
      {".func (.reg .u32 r) g(.reg .f32 a);",
       "func g\n  return reg u32 r align 4 bytes 4\n  given reg f32 a align 4 bytes 4"},
      {".entry k(.param .u64 .ptr .global .align 16 p, .param .u32 n);",
       "entry k\n  given param u64 p align 8 bytes 8\n  given param u32 n align 4 bytes 4"},
      {".visible .entry k() .maxntid 256, 2, 1 .minnctapersm 2 .maxnreg 40 {}",
       "visible entry k .maxntid(256,2,1) .minnctapersm(2) .maxnreg(40) {\n}"},
      {".entry k .reqntid 32 .explicitcluster .reqnctapercluster 2,1,1 {}",
       "entry k .reqntid(32) .explicitcluster() .reqnctapercluster(2,1,1) {\n}"},
      {".entry k() .pragma \"enable_smem_spilling\"; {}", "entry k .pragma() {\n}"},
      {".weak .func g() .noreturn;", "visible func g .noreturn()"},
      {".func .attribute(.unified(1,2)) g();", "func g"},
      {".extern .func printf(.param .b64 f, .param .b8 rest[]);",
       "extern func printf\n  given param b64 f align 8 bytes 8\n"
       "  given param b8 rest[0] align 1 bytes 0"},
  };
  for (const DeclarationCase& one : cases) EXPECT_EQ(declared(one.text), one.dump) << one.text;
}

TEST(DeclarationTest, MistakesAreNamedWithTheirLine) {
  const DeclarationCase cases[] = {
      {".global .u32;", "line 4: expected a name at `;`"},
      {".global x;", "line 4: declaration without a type at `x`"},
      {".global .u32 x", "line 4: expected `;` after a declaration, found the end of the text"},
      {"\n.global .what x;", "line 5: unknown directive in a declaration at `.what`"},
      {".global .u8 x[2] = {1,2,3};", "line 4: more initial values than elements at `3`"},
      {".global .u8 x[2] = {{{1}}};", "line 4: braces deeper than the array at `1`"},
      {".global .u32 x[] = {1.5};",
       "line 4: floating-point value for an integer variable before this at `}`"},
      {".global .u8 x[-1];", "line 4: array bound out of range before this at `]`"},
      {".global .u8 x[1099511627776][2];", "line 4: array too large before this at `;`"},
      {".global .u32 r<4>;",
       "line 4: a range of variables outside of a function before this, "
       "found the end of the text"},
      {".what 5", "line 4: unknown directive at `.what`"},
      {".entry k(.param .u32 a",
       "line 4: expected `)` after the parameters, found the end of the text"},
      {"x", "line 4: expected a directive at `x`"},
  };
  for (const DeclarationCase& one : cases) EXPECT_EQ(declared(one.text), one.dump) << one.text;
}

TEST(DeclarationTest, SparseInitialValuesCannotGrowTheModule) {
  EXPECT_NE(declared(".global .u8 x[2][1000000000] = {{1}, {2}};").find("too sparse"),
            std::string::npos);
}

TEST(DeclarationTest, DimensionsAreBounded) {
  std::string many = ".global .u8 x";
  for (int i = 0; i < 100000; ++i) many += "[1]";
  EXPECT_NE(declared(many + ";").find("too many dimensions"), std::string::npos);
}

}  // namespace
}  // namespace slate::ptx
