// How a configuration member of each type is read from a KeyValue and written as text. For
// config_table.cc only.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <concepts>
#include <utility>

#include "daemon/config_table.h"

namespace slate::daemon {

inline constexpr std::pair<std::string_view, LogLevel> kLogLevels[] = {
    {"trace", LogLevel::kTrace},     {"debug", LogLevel::kDebug}, {"info", LogLevel::kInfo},
    {"warning", LogLevel::kWarning}, {"error", LogLevel::kError}, {"off", LogLevel::kOff}};

/// The names of an enumeration's values, as the configuration has them.
template <typename T>
inline constexpr auto kNamesOf = nullptr;
template <>
inline constexpr auto kNamesOf<LogLevel> = std::span(kLogLevels);
template <>
inline constexpr auto kNamesOf<FormChoice> = std::span(kFormChoices);
template <>
inline constexpr auto kNamesOf<DispatchChoice> = std::span(kDispatchChoices);
template <>
inline constexpr auto kNamesOf<FenceChoice> = std::span(kFenceChoices);
template <>
inline constexpr auto kNamesOf<UnfencedChoice> = std::span(kUnfencedChoices);
template <>
inline constexpr auto kNamesOf<BlockedEngine> = std::span(kBlockedEngines);
template <>
inline constexpr auto kNamesOf<SharingChoice> = std::span(kSharingChoices);
template <>
inline constexpr auto kNamesOf<SpareChoice> = std::span(kSpareChoices);

/// A row of Table I: whether newcomers of each class may run beside the running kernel.
using CorunRow = std::array<bool, scheduler::kClassCount>;

template <typename T>
constexpr KeyType key_type_of() {
  if constexpr (std::same_as<T, bool>) return KeyType::kFlag;
  if constexpr (std::same_as<T, CorunRow>) return KeyType::kNames;
  if constexpr (std::floating_point<T> || std::same_as<T, scheduler::Milliseconds>)
    return KeyType::kReal;
  if constexpr (std::integral<T> && !std::same_as<T, bool>) return KeyType::kWhole;
  return KeyType::kText;
}

/// "text" as TOML: a basic string.
inline std::string in_quotes(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) {
      out += fmt::format("\\u{:04x}", byte);
    } else {
      if (c == '"' || c == '\\') out += '\\';
      out += c;
    }
  }
  return out + '"';
}

/// `value` as a floating point number, also where it is whole.
inline std::string real_text(double value) {
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".en") == std::string::npos) text += ".0";
  return text;
}

inline Result<double> number_in(const KeyValue& value, double least, double most) {
  const auto* const real = std::get_if<double>(&value);
  const auto* const whole = std::get_if<std::int64_t>(&value);
  const double number = real != nullptr    ? *real
                        : whole != nullptr ? static_cast<double>(*whole)
                                           : std::nan("");
  if (!(number >= least && number <= most))
    return bad(fmt::format("expected a number from {} to {}", least, most));
  return number;
}

/// One set of functions for each type of a member: read() checks, write() is TOML.
template <typename T>
struct ValueOf;

template <>
struct ValueOf<bool> {
  static Result<void> read(const auto& /*key*/, const KeyValue& value, bool& member) {
    const auto* const flag = std::get_if<bool>(&value);
    if (flag == nullptr) return bad("expected true or false");
    member = *flag;
    return {};
  }
  static std::string write(bool member) { return member ? "true" : "false"; }
};

template <std::integral T>
struct ValueOf<T> {
  static Result<void> read(const auto& key, const KeyValue& value, T& member) {
    const auto* const whole = std::get_if<std::int64_t>(&value);
    if (whole == nullptr || static_cast<double>(*whole) < key.least ||
        static_cast<double>(*whole) > key.most)
      return bad(fmt::format("expected a whole number from {} to {}", key.least, key.most));
    member = static_cast<T>(*whole);
    return {};
  }
  static std::string write(T member) { return std::to_string(member); }
};

template <>
struct ValueOf<double> {
  static Result<void> read(const auto& key, const KeyValue& value, double& member) {
    const auto number = number_in(value, key.least, key.most);
    if (!number) return std::unexpected(number.error());
    member = *number;
    return {};
  }
  static std::string write(double member) { return real_text(member); }
};

template <>
struct ValueOf<scheduler::Milliseconds> {
  static Result<void> read(const auto& key, const KeyValue& value,
                           scheduler::Milliseconds& member) {
    const auto number = number_in(value, key.least, key.most);
    if (!number) return std::unexpected(number.error());
    member = scheduler::Milliseconds(*number);
    return {};
  }
  static std::string write(scheduler::Milliseconds member) { return real_text(member.count()); }
};

template <>
struct ValueOf<std::string> {
  static Result<void> read(const auto& key, const KeyValue& value, std::string& member) {
    const auto* const text = std::get_if<std::string>(&value);
    if (text == nullptr) return bad("expected a string");
    if (key.choices != nullptr) {
      const auto known = key.choices();
      if (std::ranges::find(known, *text) == known.end())
        return bad(fmt::format("expected one of {}", fmt::join(known, ", ")));
    }
    member = *text;
    return {};
  }
  static std::string write(const std::string& member) { return in_quotes(member); }
};

/// true and false stand for "always" and "never", where there are these.
template <typename T>
requires std::is_enum_v<T>
struct ValueOf<T> {
  static Result<void> read(const auto& key, const KeyValue& value, T& member) {
    const auto* const text = std::get_if<std::string>(&value);
    const auto* const flag = std::get_if<bool>(&value);
    for (const auto& [name, each] : kNamesOf<T>) {
      const bool is_meant =
          flag != nullptr ? name == (*flag ? "always" : "never") : text != nullptr && *text == name;
      if (!is_meant) continue;
      member = each;
      return {};
    }
    return bad(fmt::format("expected one of {}", fmt::join(key.choices(), ", ")));
  }
  static std::string write(T member) {
    const auto names = kNamesOf<T>;
    const auto found = std::ranges::find(names, member, [](const auto& row) { return row.second; });
    return in_quotes(found->first);
  }
};

/// A number of bytes as text: a plain number, or a string with a unit.
inline std::string bytes_text(const KeyValue& value) {
  if (const auto* const number = std::get_if<std::int64_t>(&value)) return std::to_string(*number);
  const auto* const text = std::get_if<std::string>(&value);
  return text != nullptr ? *text : std::string();
}

template <>
struct ValueOf<ByteSize> {
  static Result<void> read(const auto& /*key*/, const KeyValue& value, ByteSize& member) {
    const auto size = parse_size(bytes_text(value));
    if (!size) return std::unexpected(size.error());
    member = *size;
    return {};
  }
  static std::string write(ByteSize member) {
    constexpr std::string_view kUnits = " KMGT";
    std::size_t unit = 0;
    std::uint64_t number = member.bytes;
    for (; number != 0 && number % 1024 == 0 && unit + 1 < kUnits.size(); ++unit) number /= 1024;
    return unit == 0 ? in_quotes(std::to_string(number))
                     : in_quotes(fmt::format("{}{}", number, kUnits[unit]));
  }
};

template <>
struct ValueOf<MemoryLimit> {
  static Result<void> read(const auto& /*key*/, const KeyValue& value, MemoryLimit& member) {
    const auto limit = parse_memory_limit(bytes_text(value));
    if (!limit) return std::unexpected(limit.error());
    member = *limit;
    return {};
  }
  static std::string write(MemoryLimit member) {
    return member.is_percent ? in_quotes(fmt::format("{}%", member.value))
                             : ValueOf<ByteSize>::write({member.value});
  }
};

template <>
struct ValueOf<CorunRow> {
  static Result<void> read(const auto& /*key*/, const KeyValue& value, CorunRow& member) {
    const auto wrong = [] { return bad("expected five of \"corun\" and \"solo\""); };
    const auto* const cells = std::get_if<std::vector<std::string>>(&value);
    if (cells == nullptr || cells->size() != member.size()) return wrong();
    CorunRow row{};
    for (std::size_t column = 0; column < row.size(); ++column) {
      const std::string& cell = (*cells)[column];
      if (cell != "corun" && cell != "solo") return wrong();
      row[column] = cell == "corun";
    }
    member = row;
    return {};
  }
  static std::string write(const CorunRow& member) {
    std::vector<std::string_view> cells;
    for (const bool corun : member) cells.emplace_back(corun ? "\"corun\"" : "\"solo\"");
    return fmt::format("[{}]", fmt::join(cells, ", "));
  }
};

}  // namespace slate::daemon
