#include "daemon/engine/ordered_forms.h"

#include <algorithm>
#include <utility>

#include "base/out_of_memory.h"
#include "base/user_log.h"
#include "daemon/engine/made_modules.h"

namespace slate::daemon {
namespace {

/// A kernel whose launches took so long in all has cost more than its forms will.
constexpr double kMattersMs = 10;

bool matters(const FunctionRecord& kernel) {
  double longest = 0;
  for (const ProfileRecord& profile : kernel.profiles)
    longest = std::max(longest, profile.expected_ms);
  return longest * static_cast<double>(kernel.launches) >= kMattersMs;
}

Fencing fencing_of(const FunctionRecord& kernel) {
  return kernel.is_fenced ? Fencing::kForms : Fencing::kNone;
}

}  // namespace

void OrderedForms::attend(FunctionRecord& kernel, const LoadedImage& image) {
  ++kernel.launches;
  if (kernel.form_progress == FormProgress::kNew) {
    // What is there already is worth having from the beginning.
    auto made = maker_->at_once()
                    ? maker_->make(image.source, *kernel.name, loader_, fencing_of(kernel))
                    : maker_->find(*image.source, *kernel.name, fencing_of(kernel));
    if (made != nullptr) return settle(kernel, std::move(made), image.own);
    kernel.form_progress = FormProgress::kWatched;
  } else if (kernel.form_progress == FormProgress::kOrdered && kernel.form_order->done()) {
    settle(kernel, kernel.form_order->outcome(), image.own);
  }
}

void OrderedForms::order(FunctionRecord& kernel, const LoadedImage& image) {
  if (!matters(kernel)) return;
  kernel.form_order =
      maker_->order({loader_.uid, session_}, image.source, *kernel.name, fencing_of(kernel));
  kernel.form_progress = FormProgress::kOrdered;
}

void OrderedForms::settle(FunctionRecord& kernel, FormMaker::Outcome made,
                          const ProgramModule& own) {
  kernel.form_progress = FormProgress::kSettled;
  kernel.form_order.reset();
  if (!made->code.empty()) {
    const auto loaded = or_out_of_memory([&] { return load(kernel, *made, own); });
    if (!loaded) {
      log_of_user(loader_.uid, LogLevel::kInfo, "{} has no forms: {}", *kernel.name,
                  loaded.error().message);
      return;
    }
  }
  kernel.made = std::move(made);
  kernel.forms = &kernel.made->forms;
}

Result<void> OrderedForms::load(FunctionRecord& kernel, const MadeForms& made,
                                const ProgramModule& own) {
  const auto module = load_made(device_, loaded_, made, own);
  if (!module) return std::unexpected(module.error());
  kernel.form_module = *module;
  return kernel.is_fenced ? fenced_.tell(kernel, *module, made, own) : Result<void>();
}

}  // namespace slate::daemon
