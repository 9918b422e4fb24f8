#include "client/session/wishes.h"

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <string>
#include <system_error>

#include "client/session/say.h"

namespace slate::client {
namespace {

template <typename T>
std::optional<T> parse(const char* name, const char* text, T least, T most) {
  if (text == nullptr || *text == '\0') return std::nullopt;
  T value{};
  const char* const end = text + std::strlen(text);
  const auto [stop, error] = std::from_chars(text, end, value);
  // Written so that a NaN is out of range.
  if (error == std::errc{} && stop == end && value >= least && value <= most) return value;
  say_once(std::string(name) + "=" + text + " is not understood, and ignored");
  return std::nullopt;
}

}  // namespace

ipc::Wishes parse_wishes(const char* weight, const char* priority) {
  return {.weight = parse("SLATE_WEIGHT", weight, 0.01, 100.0),
          .priority = parse("SLATE_PRIORITY", priority, -10, 10)};
}

ipc::Wishes environment_wishes() {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): read-only use of the environment
  return parse_wishes(std::getenv("SLATE_WEIGHT"), std::getenv("SLATE_PRIORITY"));
}

}  // namespace slate::client
