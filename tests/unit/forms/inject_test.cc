// What inject() makes of text that no compiler writes, but a person may. That it assembles is for
// ptxas_test.py, that it runs for sim_forms_test.cc: both know tests/golden/kernels/odd_text.ptx.
#include "injector/forms/inject.h"

#include <gtest/gtest.h>

#include <string>

namespace slate::injector {
namespace {

const InjectOptions kAllForms{.worker = true, .slice = true, .profile = true, .most_registers = {}};

InjectedModule injected(const std::string& functions) {
  const auto module =
      ptx::parse(".version 8.8\n.target sm_90\n.address_size 64\n" + functions + "\n");
  EXPECT_TRUE(module) << module.error().message;
  auto result = inject(**module, kAllForms);
  EXPECT_TRUE(result) << result.error().message;
  EXPECT_TRUE(ptx::parse(result->ptx)) << result->ptx;
  result->kernels.at(0).analysis.name = {};  // of the module, which ends here
  return std::move(*result);
}

bool has(const InjectedModule& module, std::string_view text) {
  return module.ptx.find(text) != std::string::npos;
}

TEST(InjectTest, ABraceInTheCommentOfAFunctionsHeadDoesNotBeginItsBody) {
  const InjectedModule module = injected(
      ".func (.param .b32 r) f( // what {f} takes\n.param .b32 x) /* { */\n"
      "{ .reg .b32 a; mov.u32 a, %ctaid.x; st.param.b32 [r], a; ret; }\n"
      ".entry k() { .reg .b32 a;\n"
      "{ .param .b32 p, q; st.param.b32 [p], 3; call (q), f, (p); ld.param.b32 a, [q]; } ret; }");
  for (const std::string name : {"f__slate_function", "f__slate_profiled"}) {
    EXPECT_TRUE(has(module, ".func (.param .b32 r) " + name +
                                "( // what {f} takes\n.param .b32 x) /* { */\n;\n"))
        << module.ptx;
  }
}

TEST(InjectTest, PredicatesOfOneNameInTwoScopesAreCountedEachForItself) {
  const auto counters = [](const std::string& declared) {
    return injected(
               ".entry k() { .reg .pred p; .reg .f32 f; .reg .b32 a; mov.u32 a, %tid.x;\n"
               "setp.eq.u32 p, a, 1; @p add.f32 f, f, f;\n{ " +
               declared + " @p add.f32 f, f, f; }\n@p add.f32 f, f, f; ret; }")
        .kernels.at(0)
        .work.size();
  };
  EXPECT_EQ(counters(".reg .pred p; setp.eq.u32 p, a, 2;"), counters("") + 1);
}

}  // namespace
}  // namespace slate::injector
