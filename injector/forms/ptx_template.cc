#include "injector/forms/ptx_template.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>

#include "base/check.h"
#include "injector/forms/launch_parameters.h"

namespace slate::injector {
namespace {

struct Name {
  std::string_view name;
  std::uint64_t value;
  bool is_parameter;
};

#define SLATE_MEMBER(member)                          \
  Name {                                              \
#member, offsetof(LaunchParameters, member), true \
  }
#define SLATE_AXIS(name, member, offset)                      \
  Name {                                                      \
    name, offsetof(LaunchParameters, member) + (offset), true \
  }

#define SLATE_PROFILE(member)                          \
  Name {                                               \
#member, offsetof(ProfileParameters, member), true \
  }

constexpr auto kNames = std::to_array<Name>({
    SLATE_AXIS("extent_x", extent_x, offsetof(Divisor, value)),
    SLATE_AXIS("magic_x", extent_x, offsetof(Divisor, magic)),
    SLATE_AXIS("shift_x", extent_x, offsetof(Divisor, shift)),
    SLATE_AXIS("extent_y", extent_y, offsetof(Divisor, value)),
    SLATE_AXIS("magic_y", extent_y, offsetof(Divisor, magic)),
    SLATE_AXIS("shift_y", extent_y, offsetof(Divisor, shift)),
    SLATE_MEMBER(extent_z),
    SLATE_MEMBER(first),
    SLATE_MEMBER(control),
    SLATE_MEMBER(signal),
    SLATE_MEMBER(tasks_0),
    SLATE_MEMBER(size_0),
    SLATE_MEMBER(tasks_1),
    SLATE_MEMBER(size_1),
    SLATE_MEMBER(first_1),
    SLATE_MEMBER(first_2),
    SLATE_MEMBER(tasks),
    SLATE_MEMBER(flags),
    SLATE_MEMBER(queue_start),
    SLATE_MEMBER(prefetch_below),
    SLATE_MEMBER(exit_target),
    SLATE_MEMBER(generation),
    SLATE_MEMBER(last_sm),
    SLATE_PROFILE(counters),
    SLATE_PROFILE(sample),
    {"NEXT", ControlBlock::kNextOffset, false},
    {"STATE", ControlBlock::kStateOffset, false},
    {"ARRIVED", ControlBlock::kArrivedOffset, false},
    {"SM", ControlBlock::kSmOffset, false},
    {"CLOSED", kClosed, false},
    {"NEXT_GENERATION", kNextGeneration, false},
    {"MOST", kMostWorkers, false},
    {"SUPPLEMENTARY", kSupplementary, false},
    {"STATIC", kStaticFirstTask, false},
    {"FINISHED", kFinished, false},
    {"RETREATED", kRetreated, false},
    {"SCATTER", kProfileScatter, false},
    {"LAST_COPY", kProfileCopies - 1, false},
});

#undef SLATE_MEMBER
#undef SLATE_AXIS
#undef SLATE_PROFILE

std::string value_of(std::string_view name) {
  const auto found = std::ranges::find(kNames, name, &Name::name);
  SLATE_CHECK(found != kNames.end());
  if (!found->is_parameter) return std::to_string(found->value);
  return std::string(kParameterName) + "+" + std::to_string(found->value);
}

}  // namespace

std::string expand(std::string_view text) {
  std::string out;
  out.reserve(text.size() * 2);
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '~') {
      out += "%__slate_";
    } else if (text[i] == '$') {
      out += "$__slate_";
    } else if (text[i] == '<') {
      const std::size_t end = text.find('>', i);
      out += value_of(text.substr(i + 1, end - i - 1));
      i = end;
    } else {
      out += text[i];
    }
  }
  return out;
}

}  // namespace slate::injector
