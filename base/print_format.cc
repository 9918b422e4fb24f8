#include "base/print_format.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdio>
#include <cstring>

namespace slate {
namespace {

/// Widths and precisions beyond this would let a kernel make the host allocate at will.
constexpr int kMaxField = 4096;
constexpr std::size_t kMaxFlags = 32;

/// One conversion of a format: "%-8.3lld" -> flags "-8.3", length "ll", kind 'd'.
struct Conversion {
  std::string flags;
  int stars = 0;
  const char* length = "";  // of an integer
  char kind = 0;            // 0: malformed
  std::size_t end = 0;      // index after it

  bool is_wide() const { return length[0] == 'l'; }
};

bool is_one_of(char c, const char* set) {
  return c != '\0' && std::strchr(set, c) != nullptr;
}

Conversion parse_conversion(std::string_view format, std::size_t at) {
  Conversion result;
  std::size_t i = at + 1;
  for (; i < format.size() && is_one_of(format[i], "-+ #0123456789.*"); ++i) {
    result.stars += format[i] == '*';
    result.flags += format[i];
  }
  int longs = 0;
  for (; i < format.size() && is_one_of(format[i], "hlLqjzt"); ++i) {
    longs += format[i] == 'h' ? -1 : 1;
  }
  constexpr const char* kLengths[] = {"hh", "h", "", "ll"};
  result.length = kLengths[std::clamp(longs, -2, 1) + 2];
  result.end = i;
  if (i == format.size() || result.stars > 2 || result.flags.size() > kMaxFlags) return result;
  result.kind = format[i];
  result.end = i + 1;
  return result;
}

/// False if a literal width or precision is beyond kMaxField.
bool is_reasonable(const Conversion& conversion) {
  int number = 0;
  for (const char c : conversion.flags) {
    number = c >= '0' && c <= '9' ? number * 10 + (c - '0') : 0;
    if (number > kMaxField) return false;
  }
  return true;
}

template <typename T>
std::string print_one(const Conversion& conversion, const char* length,
                      const std::array<int, 2>& stars, T value) {
  const std::string format = "%" + conversion.flags + length + conversion.kind;
  std::string out(512, '\0');
  for (int attempt = 0; attempt < 2; ++attempt) {
    int written = 0;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    if (conversion.stars == 0)
      written = std::snprintf(out.data(), out.size(), format.c_str(), value);
    if (conversion.stars == 1) {
      written = std::snprintf(out.data(), out.size(), format.c_str(), stars[0], value);
    }
    if (conversion.stars == 2) {
      written = std::snprintf(out.data(), out.size(), format.c_str(), stars[0], stars[1], value);
    }
#pragma GCC diagnostic pop
    if (written < 0) return "";
    const auto size = static_cast<std::size_t>(written);
    if (size < out.size()) {
      out.resize(size);
      return out;
    }
    out.resize(size + 1);
  }
  return "";
}

/// Nothing when an argument is missing or the conversion is none.
std::optional<std::string> convert(const Conversion& conversion, const PrintArguments& arguments) {
  std::array<int, 2> stars{};
  for (int star = 0; star < conversion.stars; ++star) {
    const auto value = arguments.number(4);
    if (!value) return std::nullopt;
    stars[static_cast<std::size_t>(star)] =
        std::clamp(static_cast<int>(*value), -kMaxField, kMaxField);
  }
  const char kind = conversion.kind;
  if (kind == 's') {
    const auto text = arguments.text();
    if (!text) return std::nullopt;
    return print_one(conversion, "", stars, text->c_str());
  }
  const bool is_integer = is_one_of(kind, "diuoxX");
  const bool is_real = is_one_of(kind, "fFeEgGaA");
  if (!is_integer && !is_real && kind != 'c' && kind != 'p') return std::nullopt;
  const bool is_wide = is_real || kind == 'p' || (is_integer && conversion.is_wide());
  const auto value = arguments.number(is_wide ? 8 : 4);
  if (!value) return std::nullopt;
  if (is_real) return print_one(conversion, "", stars, std::bit_cast<double>(*value));
  if (kind == 'p') return print_one(conversion, "", stars, reinterpret_cast<void*>(*value));
  if (is_wide) return print_one(conversion, "ll", stars, static_cast<long long>(*value));
  return print_one(conversion, is_integer ? conversion.length : "", stars,
                   static_cast<int>(*value));
}

}  // namespace

std::string format_printed(std::string_view format, const PrintArguments& arguments) {
  std::string out;
  for (std::size_t i = 0; i < format.size();) {
    if (format[i] != '%') {
      out += format[i++];
      continue;
    }
    const Conversion conversion = parse_conversion(format, i);
    const std::string_view as_it_stands = format.substr(i, conversion.end - i);
    i = conversion.end;
    if (conversion.kind == '%') {
      out += '%';
      continue;
    }
    if (!is_reasonable(conversion)) break;
    const auto text = conversion.kind == 0 ? std::nullopt : convert(conversion, arguments);
    out += text ? *text : as_it_stands;
  }
  return out;
}

}  // namespace slate
