// ManagedAdvice: what the program has said of its managed memory (cudaMemAdvise, prefetches), by
// range, for cudaMemRangeGetAttribute to tell. Hints: nothing here moves memory. Thread-safe.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>

#include "client/cudart/process.h"

namespace slate::cudart {

/// A place for pages; by default none.
struct PagePlace {
  cudaMemLocationType type = cudaMemLocationTypeInvalid;
  int id = cudaInvalidDeviceId;
  bool operator==(const PagePlace&) const = default;
};

struct PageAdvice {
  bool read_mostly = false;
  bool by_device = false, by_host = false;  // cudaMemAdviseSetAccessedBy
  PagePlace preferred, prefetched;
  bool operator==(const PageAdvice&) const = default;
};

class ManagedAdvice {
 public:
  static ManagedAdvice& get();

  /// Changes what is said of [begin, end), of the session with this serial; what an earlier one had
  /// is forgotten.
  void change(std::uint64_t session, std::uint64_t begin, std::uint64_t end,
              const std::function<void(PageAdvice&)>& change);
  void forget(std::uint64_t session, std::uint64_t begin, std::uint64_t end);
  /// Of the range as a whole: where its parts differ, as if nothing had been said.
  PageAdvice common(std::uint64_t session, std::uint64_t begin, std::uint64_t end);

 private:
  struct Part {
    std::uint64_t end;
    PageAdvice advice;
  };
  void use(std::uint64_t session);
  void cut(std::uint64_t at);

  std::mutex& mutex_ = Process::get().mutex_of(Process::Table::kManagedAdvice);
  std::uint64_t session_ = 0;
  std::map<std::uint64_t, Part> parts_;  // by beginning, disjoint; what is missing has no advice
};

}  // namespace slate::cudart
