// Files that slatectl and slate-inject write: whole, and never in place of what is no plain file.
#include "tools/whole_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <thread>

#include "tests/unit/tools/temporary_directory.h"

namespace slate::tools {
namespace {

namespace fs = std::filesystem;
using Names = std::vector<std::string>;

TEST(WholeFileTest, AFileIsReplacedAndNothingStaysBesideIt) {
  const TemporaryDirectory directory;
  const std::string path = directory.write("out", "what was there before");
  ASSERT_TRUE(write_whole(path, "text"));
  EXPECT_EQ(read_file(path), "text");
  EXPECT_EQ(directory.names(), Names{"out"});
}

TEST(WholeFileTest, ALinkStaysALink) {
  const TemporaryDirectory directory;
  directory.write("kept", "what was there before");
  for (const char* target : {"kept", "new"}) {
    const std::string link = directory.file("link");
    fs::create_symlink(target, link);  // relative to the link's own folder
    ASSERT_TRUE(write_whole(link, "text"));
    EXPECT_TRUE(fs::is_symlink(link)) << target;
    EXPECT_EQ(read_file(directory.file(target)), "text");
    fs::remove(link);
  }
  EXPECT_EQ(directory.names().size(), 2u);
}

TEST(WholeFileTest, APipeIsWrittenToAndStaysAPipe) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("pipe");
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  std::string read;
  std::jthread reader([&] { read = read_file(path); });
  ASSERT_TRUE(write_whole(path, "text"));
  reader.join();
  EXPECT_EQ(read, "text");
  EXPECT_TRUE(fs::is_fifo(path));
}

TEST(WholeFileTest, AFullDiskIsAnErrorAndLeavesTheDeviceFileAlone) {
  const auto written = write_whole("/dev/full", "text");
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, ErrorCode::kIo);
  EXPECT_TRUE(fs::is_character_file("/dev/full"));
}

}  // namespace
}  // namespace slate::tools
