// The target as libFuzzer calls it.
// The fuzz preset links this file, with clang.
#include "tests/fuzz/target.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  slate::fuzz::run(std::as_bytes(std::span(data, size)));
  return 0;
}
