// Reservation: addresses that a program divides itself, with memory mapped there piece by piece, as
// a framework's allocator has its growing segments. By the driver's functions, which the runtime
// finds. Errors end the program, as SLATE_REQUIRE does. Thread: one.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <vector>

namespace slate::kernels {

class Reservation {
 public:
  Reservation() = default;
  ~Reservation() { release(); }
  Reservation(const Reservation&) = delete;
  Reservation& operator=(const Reservation&) = delete;

  /// Reserves addresses for `count` buffers of so many bytes each, rounded up, and maps memory
  /// there. Requires: a context; nothing is reserved.
  void make(std::size_t count, std::size_t bytes);
  /// Address of a buffer.
  CUdeviceptr buffer(std::size_t number) const { return base_ + number * stride_; }
  /// Requires: no work uses it.
  void release();

 private:
  CUdeviceptr base_ = 0;
  std::size_t bytes_ = 0;   // of all
  std::size_t stride_ = 0;  // from one buffer to the next
  std::vector<CUmemGenericAllocationHandle> pieces_;
};

}  // namespace slate::kernels
