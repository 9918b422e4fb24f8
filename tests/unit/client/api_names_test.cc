// Which names a user may use for what is in PTX.
#include <gtest/gtest.h>

#include "client/api/names.h"

namespace slate::api {
namespace {

constexpr const char* kPtx = R"(// .version 1.0 is only a comment
/* .entry nothing( */
.version 9.0
.target sm_90
.address_size 64
.file 1 "a .entry b.cu"
.global .align 4 .f32 factor = 0f3F800000;
.visible .const .align 4 .b8 _ZN2ns5tableE[16] = {1, 2, 3};
.func (.param .b32 r) helper(.param .b64 .ptr .global .align 4 p) { .reg .b32 %r1; ret; }
.visible .entry plain(
  .param .u64 .ptr .global .align 4 plain_param_0
) { .shared .align 4 .b8 tile[64]; ret; }
.visible .entry _Z5scaleIfLi4EEvPT_fi(.param .u64 p) { ret; }
.entry _ZN2ns3addEPf(.param .u64 p) { ret; }
.entry _ZN2ns3addEPd(.param .u64 p) { ret; }
)";

std::string found(std::string_view wanted, const WrittenNames& written = {}) {
  const auto name = resolve(wanted, names_in(kPtx).kernels, written);
  return name ? *name
              : (name.error().ambiguous ? "ambiguous: " : "missing: ") + name.error().message;
}

TEST(ApiNamesTest, PtxIsToldByItsFirstWord) {
  EXPECT_TRUE(is_ptx(kPtx));
  EXPECT_TRUE(is_ptx(".version 9.0"));
  EXPECT_FALSE(is_ptx("// .version 9.0\n__global__ void f() {}"));
  EXPECT_FALSE(is_ptx("/* .version"));
  EXPECT_FALSE(is_ptx(".versions"));
  EXPECT_FALSE(is_ptx(""));
}

TEST(ApiNamesTest, KernelsAndVariablesOfTheModuleAreFoundAndNothingElse) {
  const PtxNames names = names_in(kPtx);
  EXPECT_EQ(names.kernels, (std::vector<std::string>{"plain", "_Z5scaleIfLi4EEvPT_fi",
                                                     "_ZN2ns3addEPf", "_ZN2ns3addEPd"}));
  EXPECT_EQ(names.variables, (std::vector<std::string>{"factor", "_ZN2ns5tableE"}));
}

TEST(ApiNamesTest, BrokenPtxGivesNamesWithoutReadingBeyondItsEnd) {
  for (const char* text : {"\"", "/*", "//", ".entry", ".entry \"", "}{)(", ".global .align 4"}) {
    EXPECT_TRUE(names_in(text).kernels.empty()) << text;
  }
}

TEST(ApiNamesTest, BlanksCountOnlyBetweenWords) {
  EXPECT_EQ(spelling(" scale< float , 4 > "), "scale<float,4>");
  EXPECT_EQ(spelling("::ns :: scale<unsigned  int>"), "ns::scale<unsigned int>");
}

TEST(ApiNamesTest, AKernelIsFoundAsWrittenAndAsMangled) {
  EXPECT_EQ(found("plain"), "plain");
  EXPECT_EQ(found("_ZN2ns3addEPf"), "_ZN2ns3addEPf");
  EXPECT_EQ(found("scale<float, 4>"), "_Z5scaleIfLi4EEvPT_fi");
  EXPECT_EQ(found("scale<float,4>"), "_Z5scaleIfLi4EEvPT_fi");
  EXPECT_EQ(found("ns::add(float*)"), "_ZN2ns3addEPf");
}

TEST(ApiNamesTest, TheCompilersOwnTableCountsFirst) {
  const WrittenNames written{{"sum<real, 2>", "plain"}, {"gone", "not_in_the_ptx"}};
  EXPECT_EQ(found("sum<real,2>", written), "plain");
  EXPECT_EQ(found("gone", written).substr(0, 7), "missing");
}

TEST(ApiNamesTest, OverloadsAreAmbiguousByNameAlone) {
  EXPECT_EQ(found("ns::add"), "ambiguous: \"ns::add\" may be any of _ZN2ns3addEPf, _ZN2ns3addEPd");
}

TEST(ApiNamesTest, WhatIsMissingIsAnsweredWithWhatThereIs) {
  const std::string text = found("scale<double>");
  EXPECT_NE(text.find("scale<float, 4> (_Z5scaleIfLi4EEvPT_fi)"), text.npos) << text;
  EXPECT_NE(text.find("plain,"), text.npos) << text;
  EXPECT_EQ(found("add").substr(0, 7), "missing");
}

TEST(ApiNamesTest, VariablesAreFoundByTheSameRules) {
  const auto name = resolve("ns::table", names_in(kPtx).variables, {});
  ASSERT_TRUE(name.has_value());
  EXPECT_EQ(*name, "_ZN2ns5tableE");
}

}  // namespace
}  // namespace slate::api
