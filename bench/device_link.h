// Links PTX with the device's runtime library into machine code, by nvJitLink: what a kernel needs
// that launches others. Pure function, any thread; takes tens to hundreds of milliseconds.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/result.h"

namespace slate::bench {

/// `library`: path of libcudadevrt.a. `architecture`: 90 for sm_90. kInvalidPtx with the linker's
/// words.
Result<std::vector<std::byte>> link_with_device_runtime(const std::vector<std::string>& ptx,
                                                        const std::string& library,
                                                        int architecture);

}  // namespace slate::bench
