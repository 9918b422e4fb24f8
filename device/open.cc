// open_device: from the device string to one of the two implementations.
#include <fmt/format.h>

#include <charconv>
#include <optional>

#include "device/cuda/cuda_device.h"
#include "device/device.h"
#include "device/sim/settings.h"
#include "device/sim/sim_device.h"

namespace slate::device {
namespace {

// What follows `name` and a colon; empty if the description is `name` alone; nullopt if it is
// another's.
std::optional<std::string_view> rest_of(std::string_view description, std::string_view name) {
  if (!description.starts_with(name)) return std::nullopt;
  description.remove_prefix(name.size());
  if (description.empty()) return description;
  if (description.front() != ':') return std::nullopt;
  return description.substr(1);
}

Result<std::unique_ptr<Device>> open_cuda(std::string_view ordinal_text,
                                          const OpenSettings& settings) {
  int ordinal = 0;
  if (!ordinal_text.empty()) {
    const char* const end = ordinal_text.data() + ordinal_text.size();
    const auto [stop, error] = std::from_chars(ordinal_text.data(), end, ordinal);
    if (error != std::errc{} || stop != end || ordinal < 0) {
      return fail(ErrorCode::kInvalidValue,
                  fmt::format("device 'cuda:{}': expected a GPU's number", ordinal_text));
    }
  }
  return cuda::open_cuda_device(ordinal, settings);
}

Result<std::unique_ptr<Device>> open_sim(std::string_view settings_text) {
  auto settings = sim::parse_settings(settings_text);
  if (!settings) return std::unexpected(std::move(settings.error()));
  auto device = sim::SimDevice::make(*settings);
  if (!device) return std::unexpected(std::move(device.error()));
  return std::unique_ptr<Device>(std::move(*device));
}

}  // namespace

Result<std::unique_ptr<Device>> open_device(std::string_view description,
                                            const OpenSettings& settings) {
  if (description == "auto") {
    return cuda::driver_finds_a_gpu(settings) ? open_cuda({}, settings) : open_sim({});
  }
  if (const auto rest = rest_of(description, "cuda")) return open_cuda(*rest, settings);
  if (const auto rest = rest_of(description, "sim")) return open_sim(*rest);
  return fail(ErrorCode::kInvalidValue,
              fmt::format("device '{}': expected auto, cuda, cuda:N, sim or sim:KEY=VALUE,...",
                          description));
}

}  // namespace slate::device
