#include "scheduler/time_share.h"

namespace slate::scheduler {
namespace {

/// Whether others wait for the engine, and share the device with it.
bool counts(const ShownTime& other, Time now) {
  return other.is_busy() && now - other.at <= ticks(TimeShare::kSilent);
}

}  // namespace

void TimeShare::update(Time now, const EngineLoad& load, std::span<const ShownTime> others) {
  now = std::max(now, shown_.at);
  charge(now);
  note_work(now, load.runs);
  if (load.weight > 0) weight_ = load.weight;
  const bool was_busy = shown_.is_busy();
  const bool is_busy = load.runs || load.waits || now < lingers_until_;
  if (is_busy && !was_busy) join(now, others);
  shown_.uses = is_busy;
  compare(now, others);
  // Launches that were begun before go on, and count.
  if (shown_.holds && !load.runs) shown_.uses = false;
  plan(now, !others.empty());
}

/// By what was so at the last update.
void TimeShare::charge(Time now) {
  const Milliseconds elapsed = now - shown_.at;
  shown_.part = shown_.part_at(now, 1.0 / sharers_);
  if (shown_.uses && is_contended_)
    shown_.received_ms += std::min(elapsed, kSilent).count() / (sharers_ * weight_);
  shown_.at = now;
}

void TimeShare::note_work(Time now, bool runs) {
  if (runs) {
    if (!runs_since_) runs_since_ = now;
  } else if (runs_since_) {
    const Milliseconds took = now - *runs_since_;
    lingers_until_ = now + ticks(std::clamp(took, kLeastLinger, kMostLinger));
    runs_since_.reset();
  }
}

/// Idling saves nothing up. Where no other engine is busy, all start level.
void TimeShare::join(Time now, std::span<const ShownTime> others) {
  double least = 0, most = 0;
  bool any = false;
  for (const ShownTime& other : others) {
    most = std::max(most, other.received_ms);
    if (!counts(other, now)) continue;
    least = any ? std::min(least, other.received_ms) : other.received_ms;
    any = true;
  }
  shown_.received_ms = std::max(shown_.received_ms, any ? least : most);
}

/// The engine that is furthest behind holds nothing, so there is always one that goes on.
void TimeShare::compare(Time now, std::span<const ShownTime> others) {
  double least = shown_.received_ms;
  sharers_ = 1;
  is_contended_ = false;
  for (const ShownTime& other : others) {
    if (!counts(other, now)) continue;
    is_contended_ = true;
    least = std::min(least, other.received_ms);
    if (other.uses) ++sharers_;
  }
  if (is_contended_) beside_ = now;
  shown_.received_ms = std::min(shown_.received_ms, least + kMostLead.count() / weight_);
  const Milliseconds lead((shown_.received_ms - least) * weight_);
  shown_.holds = shown_.uses && (shown_.holds ? lead.count() > 0 : lead > kLag);
}

void TimeShare::plan(Time now, bool has_others) {
  again_ = kNever;
  if (!shown_.is_busy() || !has_others) return;
  const bool meets = beside_ != Time::min() && now - beside_ <= ticks(ShownTime::kRecent);
  again_ = now + ticks(shown_.holds ? kHeldTick : meets ? kTick : kSlowTick);
  if (now < lingers_until_) again_ = std::min(again_, lingers_until_);
}

}  // namespace slate::scheduler
