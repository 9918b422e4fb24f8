// Reading the PTX out of whatever holds some: a PTX file, a fat binary, an object, library or
// executable with fat binaries in it. Nothing in the file is trusted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace slate::tools {

struct PtxImage {
  std::uint32_t architecture = 0;  // 90 for compute_90; 0 where only the text says
  std::string text;
};

/// All PTX of a file's bytes, in order; one image for PTX text. kNoKernelImage if there is none,
/// with what there is instead.
Result<std::vector<PtxImage>> ptx_in(std::span<const std::byte> file);
/// Of a file. kIo when it cannot be read.
Result<std::vector<PtxImage>> ptx_in_file(const std::string& path);

}  // namespace slate::tools
