// FormChoice: the form that the administrator wants kernels in (`form`). DispatchChoice: what
// starts the workers of resizable launches (`dispatch`).
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>

namespace slate::daemon {

/// native, worker, slice: that form wherever it is legal. auto: the policy decides.
enum class FormChoice : std::uint8_t { kAuto, kNative, kWorker, kSlice };

inline constexpr std::pair<std::string_view, FormChoice> kFormChoices[] = {
    {"auto", FormChoice::kAuto},
    {"native", FormChoice::kNative},
    {"worker", FormChoice::kWorker},
    {"slice", FormChoice::kSlice},
};

/// nullopt for any other name.
inline std::optional<FormChoice> parse_form_choice(std::string_view name) {
  const auto* found =
      std::ranges::find(kFormChoices, name, [](const auto& row) { return row.first; });
  if (found == std::end(kFormChoices)) return std::nullopt;
  return found->second;
}
inline std::string_view form_choice_name(FormChoice choice) {
  return std::ranges::find(kFormChoices, choice, [](const auto& row) { return row.second; })->first;
}

enum class DispatchChoice : std::uint8_t { kHost, kDevice };

inline constexpr std::pair<std::string_view, DispatchChoice> kDispatchChoices[] = {
    {"host", DispatchChoice::kHost},
    {"device", DispatchChoice::kDevice},
};

inline std::string_view dispatch_choice_name(DispatchChoice choice) {
  return kDispatchChoices[static_cast<std::size_t>(choice)].first;
}

}  // namespace slate::daemon
