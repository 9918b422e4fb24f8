#include "base/sizes.h"

#include <charconv>
#include <limits>
#include <system_error>

namespace slate {

std::optional<std::uint64_t> parse_bytes(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  if (status != std::errc{}) return std::nullopt;
  if (unit.empty()) return number;
  const auto position = std::string_view("KMGT").find(unit);
  if (unit.size() > 1 || position == std::string_view::npos) return std::nullopt;
  const int shift = 10 * (static_cast<int>(position) + 1);
  if (number > std::numeric_limits<std::uint64_t>::max() >> shift) return std::nullopt;
  return number << shift;
}

}  // namespace slate
