// TimeSlot: this engine's slot on the page of device time, and the share that it keeps to. Thread:
// one at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "daemon/time_page.h"

namespace slate::daemon {

class TimeSlot {
 public:
  /// `engine`: its serial number.
  TimeSlot(std::unique_ptr<TimePage> page, std::uint64_t engine)
      : page_(std::move(page)), engine_(engine) {}

  /// As TimeShare::update(), with what the others show now.
  void update(scheduler::Time now, const scheduler::EngineLoad& load) {
    page_->read_others(engine_, others_);
    share_.update(now, load, others_);
    page_->show(engine_, share_.shown());
  }
  bool holds() const { return share_.holds(); }
  scheduler::Time again() const { return share_.again(); }

 private:
  const std::unique_ptr<TimePage> page_;
  const std::uint64_t engine_;
  scheduler::TimeShare share_;
  std::vector<scheduler::ShownTime> others_;
};

}  // namespace slate::daemon
