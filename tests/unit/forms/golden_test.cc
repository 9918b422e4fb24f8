// What the injector writes, against the files of tests/golden.
#include "tests/unit/forms/golden.h"

#include "injector/forms/inject.h"

namespace slate::injector {
namespace {

class GoldenTest : public testing::TestWithParam<std::string> {
 protected:
  /// What `options` add to the case's module; where nothing, the reasons.
  std::string added(InjectOptions options) {
    const std::string text = test::read_golden("kernels", GetParam());
    const auto module = ptx::parse(text);
    EXPECT_TRUE(module) << module.error().message;
    const auto injected = inject(**module, options);
    EXPECT_TRUE(injected) << injected.error().message;
    EXPECT_TRUE(injected->ptx.starts_with(text)) << "the original is not kept";
    std::string result = injected->ptx.substr(text.size());
    for (const KernelForms& kernel : injected->kernels) {
      const EntryAnalysis& analysis = kernel.analysis;
      const Verdict& verdict = options.worker  ? analysis.worker
                               : options.slice ? analysis.slice
                                               : analysis.profile;
      const std::string& why = verdict.why_not;
      if (!why.empty() && (options.worker || options.slice || options.profile))
        result += "// " + kernel.name + ": " + why + "\n";
    }
    return result;
  }

  void compare(const std::string& pass, const std::string& got) {
    test::compare_with_golden(pass, GetParam(), got);
  }
};

TEST_P(GoldenTest, WorkerFormIsAsRecorded) {
  compare("worker", added({.worker = true, .slice = false, .most_registers = {}}));
}

TEST_P(GoldenTest, SliceFormIsAsRecorded) {
  compare("slice", added({.worker = false, .slice = true, .most_registers = {}}));
}

TEST_P(GoldenTest, ProfileFormIsAsRecorded) {
  compare("profile",
          added({.worker = false, .slice = false, .profile = true, .most_registers = {}}));
}

TEST_P(GoldenTest, NothingAskedForLeavesTheModuleAsItIs) {
  EXPECT_EQ(added({.worker = false, .slice = false, .most_registers = {}}), "");
}

INSTANTIATE_TEST_SUITE_P(Kernels, GoldenTest, testing::ValuesIn(test::golden_cases()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace slate::injector
