// FakeDriver: a slate::cuda::Driver whose functions write down that they were called and do what a
// healthy GPU would answer, or fail on request. It moves no bytes, but for those that tell where
// blocks ran (fake_green.h). One at a time: the driver's
// functions are plain pointers, so the fake that they speak to is a global of fake_driver.cc.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "device/cuda/driver.h"
#include "fake_green.h"

namespace slate::cuda {

class FakeDriver {
 public:
  FakeDriver();
  ~FakeDriver();
  FakeDriver(const FakeDriver&) = delete;
  FakeDriver& operator=(const FakeDriver&) = delete;

  const Driver& driver() const { return driver_; }

  /// From now on calls of `function` ("cuMemCreate", without a version) answer `result`.
  void fail(const std::string& function, CUresult result);
  void recover() { failures_.clear(); }

  /// The calls so far, without versions, with the arguments that the fake writes down ("cuMemMap
  /// 0x200000").
  std::vector<std::string> calls() const;
  void forget_calls();
  std::size_t count(std::string_view function) const;

  /// Notes the call; the answer that fail() asked for, else success.
  CUresult note(const char* symbol, const std::string& arguments = "");

  static constexpr std::uint64_t kGranularity = 2 << 20;
  static constexpr int kMaxPitch = 4096;  // small, so that tests reach it
  std::string last_parameters;            // the bytes of the last launch's parameter buffer
  int resident_blocks = 5;                // what the occupancy calculator answers
  std::uint64_t host_memory_offset =
      0;  // from the host's address of registered memory to the GPU's
  std::uint64_t wished_address = 0, wished_alignment = 0;  // of the last reservation
  bool writes_words = true;  // what the GPU says of 64-bit stream memory operations
  /// What cuStreamWriteValue64 was told to write, in order; the test may do so.
  std::vector<std::pair<std::uint64_t*, std::uint64_t>> unwritten;
  /// For a driver that lacks the function.
  void remove_write_value() { driver_.cuStreamWriteValue64.function = nullptr; }
  FakeGreen green;
  std::map<CUfunction, CUmodule> modules;  // of the functions that were looked up
  CUmodule module_of(CUfunction function) const {
    const auto found = modules.find(function);
    return found == modules.end() ? nullptr : found->second;
  }

 private:
  Driver driver_;
  mutable std::mutex mutex_;
  std::vector<std::string> calls_;
  std::map<std::string, CUresult> failures_;
};

}  // namespace slate::cuda
