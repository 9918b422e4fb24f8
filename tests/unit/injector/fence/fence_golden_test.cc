// What the fence makes of the golden kernels, against the files of tests/golden/fence.
// SLATE_UPDATE_GOLDEN=1 writes them anew: look at the difference before you commit it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "injector/fence/fence.h"
#include "tests/unit/forms/form_runner.h"

namespace slate::injector {
namespace {

const std::filesystem::path kGolden = SLATE_GOLDEN;

std::vector<std::string> cases() {
  std::vector<std::string> names;
  for (const auto& file : std::filesystem::directory_iterator(kGolden / "kernels")) {
    if (file.path().extension() == ".ptx") names.push_back(file.path().stem());
  }
  std::ranges::sort(names);
  return names;
}

class FenceGoldenTest : public testing::TestWithParam<std::string> {};

TEST_P(FenceGoldenTest, FencedKernelIsAsRecorded) {
  const auto module = ptx::parse(test::read_text(kGolden / "kernels" / (GetParam() + ".ptx")));
  ASSERT_TRUE(module) << module.error().message;
  const auto fenced = fence(**module, {});
  ASSERT_TRUE(fenced) << fenced.error().message;
  std::string got = fenced->ptx;
  for (const FenceVerdict& entry : fenced->entries) {
    got += entry.legal() ? fmt::format("// {}: {} accesses, {} proven, {} covered, {} checks\n",
                                       entry.name, entry.counts.accesses, entry.counts.proven,
                                       entry.counts.covered, entry.counts.checks)
                         : fmt::format("// {}: {}\n", entry.name, entry.why_not);
  }
  const auto path = kGolden / "fence" / (GetParam() + ".ptx");
  if (std::getenv("SLATE_UPDATE_GOLDEN") != nullptr) {
    std::ofstream(path) << got;
    return;
  }
  EXPECT_EQ(test::read_text(path), got) << path;
}

INSTANTIATE_TEST_SUITE_P(Kernels, FenceGoldenTest, testing::ValuesIn(cases()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace slate::injector
