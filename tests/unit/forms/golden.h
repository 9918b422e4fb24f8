// The recorded cases of tests/golden: for the tests that compare what is written today. They define
// SLATE_GOLDEN, the folder. SLATE_UPDATE_GOLDEN=1 writes the files anew: look at the difference
// before you commit it.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace slate::test {

inline const std::filesystem::path kGolden = SLATE_GOLDEN;

/// Text of `folder` about a case, "" where there is none.
inline std::string read_golden(const std::string& folder, const std::string& name) {
  std::ifstream in(kGolden / folder / (name + ".ptx"));
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

/// The names of all cases, in order.
inline std::vector<std::string> golden_cases() {
  std::vector<std::string> names;
  for (const auto& file : std::filesystem::directory_iterator(kGolden / "kernels")) {
    if (file.path().extension() == ".ptx") names.push_back(file.path().stem());
  }
  std::ranges::sort(names);
  return names;
}

/// Fails the test unless `got` is what `folder` has about the case; or records it.
inline void compare_with_golden(const std::string& folder, const std::string& name,
                                const std::string& got) {
  if (std::getenv("SLATE_UPDATE_GOLDEN") != nullptr) {
    std::ofstream(kGolden / folder / (name + ".ptx")) << got;
    return;
  }
  EXPECT_EQ(read_golden(folder, name), got) << folder << "/" << name;
}

}  // namespace slate::test
