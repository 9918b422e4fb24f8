// ParameterLayout: where each parameter of a kernel lies among the bytes that a launch passes.
// Immutable once built. Thread: any.
#pragma once

#include <cstdint>
#include <vector>

#include "injector/ptx/module.h"

namespace slate::injector {

class ParameterLayout {
 public:
  explicit ParameterLayout(const ptx::Function& kernel);

  std::uint64_t bytes() const { return bytes_; }  // of all, without padding at the end
  std::uint64_t offset(std::uint32_t parameter) const { return offsets_[parameter]; }
  /// The parameter that the byte lies in, or before; the last one beyond the end. Requires: there
  /// is a parameter.
  std::uint32_t parameter_at(std::uint64_t offset) const;
  bool empty() const { return offsets_.empty(); }

 private:
  std::vector<std::uint64_t> offsets_;  // by parameter, rising
  std::uint64_t bytes_ = 0;
};

}  // namespace slate::injector
