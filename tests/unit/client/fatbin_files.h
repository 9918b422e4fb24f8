// The fat binaries that nvcc made for these tests.
#pragma once

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace slate::client {

inline std::vector<std::byte> load_fatbin(const std::string& name) {
  const std::string path = std::string(FATBINS) + "/" + name + ".fatbin";
  std::vector<std::byte> bytes(std::filesystem::file_size(path));
  std::ifstream file(path, std::ios::binary);
  file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  return bytes;
}

}  // namespace slate::client
