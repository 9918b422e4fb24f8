// The table of policies: a new one is a row here.
#include "scheduler/policies.h"

#include <algorithm>
#include <array>
#include <string>

#include "scheduler/adaptive.h"
#include "scheduler/fifo.h"
#include "scheduler/table.h"
#include "scheduler/timeslice.h"

namespace slate::scheduler {
namespace {

using Maker = std::unique_ptr<Policy> (*)(const Settings&, const Machine&, ProfileTable&);

struct Row {
  std::string_view name;
  Maker make;
};

template <typename P>
std::unique_ptr<Policy> make(const Settings& settings, const Machine&, ProfileTable& profiles) {
  return std::make_unique<P>(settings, profiles);
}

constexpr std::array kRows = {
    Row{"fifo", make<FifoPolicy>},
    Row{"timeslice", make<TimeslicePolicy>},
    Row{"table", make<TablePolicy>},
    Row{"adaptive", make<AdaptivePolicy>},
};

constexpr auto kNames = [] {
  std::array<std::string_view, kRows.size()> names;
  std::ranges::transform(kRows, names.begin(), &Row::name);
  return names;
}();

}  // namespace

std::span<const std::string_view> policy_names() {
  return kNames;
}

Result<std::unique_ptr<Policy>> make_policy(std::string_view name, const Settings& settings,
                                            const Machine& machine, ProfileTable& profiles) {
  const auto row = std::ranges::find(kRows, name, &Row::name);
  if (row != kRows.end()) return row->make(settings, machine, profiles);
  std::string known;
  for (const std::string_view each : kNames) known.append(known.empty() ? "" : ", ").append(each);
  return fail(ErrorCode::kInvalidValue,
              "no policy is called \"" + std::string(name) + "\"; there are " + known);
}

}  // namespace slate::scheduler
