// Numbers in what users and administrators write. Thread: any.
#pragma once

#include <charconv>
#include <concepts>
#include <optional>
#include <string_view>
#include <system_error>

namespace slate::daemon {

/// The number that the text is; none for anything else, or for more than T holds.
template <std::unsigned_integral T>
std::optional<T> whole_number(std::string_view text) {
  T number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, status] = std::from_chars(text.data(), end, number);
  if (status != std::errc{} || stop != end) return std::nullopt;
  return number;
}

}  // namespace slate::daemon
