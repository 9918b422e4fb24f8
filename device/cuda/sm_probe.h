// SmProbe: finds out which SMs a stream runs on, by a kernel that writes down its %smid. The driver
// tells how many SMs a group of them has, but not which. Not thread-safe.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "device/cuda/context.h"
#include "device/device.h"

namespace slate::cuda {

class SmProbe {
 public:
  /// Requires: `context` outlives it.
  static Result<SmProbe> make(Context& context);
  SmProbe(SmProbe&& other) noexcept;
  SmProbe(const SmProbe&) = delete;
  SmProbe& operator=(const SmProbe&) = delete;
  SmProbe& operator=(SmProbe&&) = delete;
  ~SmProbe();

  /// The SMs that the stream's blocks run on, in rising order: launches until there are `count`,
  /// and waits for the launches. kOutOfResources when there are fewer after many tries, because
  /// other work leaves no room on the others; kNotSupported when there are more. Requires: the
  /// stream is empty.
  Result<std::vector<std::uint32_t>> find(CUstream stream, std::uint32_t count);

 private:
  SmProbe(Context& context, CUmodule module) : context_(&context), module_(module) {}

  Result<void> launch(CUstream stream, std::uint32_t blocks);

  Context* context_;
  CUmodule module_;
  CUfunction function_ = nullptr;
  device::AddressRange seen_;  // one word per SM number, not 0 once a block ran there
};

}  // namespace slate::cuda
