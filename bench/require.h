// require(): for benchmarks, where a failure ends the process.
#pragma once

#include <fmt/format.h>

#include <cstdlib>
#include <string>
#include <type_traits>
#include <utility>

#include "base/result.h"

namespace slate::bench {

/// The value, or the message on stderr and exit status 1.
template <typename T>
T require(Result<T> result, const std::string& what) {
  if (!result) {
    fmt::print(stderr, "{}: {}\n", what, result.error().message);
    std::exit(1);
  }
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

}  // namespace slate::bench
