#include "daemon/supervisor/session_rules.h"

#include <fmt/format.h>

#include <algorithm>

namespace slate::daemon {
namespace {

template <typename T>
void at_most(T& value, const std::optional<T>& asked, T most) {
  if (asked) value = std::min(*asked, most);
}

}  // namespace

Result<void> check_asked(const AskedSettings& asked) {
  if (!asked.weight && !asked.priority)
    return fail(ErrorCode::kInvalidValue, "neither a weight nor a priority was given");
  if (asked.weight && !is_weight(*asked.weight)) {
    return fail(ErrorCode::kInvalidValue,
                fmt::format("a weight is from {} to {}", kLeastWeight, kMostWeight));
  }
  if (asked.priority && !is_priority(*asked.priority)) {
    return fail(ErrorCode::kInvalidValue,
                fmt::format("a priority is from {} to {}", kLeastPriority, kMostPriority));
  }
  return {};
}

SessionSettings most_of(const UserRules& rules, const std::string& program, std::uint32_t uid) {
  if (is_administrator(uid)) return {kMostWeight, kMostPriority};
  const SessionSettings configured = rules.program_of(program, uid);
  return {std::max(rules.config().max_weight, configured.weight), configured.priority};
}

Standing at_start(const UserRules& rules, const std::string& program, std::uint32_t uid,
                  const AskedSettings& wishes, const std::optional<KeptSettings>& kept) {
  Standing standing{rules.program_of(program, uid), most_of(rules, program, uid)};
  SessionSettings& now = standing.now;
  if (wishes.weight && is_weight(*wishes.weight))
    at_most(now.weight, wishes.weight, standing.most.weight);
  if (wishes.priority && is_priority(*wishes.priority))
    at_most(now.priority, wishes.priority, standing.most.priority);
  if (!kept) return standing;
  if (kept->by_administrator && !is_administrator(uid)) {
    standing.most.weight = kept->weight.value_or(standing.most.weight);
    standing.most.priority = kept->priority.value_or(standing.most.priority);
  }
  at_most(now.weight, kept->weight, standing.most.weight);
  at_most(now.priority, kept->priority, standing.most.priority);
  return standing;
}

Result<Standing> changed(const Standing& before, const AskedSettings& asked, std::uint32_t asker) {
  if (auto sane = check_asked(asked); !sane) return std::unexpected(sane.error());
  Standing after = before;
  after.now.weight = asked.weight.value_or(before.now.weight);
  after.now.priority = asked.priority.value_or(before.now.priority);
  if (is_administrator(asker)) {
    after.most.weight = asked.weight.value_or(before.most.weight);
    after.most.priority = asked.priority.value_or(before.most.priority);
    return after;
  }
  if (asked.weight && *asked.weight > before.most.weight) {
    return fail(ErrorCode::kPermission,
                fmt::format("a weight above {} needs the administrator", before.most.weight));
  }
  if (asked.priority && *asked.priority > before.most.priority) {
    return fail(ErrorCode::kPermission,
                fmt::format("a priority above {} needs the administrator", before.most.priority));
  }
  return after;
}

}  // namespace slate::daemon
