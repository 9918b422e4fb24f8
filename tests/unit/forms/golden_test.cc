// What the injector writes, against the files of tests/golden. SLATE_UPDATE_GOLDEN=1 writes them
// anew: look at the difference before you commit it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "injector/forms/inject.h"

namespace slate::injector {
namespace {

const std::filesystem::path kGolden = SLATE_GOLDEN;

std::string read(const std::filesystem::path& path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

std::vector<std::string> cases() {
  std::vector<std::string> names;
  for (const auto& file : std::filesystem::directory_iterator(kGolden / "kernels")) {
    if (file.path().extension() == ".ptx") names.push_back(file.path().stem());
  }
  std::ranges::sort(names);
  return names;
}

class GoldenTest : public testing::TestWithParam<std::string> {
 protected:
  /// What `options` add to the case's module; where nothing, the reasons.
  std::string added(InjectOptions options) {
    const std::string text = read(kGolden / "kernels" / (GetParam() + ".ptx"));
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
    const auto path = kGolden / pass / (GetParam() + ".ptx");
    if (std::getenv("SLATE_UPDATE_GOLDEN") != nullptr) {
      std::ofstream(path) << got;
      return;
    }
    EXPECT_EQ(read(path), got) << path;
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

INSTANTIATE_TEST_SUITE_P(Kernels, GoldenTest, testing::ValuesIn(cases()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace slate::injector
