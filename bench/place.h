// Place: an empty directory of a benchmark's own, gone with everything in it when the object goes.
#pragma once

#include <stdlib.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace slate::bench {

struct Place {
  Place() {
    std::string name = std::filesystem::temp_directory_path() / "slate-bench-XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) std::abort();
    path = name;
  }
  ~Place() { std::filesystem::remove_all(path); }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;

  std::filesystem::path path;
};

}  // namespace slate::bench
