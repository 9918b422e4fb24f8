// The PCI address of a device, as programs spell it. Pure functions, any thread.
#pragma once

#include <optional>
#include <string>

#include "base/device_info.h"

namespace slate::client {

/// "0000:3b:00.0" and its terminator.
inline constexpr int kBusIdBytes = 13;

/// The simulator has none and makes one up.
std::string bus_id(const DeviceInfo& device);
/// Whether `text`, with or without a domain and a function, is this device's; nothing when it is no
/// address.
std::optional<bool> is_bus_id(const DeviceInfo& device, const char* text);

}  // namespace slate::client
