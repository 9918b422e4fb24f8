#include "injector/fence/access_bounds.h"

#include <algorithm>
#include <cstring>

#include "injector/fence/bound_values.h"

namespace slate::injector {

bool hold(const AccessBounds& bounds, const LaunchValues& launch) {
  BoundValues values(launch);
  values.reserve(bounds.steps.size());
  return std::ranges::all_of(bounds.steps,
                             [&](const BoundStep& step) { return values.add(step); }) &&
         std::ranges::all_of(bounds.claims,
                             [&](const BoundClaim& claim) { return values.holds(claim); });
}

namespace {

std::uint32_t limit_of_pointer(const PassedLimit& limit, const LaunchValues& launch) {
  std::uint64_t pointer = 0;
  if (limit.parameter + sizeof(pointer) > launch.parameters.size()) return 0;
  std::memcpy(&pointer, launch.parameters.data() + limit.parameter, sizeof(pointer));
  const FenceConstants extent = constants_of_extent(launch.low, launch.bytes);
  const std::uint64_t first = pointer + static_cast<std::uint64_t>(limit.offset);
  if ((pointer & limit.mask) != 0 || first < extent.low || first >= extent.end) return 0;
  const std::uint32_t most = limit.is_signed ? kMostSigned : ~std::uint32_t{0};
  const std::uint64_t elements = (extent.end - first) >> std::min(limit.shift, 63u);
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(elements, most));
}

}  // namespace

std::span<const std::byte> passed_parameters(const PassedLimits& passed, const LaunchValues& launch,
                                             std::vector<std::byte>& buffer) {
  if (passed.limits.empty()) return launch.parameters;
  constexpr std::size_t kBytes = sizeof(std::uint32_t);
  buffer.assign(passed.at + passed.limits.size() * kBytes, std::byte{});
  std::ranges::copy(
      launch.parameters.first(std::min<std::size_t>(launch.parameters.size(), passed.at)),
      buffer.begin());
  for (std::size_t i = 0; i < passed.limits.size(); ++i) {
    const PassedLimit& limit = passed.limits[i];
    std::uint32_t value =
        limit.least_of.empty() ? limit_of_pointer(limit, launch) : ~std::uint32_t{0};
    for (const std::uint32_t other : limit.least_of) {
      std::uint32_t earlier = 0;
      if (other < i) std::memcpy(&earlier, &buffer[passed.at + other * kBytes], kBytes);
      value = std::min(value, earlier);
    }
    std::memcpy(&buffer[passed.at + i * kBytes], &value, kBytes);
  }
  return buffer;
}

}  // namespace slate::injector
