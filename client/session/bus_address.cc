#include "client/session/bus_address.h"

#include <array>
#include <cstdio>
#include <cstring>

namespace slate::client {

std::string bus_id(const DeviceInfo& device) {
  const std::size_t length = ::strnlen(device.pci_bus_id, sizeof(device.pci_bus_id));
  return length != 0 ? std::string(device.pci_bus_id, length) : "0000:00:00.0";
}

std::optional<bool> is_bus_id(const DeviceInfo& device, const char* text) {
  unsigned domain = 0, bus = 0, slot = 0, function = 0;
  if (std::sscanf(text, "%x:%x:%x.%x", &domain, &bus, &slot, &function) < 3) {
    domain = 0;
    if (std::sscanf(text, "%x:%x.%x", &bus, &slot, &function) < 2) return std::nullopt;
  }
  std::array<char, 32> canonical{};
  std::snprintf(canonical.data(), canonical.size(), "%04x:%02x:%02x.0", domain, bus, slot);
  return bus_id(device) == canonical.data();
}

}  // namespace slate::client
