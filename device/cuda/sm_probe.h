// SmProbe: finds the SMs that a stream runs on, by a kernel that stores its %smid. The driver says
// how many SMs a group has, but not which. Thread: one at a time.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "device/cuda/context.h"
#include "device/device.h"

namespace slate::cuda {

class SmProbe {
 public:
  /// Loads the kernel. Requires: `context` outlives it.
  static Result<SmProbe> make(Context& context);
  SmProbe(SmProbe&& other) noexcept;
  SmProbe(const SmProbe&) = delete;
  SmProbe& operator=(const SmProbe&) = delete;
  SmProbe& operator=(SmProbe&&) = delete;
  ~SmProbe();

  /// Returns the SMs that the stream's blocks run on, in rising order. Launches until `count` are
  /// found, and waits for the launches. Requires: the stream is empty. Errors:
  /// - kOutOfResources: fewer after many tries, because other work leaves no room on the others;
  /// - kNotSupported: more than `count`.
  Result<std::vector<std::uint32_t>> find(CUstream stream, std::uint32_t count);

 private:
  SmProbe(Context& context, CUmodule module) : context_(&context), module_(module) {}

  Result<void> launch(CUstream stream, std::uint32_t blocks);

  Context* context_;
  CUmodule module_;
  CUfunction function_ = nullptr;
  device::AddressRange seen_;  // one word for each SM number; not 0 once a block ran there
};

}  // namespace slate::cuda
