#include "client/session/wishes.h"

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <string>
#include <system_error>

#include "base/sizes.h"
#include "client/session/say.h"

namespace slate::client {
namespace {

void say_not_understood(const char* name, const char* text) {
  say_once(std::string(name) + "=" + text + " is not understood, and ignored");
}

bool is_set(const char* text) {
  return text != nullptr && *text != '\0';
}

template <typename T>
std::optional<T> parse(const char* name, const char* text, T least, T most) {
  if (!is_set(text)) return std::nullopt;
  T value{};
  const char* const end = text + std::strlen(text);
  const auto [stop, error] = std::from_chars(text, end, value);
  // Written so that a NaN is out of range.
  if (error == std::errc{} && stop == end && value >= least && value <= most) return value;
  say_not_understood(name, text);
  return std::nullopt;
}

std::optional<std::uint64_t> parse_memory(const char* name, const char* text) {
  if (!is_set(text)) return std::nullopt;
  const auto bytes = parse_bytes(text);
  if (bytes && *bytes > 0) return bytes;
  say_not_understood(name, text);
  return std::nullopt;
}

}  // namespace

ipc::Wishes parse_wishes(const char* weight, const char* priority, const char* memory) {
  return {.weight = parse("SLATE_WEIGHT", weight, 0.01, 100.0),
          .priority = parse("SLATE_PRIORITY", priority, -10, 10),
          .memory = parse_memory("SLATE_MEMORY", memory)};
}

ipc::Wishes environment_wishes() {
  // NOLINTBEGIN(concurrency-mt-unsafe): read-only use of the environment
  return parse_wishes(std::getenv("SLATE_WEIGHT"), std::getenv("SLATE_PRIORITY"),
                      std::getenv("SLATE_MEMORY"));
  // NOLINTEND(concurrency-mt-unsafe)
}

}  // namespace slate::client
