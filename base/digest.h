// SHA-256, so that only digest.cc includes the library behind it. Not for secrets. Thread: one for
// each Digest.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace slate {

using DigestBytes = std::array<std::uint8_t, 32>;

class Digest {
 public:
  Digest();
  ~Digest();
  Digest(const Digest&) = delete;
  Digest& operator=(const Digest&) = delete;
  void add(std::span<const std::byte> bytes);
  /// Returns the digest. Requires: called once, as the last call.
  DigestBytes finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The digest of `bytes`.
DigestBytes digest_of(std::span<const std::byte> bytes);

}  // namespace slate
