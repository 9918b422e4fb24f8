// Written from public sources: RFC 1319 (MD2), RFC 2104 (HMAC), and the source of ZLUDA, which
// published what the answer is computed from.
#include "client/driver/handshake.h"

#include <bit>
#include <cstring>
#include <numeric>
#include <string_view>
#include <utility>
#include <vector>

namespace slate::driver {
namespace {

constexpr std::size_t kBlock = 16;

static_assert(std::endian::native == std::endian::little);  // the bytes are hashed as they lie

/// The decimal digits of pi, the 3 being the first: as many as the shuffle below takes.
constexpr std::string_view kPi =
    "31415926535897932384626433832795028841971693993751058209749445923078164062862089"
    "98628034825342117067982148086513282306647093844609550582231725359408128481117450"
    "28410270193852110555964462294895493038196442881097566593344612847564823378678316"
    "52712019091456485669234603486104543266482133936072602491412737245870066063155881"
    "74881520920962829254091715364367892590360011330530548820466521384146951941511609"
    "43305727036575959195309218611738193261179310511854807446237996274956735188575272"
    "48912279381830119491298336733624406566430860213949463952247371907021798609437027"
    "70539217176293176752384674818467669405132000568127145263560827785771342757789609"
    "17363717872146844090122495343014654958537105079227968925892354201995611212902196"
    "08";

/// The permutation that RFC 1319 gives as a table: a shuffle by the digits of pi.
consteval std::array<std::uint8_t, 256> substitution() {
  std::array<std::uint8_t, 256> bytes{};
  std::iota(bytes.begin(), bytes.end(), std::uint8_t{0});
  std::size_t next = 0;
  for (unsigned count = 2; count <= bytes.size(); ++count) {
    // As many digits as `count` has, and others instead of a number that would favour the small
    // ones.
    unsigned number = 0, numbers = 1;
    do {
      number = 0;
      for (numbers = 1; numbers == 1 || numbers < count; numbers *= 10)
        number = 10 * number + static_cast<unsigned>(kPi[next++] - '0');
    } while (number >= numbers - numbers % count);
    std::swap(bytes[number % count], bytes[count - 1]);
  }
  return bytes;
}

constexpr std::array<std::uint8_t, 256> kSubstitution = substitution();

void append(std::vector<std::uint8_t>& bytes, const auto& value) {
  const auto* const begin = reinterpret_cast<const std::uint8_t*>(&value);
  bytes.insert(bytes.end(), begin, begin + sizeof(value));
}

}  // namespace

Digest md2(std::span<const std::uint8_t> text) {
  std::vector<std::uint8_t> padded(text.begin(), text.end());
  const std::size_t padding = kBlock - text.size() % kBlock;
  padded.insert(padded.end(), padding, static_cast<std::uint8_t>(padding));

  std::array<std::uint8_t, kBlock> checksum{};
  std::uint8_t last = 0;
  for (std::size_t i = 0; i < padded.size(); ++i)
    last = checksum[i % kBlock] ^= kSubstitution[padded[i] ^ last];
  padded.insert(padded.end(), checksum.begin(), checksum.end());

  std::array<std::uint8_t, 3 * kBlock> state{};
  for (std::size_t block = 0; block < padded.size(); block += kBlock) {
    for (std::size_t i = 0; i < kBlock; ++i) {
      state[kBlock + i] = padded[block + i];
      state[2 * kBlock + i] = state[i] ^ padded[block + i];
    }
    std::uint8_t mixed = 0;
    for (std::uint8_t round = 0; round < 18; ++round) {
      for (std::uint8_t& byte : state) mixed = byte ^= kSubstitution[mixed];
      mixed = static_cast<std::uint8_t>(mixed + round);
    }
  }
  Digest digest;
  std::memcpy(digest.data(), state.data(), digest.size());
  return digest;
}

Digest hmac_md2(std::span<const std::uint8_t> key, std::span<const std::uint8_t> text) {
  const auto masked_key = [&](std::uint8_t mask) {
    std::vector<std::uint8_t> bytes(kBlock, mask);
    for (std::size_t i = 0; i < key.size(); ++i) bytes[i] ^= key[i];
    return bytes;
  };
  std::vector<std::uint8_t> inner = masked_key(0x36), outer = masked_key(0x5c);
  inner.insert(inner.end(), text.begin(), text.end());
  append(outer, md2(inner));
  return md2(outer);
}

HandshakeAnswer handshake(const HandshakeFacts& facts) {
  constexpr std::array<std::uint8_t, 16> kKey = {0x14, 0x6A, 0xDD, 0xAE, 0x53, 0xA9, 0xA7, 0x52,
                                                 0xAA, 0x08, 0x41, 0x36, 0x0B, 0xF5, 0x5A, 0x9F};
  switch (facts.asked_version % 10) {
    case 0:
      return {0x3341181C03CB675C, 0x8ED383AA1F4CD1E8};
    case 1:
      return {0x1841181C03CB675C, 0x8ED383AA1F4CD1E8};
    default:
      break;
  }
  std::vector<std::uint8_t> text;
  append(text, facts.driver_version);
  append(text, facts.asked_version);
  append(text, facts.process);
  append(text, facts.thread);
  append(text, facts.interface_table);
  append(text, facts.integrity_table);
  append(text, facts.integrity_entry);
  append(text, facts.seconds);
  for (const DeviceIdentity& device : facts.devices) {
    append(text, device.uuid);
    append(text, device.pci_domain);
    append(text, device.pci_bus);
    append(text, device.pci_device);
  }
  return std::bit_cast<HandshakeAnswer>(hmac_md2(kKey, text));
}

}  // namespace slate::driver
