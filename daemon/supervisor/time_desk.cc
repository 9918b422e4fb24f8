#include "daemon/supervisor/time_desk.h"

#include <algorithm>
#include <utility>

#include "base/log.h"

namespace slate::daemon {

void TimeDesk::make_page() {
  auto made = TimePage::make();
  if (made) {
    page_ = std::move(*made);
  } else {
    has_no_page_ = true;
    log_error("engines share the device without weights: {}", made.error().message);
  }
}

void TimeDesk::take_slots_back(std::span<EngineProcess* const> engines) {
  for (const std::uint64_t owner : page_->owners()) {
    if (std::ranges::find(engines, owner, &EngineProcess::serial) != engines.end()) continue;
    page_->take_back(owner);
    told_.erase(owner);
  }
}

void TimeDesk::settle(std::span<EngineProcess* const> engines) {
  if (page_ == nullptr && engines.size() > 1 && !has_no_page_) make_page();
  if (page_ == nullptr) return;
  take_slots_back(engines);
  for (const EngineProcess* const engine : engines) {
    if (!page_->shown_by(engine->serial) && page_->give(engine->serial)) ++arrivals_;
  }
  for (const EngineProcess* const engine : engines) {
    const auto told = told_.find(engine->serial);
    if (told != told_.end() && told->second == arrivals_) continue;
    if (!page_->shown_by(engine->serial)) continue;  // there was no slot left
    const int fds[] = {page_->fd()};
    const bool is_first = told == told_.end();
    // One whose link is full is told by the next call.
    if (engine->link().try_send({.type = LinkType::kShareTime, .number = engine->serial}, {},
                                is_first ? std::span<const int>(fds) : std::span<const int>()))
      told_[engine->serial] = arrivals_;
  }
}

std::optional<scheduler::ShownTime> TimeDesk::shown_by(std::uint64_t engine) const {
  return page_ == nullptr ? std::nullopt : page_->shown_by(engine);
}

nlohmann::json TimeDesk::hand_over(Handover& handover) const {
  return page_ == nullptr ? -1 : handover.pass(page_->fd());
}

Result<void> TimeDesk::take_over(const nlohmann::json& state) {
  UniqueFd fd = Handover::take(state);
  if (!fd) return {};
  auto page = TimePage::from_fd(std::move(fd));
  if (!page) return std::unexpected(page.error());
  page_ = std::move(*page);
  return {};
}

}  // namespace slate::daemon
