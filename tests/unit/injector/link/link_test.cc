// What linking does to names, and what it refuses. That linked programs compute the right thing is
// tested with nvcc's own output in tests/e2e.
#include "injector/link/link.h"

#include <gtest/gtest.h>

#include <vector>

#include "injector/ptx/module.h"

namespace slate::ptx {
namespace {

std::string in_module(const std::string& text) {
  return ".version 8.0\n.target sm_80\n.address_size 64\n" + text;
}

Result<std::string> link_texts(const std::vector<std::string>& texts) {
  std::vector<std::string> modules;
  for (const std::string& text : texts) modules.push_back(in_module(text));
  return link(std::vector<std::string_view>(modules.begin(), modules.end()));
}

/// The linked module, which has to parse; null when it cannot be linked.
std::unique_ptr<const Module> linked(const std::vector<std::string>& texts) {
  auto text = link_texts(texts);
  if (!text) {
    ADD_FAILURE() << text.error().message;
    return nullptr;
  }
  auto module = parse(*text);
  if (!module) {
    ADD_FAILURE() << module.error().message << "\n" << *text;
    return nullptr;
  }
  return std::move(*module);
}

const std::string kCaller =
    ".extern .func (.param .b32 r) helper (.param .b32 p);\n"
    ".extern .global .align 4 .u32 counter;\n"
    ".visible .entry first() { .reg .b64 %a; .param .b32 x; .param .b32 y;\n"
    " mov.u64 %a, counter; call.uni (y), helper, (x); ret; }\n";
const std::string kCallee =
    ".visible .global .align 4 .u32 counter = 3;\n"
    ".visible .func (.param .b32 r) helper (.param .b32 p) { ret; }\n";

TEST(LinkTest, DefinitionsReplaceDeclarationsInEitherOrder) {
  for (const auto& texts : {std::vector{kCaller, kCallee}, std::vector{kCallee, kCaller}}) {
    const auto module = linked(texts);
    ASSERT_TRUE(module);
    ASSERT_EQ(module->variables.size(), 1u);
    EXPECT_FALSE(module->variables[0].is_extern);
    EXPECT_TRUE(module->find_function("helper")->has_body);
    const Function* entry = module->find_entry("first");
    ASSERT_NE(entry, nullptr);
    EXPECT_EQ(entry->instructions[0].operands[1].reference, Reference::kGlobal);
    EXPECT_EQ(entry->instructions[1].operands[1].reference, Reference::kFunction);
  }
}

TEST(LinkTest, AFunctionIsDeclaredBeforeItIsCalled) {
  const auto text = link_texts({kCaller, kCallee});
  ASSERT_TRUE(text);
  EXPECT_LT(text->find("helper (.param .b32 p) ;"), text->find(".entry first"));
  EXPECT_EQ(text->find(".extern"), text->npos);
}

TEST(LinkTest, PrivateNamesOfTwoModulesStayApart) {
  const auto user = [](int value) {
    const std::string number = std::to_string(value);
    return ".global .u32 $str = " + number + ";\n.visible .entry k" + number +
           "() { .reg .u32 %r; ld.global.u32 %r, [$str]; ret; }\n";
  };
  const auto module = linked({user(1), user(2)});
  ASSERT_TRUE(module);
  ASSERT_EQ(module->variables.size(), 2u);
  for (const int value : {1, 2}) {
    const Function* entry = module->find_entry("k" + std::to_string(value));
    const Operand& source = entry->instructions[0].operands[1];
    ASSERT_EQ(source.parts[0].reference, Reference::kGlobal);
    EXPECT_EQ(module->variables[source.parts[0].index].initial.at(0), value);
  }
}

TEST(LinkTest, APrivateNameGivesWayToAPublicOne) {
  const auto module =
      linked({".global .u32 x = 1;\n.visible .entry k() { .reg .u32 %r; "
              "ld.global.u32 %r, [x]; ret; }\n",
              ".visible .global .u32 x = 2;\n"});
  ASSERT_TRUE(module);
  EXPECT_EQ(module->find_variable("x")->initial.at(0), 2);
  const Operand& source = module->find_entry("k")->instructions[0].operands[1];
  EXPECT_EQ(module->variables[source.parts[0].index].initial.at(0), 1);
}

TEST(LinkTest, OfSeveralWeakDefinitionsTheFirstStaysAndAStrongOneWins) {
  const auto weak = linked({".weak .global .u32 x = 1;\n", ".weak .global .u32 x = 2;\n"});
  ASSERT_TRUE(weak);
  ASSERT_EQ(weak->variables.size(), 1u);
  EXPECT_EQ(weak->variables[0].initial.at(0), 1);
  const auto strong = linked({".weak .global .u32 x = 1;\n", ".visible .global .u32 x = 2;\n"});
  ASSERT_TRUE(strong);
  ASSERT_EQ(strong->variables.size(), 1u);
  EXPECT_EQ(strong->variables[0].initial.at(0), 2);
  const auto kernels = linked({".weak .entry k() { ret; }\n", ".weak .entry k() { exit; }\n"});
  ASSERT_TRUE(kernels);
  ASSERT_EQ(kernels->functions.size(), 1u);
  EXPECT_EQ(kernels->functions[0].instructions[0].opcode, "ret");
}

TEST(LinkTest, TwoStrongDefinitionsAreAnError) {
  const auto text = link_texts({".visible .global .u32 x;\n", ".visible .global .u32 x;\n"});
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error().code, ErrorCode::kInvalidPtx);
  EXPECT_NE(text.error().message.find("x"), std::string::npos);
}

TEST(LinkTest, WhatNobodyDefinesIsNamed) {
  const auto text = link_texts({".extern .func missing ();\n"});
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error().code, ErrorCode::kNotSupported);
  EXPECT_NE(text.error().message.find("missing"), std::string::npos);
}

TEST(LinkTest, TheDevicesOwnFunctionsAndDynamicSharedMemoryStayExtern) {
  const std::string print =
      ".extern .func (.param .b32 r) vprintf (.param .b64 a, .param .b64 b);\n";
  const auto module = linked({print + ".extern .shared .align 4 .b8 buffer[];\n",
                              print + ".extern .shared .align 16 .b8 buffer[];\n"});
  ASSERT_TRUE(module);
  ASSERT_EQ(module->functions.size(), 1u);
  ASSERT_EQ(module->variables.size(), 1u);
  EXPECT_TRUE(module->variables[0].is_extern);
  EXPECT_EQ(module->variables[0].align, 16u);
}

TEST(LinkTest, AVariableComesAfterThoseThatItPointsAt) {
  const auto text =
      link_texts({".extern .global .u32 target;\n.visible .global .u64 pointer = target;\n",
                  ".visible .global .u32 target = 7;\n"});
  ASSERT_TRUE(text);
  EXPECT_LT(text->find(".global .u32 target"), text->find(".global .u64 pointer"));
}

TEST(LinkTest, TheNewestVersionAndTargetCount) {
  const std::string old =
      ".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry a() { ret; }\n";
  const std::string now =
      ".version 9.0\n.target sm_90a\n.address_size 64\n.visible .entry b() { ret; }\n";
  const auto text = link(std::vector<std::string_view>{old, now});
  ASSERT_TRUE(text);
  EXPECT_TRUE(text->starts_with(".version 9.0\n.target sm_90a\n.address_size 64\n")) << *text;
}

TEST(LinkTest, DebugInformationIsDropped) {
  const auto text =
      link_texts({".visible .entry k() {\n.loc 1 5 3\nret;\n}\n.file 1 \"a.cu\"\n"
                  ".section .debug_str {\n.b8 1\n}\n"});
  ASSERT_TRUE(text) << text.error().message;
  EXPECT_EQ(text->find(".loc"), text->npos);
  EXPECT_EQ(text->find(".file"), text->npos);
  EXPECT_EQ(text->find(".section"), text->npos);
}

TEST(LinkTest, WhatDoesNotParseIsRefused) {
  const auto text = link_texts({".visible .entry k( {"});
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error().code, ErrorCode::kInvalidPtx);
}

}  // namespace
}  // namespace slate::ptx
