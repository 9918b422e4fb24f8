#include "injector/source/messages.h"

#include <charconv>
#include <optional>
#include <utility>

namespace slate::source {
namespace {

std::optional<std::uint32_t> number(std::string_view text) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end == text.data()) return std::nullopt;
  return value;
}

/// "FILE(LINE): " at the start of a line; `rest` is what follows.
std::optional<Place> place_of(std::string_view line, std::string_view& rest) {
  for (auto close = line.find("): "); close != std::string_view::npos;
       close = line.find("): ", close + 1)) {
    const auto open = line.rfind('(', close);
    if (open == std::string_view::npos || open == 0) continue;
    const auto value = number(line.substr(open + 1, close - open - 1));
    if (!value) continue;
    rest = line.substr(close + 3);
    return Place{std::string(line.substr(0, open)), *value};
  }
  return std::nullopt;
}

/// "... at line 12 of FILE"
std::optional<Place> place_behind(std::string_view line) {
  const auto at = line.rfind(" at line ");
  if (at == std::string_view::npos) return std::nullopt;
  const auto of = line.find(" of ", at);
  if (of == std::string_view::npos) return std::nullopt;
  const auto value = number(line.substr(at + 9));
  if (!value) return std::nullopt;
  std::string_view file = line.substr(of + 4);
  while (!file.empty() && (file.back() == '"' || file.back() == ' ')) file.remove_suffix(1);
  while (!file.empty() && file.front() == '"') file.remove_prefix(1);
  return Place{std::string(file), *value};
}

/// Calls `take` for each line.
template <typename Take>
void each_line(std::string_view log, const Take& take) {
  while (!log.empty()) {
    const auto end = log.find('\n');
    take(log.substr(0, end));
    if (end == std::string_view::npos) break;
    log.remove_prefix(end + 1);
  }
}

}  // namespace

std::vector<Message> errors_in(std::string_view log) {
  std::vector<Message> errors;
  bool in_error = false;
  each_line(log, [&](std::string_view line) {
    std::string_view rest;
    if (auto place = place_of(line, rest)) {
      in_error &= rest.starts_with("note");  // belongs to the error before it
      for (const std::string_view word : {"error", "catastrophic error"}) {
        if (!rest.starts_with(word)) continue;
        const auto colon = rest.find(": ");
        if (colon == std::string_view::npos) continue;
        errors.push_back({.place = std::move(*place),
                          .text = std::string(rest.substr(colon + 2)),
                          .whole = std::string(line)});
        in_error = true;
        break;
      }
    } else if (in_error) {
      if (const auto open = line.find("instantiation of \""); open != std::string_view::npos) {
        const auto first = open + 18;
        errors.back().during.emplace_back(line.substr(first, line.find('"', first) - first));
      }
      if (auto behind = place_behind(line)) errors.back().behind.push_back(std::move(*behind));
    }
  });
  return errors;
}

std::string warnings_in(std::string_view log, const std::vector<std::string>& toolkit) {
  std::string result;
  bool wanted = false;
  each_line(log, [&](std::string_view line) {
    std::string_view rest;
    if (const auto place = place_of(line, rest)) {
      wanted = rest.starts_with("warning") || rest.starts_with("remark");
      for (const auto& directory : toolkit) wanted &= !place->file.starts_with(directory);
    }
    if (wanted && !line.starts_with("Remark: The warnings can be")) {
      result.append(line).append("\n");
    }
  });
  while (result.ends_with("\n\n")) result.pop_back();
  return result;
}

std::string quoted_name(std::string_view message) {
  const auto open = message.find('"');
  if (open == std::string_view::npos) return {};
  const auto close = message.find('"', open + 1);
  if (close == std::string_view::npos) return {};
  std::string_view name = message.substr(open + 1, close - open - 1);
  if (const auto angle = name.find('<'); angle != std::string_view::npos && angle > 0) {
    name = name.substr(0, angle);
  }
  if (const auto scope = name.rfind("::"); scope != std::string_view::npos) {
    name = name.substr(scope + 2);
  }
  return std::string(name);
}

}  // namespace slate::source
