// Feeds the files of a folder to the target, without libFuzzer: a regression test in every build.
// usage: <target>_corpus FOLDER...
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <vector>

#include "tests/fuzz/target.h"

namespace fs = std::filesystem;

int main(int count, char** folders) {
  std::vector<fs::path> files;
  for (int i = 1; i < count; ++i) {
    for (const auto& entry : fs::directory_iterator(folders[i])) files.push_back(entry.path());
  }
  std::ranges::sort(files);
  for (const fs::path& path : files) {
    std::printf("%s\n", path.filename().c_str());
    std::fflush(stdout);  // the last name is that of the file that ended the process
    std::vector<char> bytes(fs::file_size(path));
    std::ifstream(path, std::ios::binary)
        .read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    slate::fuzz::run(std::as_bytes(std::span(bytes)));
  }
  std::printf("%zu files\n", files.size());
  return files.empty() ? 1 : 0;
}
