#include "tools/run_command.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace slate::tools {
namespace {

namespace fs = std::filesystem;

class FolderTest : public testing::Test {
 protected:
  FolderTest() {
    std::string pattern = fs::temp_directory_path() / "slate-tools-test-XXXXXX";
    folder_ = mkdtemp(pattern.data());
  }
  ~FolderTest() override { fs::remove_all(folder_); }
  void touch(const fs::path& path) {
    fs::create_directories(path.parent_path());
    std::ofstream(path) << "x";
  }
  fs::path folder_;
};

using FindProgramTest = FolderTest;
using FindFrontTest = FolderTest;

TEST_F(FindProgramTest, ThePathIsSearchedInOrder) {
  touch(folder_ / "a" / "tool");  // not executable
  touch(folder_ / "b" / "tool");
  fs::permissions(folder_ / "b" / "tool", fs::perms::owner_all);
  const std::string path = (folder_ / "a").string() + ":" + (folder_ / "b").string();
  EXPECT_EQ(find_program("tool", path), (folder_ / "b" / "tool").string());
  EXPECT_EQ(find_program("other", path), std::nullopt);
  EXPECT_EQ(find_program("", path), std::nullopt);
}

TEST_F(FindProgramTest, ANameWithASlashIsTakenAsItIs) {
  touch(folder_ / "tool");
  EXPECT_EQ(find_program((folder_ / "tool").string(), ""), (folder_ / "tool").string());
  EXPECT_EQ(find_program((folder_ / "none").string(), "/bin"), std::nullopt);
}

TEST_F(FindFrontTest, TheBuildTreeComesFirst) {
  touch(folder_ / "bin" / "slatectl");
  const std::string own = (folder_ / "bin" / "slatectl").string();
  EXPECT_FALSE(find_front_folder(own, Front::kCudart));
  touch(folder_ / "lib" / "slate" / "libcudart.so.13");
  EXPECT_EQ(*find_front_folder(own, Front::kCudart), (folder_ / "lib" / "slate").string());
  touch(folder_ / "lib" / "cudart" / "libcudart.so.13");
  EXPECT_EQ(*find_front_folder(own, Front::kCudart), (folder_ / "lib" / "cudart").string());
}

TEST_F(FindFrontTest, TheVariablesPutTheFrontFirst) {
  const std::string own = (folder_ / "bin" / "slatectl").string();
  touch(own);
  EXPECT_FALSE(variables_for(own, Front::kDriver, false, "", ""));
  touch(folder_ / "lib" / "driver" / "libcuda.so.1");
  touch(folder_ / "lib" / "cudart" / "libcudart.so.13");
  const std::string driver = (folder_ / "lib" / "driver").string();
  const std::string cudart = (folder_ / "lib" / "cudart").string();
  EXPECT_EQ(*variables_for(own, Front::kDriver, true, "/old", "x.so"),
            (Variables{{"LD_LIBRARY_PATH", driver + ":/old"}}));
  EXPECT_EQ(*variables_for(own, Front::kCudart, false, "", ""),
            (Variables{{"LD_LIBRARY_PATH", cudart + ":" + driver}}));
  EXPECT_EQ(*variables_for(own, Front::kCudart, true, "", "x.so"),
            (Variables{{"LD_PRELOAD", cudart + "/libcudart.so.13:x.so"},
                       {"LD_LIBRARY_PATH", cudart + ":" + driver}}));
}

TEST(FrontForTest, OnlyAPlainProgramOfTheSharedRuntimeTakesCudart) {
  ElfFacts facts;
  EXPECT_EQ(front_for(facts), Front::kDriver);  // a script
  facts.is_elf = true;
  facts.needed = {"libcudart.so.13", "libc.so.6"};
  EXPECT_EQ(front_for(facts), Front::kCudart);
  facts.needed.push_back("libcublas.so.13");
  EXPECT_EQ(front_for(facts), Front::kDriver);
  facts.needed = {"libcuda.so.1", "libcudart.so.13"};
  EXPECT_EQ(front_for(facts), Front::kDriver);
  facts.needed = {"libc.so.6"};
  EXPECT_EQ(front_for(facts), Front::kDriver);
}

TEST(RunCommandTest, AMissingProgramIsStatus127) {
  EXPECT_EQ(run_command("", "auto", {"/nonexistent/program"}), 127);
}

}  // namespace
}  // namespace slate::tools
