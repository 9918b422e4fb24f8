// Handshake: the integrity check that a stock cudart asks of its driver. It is a HMAC over facts
// that both see, so no secret of the program's is involved. Left out of the build when
// SLATE_DRIVER_HANDSHAKE is off. Pure functions; any thread.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace slate::driver {

/// A device as every way of asking describes it.
struct DeviceIdentity {
  std::array<std::uint8_t, 16> uuid;
  std::int32_t pci_domain, pci_bus, pci_device;
};

/// What the answer is computed from.
struct HandshakeFacts {
  std::uint32_t driver_version;  // as cuDriverGetVersion() tells it
  std::uint32_t asked_version;   // the caller's own, plus the number of the question
  std::uint32_t process;
  std::uint32_t thread;  // the low half of pthread_self()
  std::uint64_t interface_table;
  std::uint64_t integrity_table;
  std::uint64_t integrity_entry;
  std::uint64_t seconds;  // as the caller gave them
  std::span<const DeviceIdentity> devices;
};

using HandshakeAnswer = std::array<std::uint64_t, 2>;
HandshakeAnswer handshake(const HandshakeFacts& facts);

using Digest = std::array<std::uint8_t, 16>;
/// RFC 1319.
Digest md2(std::span<const std::uint8_t> text);
/// RFC 2104 with MD2 and its block of 16 bytes. Requires: a key of at most a block.
Digest hmac_md2(std::span<const std::uint8_t> key, std::span<const std::uint8_t> text);

}  // namespace slate::driver
