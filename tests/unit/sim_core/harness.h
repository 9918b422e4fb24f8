// Runs PTX text on sim's interpreter without the rest of the device: parse, decode, and one Block
// after another over memory made by hand.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "device/sim/block.h"

namespace slate::sim::test {

struct Outcome {
  std::optional<Error> error;  // of parse, decode or a fault
  std::string printed;
  std::uint64_t thread_instructions = 0;
  bool ok() const { return !error.has_value(); }
  std::string message() const { return error ? error->message : ""; }
};

struct Shape {
  device::Dim3 grid{};
  device::Dim3 block{32, 1, 1};
  std::uint32_t dynamic_shared = 0;
  std::optional<std::uint64_t> seed{};  // random schedule
  std::uint32_t quantum = 256;
};

/// Two chunks of device memory; the second half of the last one is the space of module variables.
class Memory64 {
 public:
  Memory64();
  ~Memory64();
  Memory64(const Memory64&) = delete;
  Memory64& operator=(const Memory64&) = delete;

  template <typename T>
  T* at(std::size_t offset = 0) {
    return reinterpret_cast<T*>(bytes_ + offset);
  }
  std::uint64_t address(std::size_t offset = 0) {
    return reinterpret_cast<std::uint64_t>(bytes_ + offset);
  }
  MemoryView view() const;
  static constexpr std::size_t kGlobalsOffset = 3u << 20;

 private:
  std::byte* bytes_;
  std::unique_ptr<std::atomic<std::uint16_t>[]> owners_;
};

/// `body` inside `.visible .entry k(.param .u64 a, .param .u64 b)` with common registers declared:
/// %r<64>, %rd<64>, %f<64>, %fd<16>, %p<32>, %rs<32>.
std::string entry(const std::string& body, const std::string& before = "");

/// Runs the first entry of `ptx` with two u64 parameters, the addresses of memory halves.
class Machine {
 public:
  Outcome run(const std::string& ptx, const Shape& setup = {});
  Memory64 memory;
  std::uint64_t a() { return memory.address(0); }
  std::uint64_t b() { return memory.address(1u << 20); }
  std::uint32_t* words() { return memory.at<std::uint32_t>(0); }
  std::uint32_t* words_b() { return memory.at<std::uint32_t>(1u << 20); }
};

}  // namespace slate::sim::test
