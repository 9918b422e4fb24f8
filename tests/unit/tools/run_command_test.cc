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
using FindCudartTest = FolderTest;

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

TEST_F(FindCudartTest, TheBuildTreeComesFirst) {
  touch(folder_ / "bin" / "slatectl");
  const std::string own = (folder_ / "bin" / "slatectl").string();
  EXPECT_FALSE(find_cudart_folder(own));
  touch(folder_ / "lib" / "slate" / "libcudart.so.13");
  EXPECT_EQ(*find_cudart_folder(own), (folder_ / "lib" / "slate").string());
  touch(folder_ / "lib" / "cudart" / "libcudart.so.13");
  EXPECT_EQ(*find_cudart_folder(own), (folder_ / "lib" / "cudart").string());
}

TEST(RunCommandTest, AMissingProgramIsStatus127) {
  EXPECT_EQ(run_command("", {"/nonexistent/program"}), 127);
}

}  // namespace
}  // namespace slate::tools
