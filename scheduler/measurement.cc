// Sums over completions and progress reports.
#include "scheduler/measurement.h"

#include <algorithm>

#include "scheduler/forms.h"
#include "scheduler/roster.h"

namespace slate::scheduler {

ProgressSpan::Step ProgressSpan::next(const Progress& progress) {
  const bool follows = valid_ && last_.placement == progress.placement &&
                       last_.tag == progress.tag && last_.kernel == progress.kernel &&
                       progress.blocks_done >= last_.blocks_done && progress.at > last_.at;
  Step step;
  if (!follows) begins_ = progress.at + ticks(kChange);
  if (follows && last_.at >= begins_ && progress.blocks > 0) {
    step.ms = Milliseconds(progress.at - last_.at).count();
    step.grids = static_cast<double>(progress.blocks_done - last_.blocks_done) /
                 static_cast<double>(progress.blocks);
  }
  last_ = progress;
  valid_ = true;
  return step;
}

void Measurement::begin(std::size_t members) {
  size_ = members;
  sums_.fill({});
}

void Measurement::add(std::size_t member, Milliseconds alone, const Completion& completion) {
  Sum& sum = sums_[member];
  if (sum.batches++ == 0) {
    sum.first = completion.ended;
  } else {
    sum.done += alone.count();
  }
  sum.last = std::max(sum.last, completion.ended);
  sum.launches += completion.launches;
  if (!completion.timed) return;
  sum.longest = std::max(sum.longest, completion.device_time.count());
  sum.alone += alone.count();
  sum.device += completion.device_time.count() * completion.launches;
}

void Measurement::add_progress(std::size_t member, const Progress& progress, Milliseconds alone) {
  Sum& sum = sums_[member];
  const ProgressSpan::Step step = sum.span.next(progress);
  sum.alone += step.grids * alone.count();
  sum.device += step.ms;
  sum.followed += step.ms;
}

bool Measurement::seen(std::uint32_t launches, Milliseconds measure) const {
  return std::all_of(
      sums_.begin(), sums_.begin() + static_cast<std::ptrdiff_t>(size_), [&](const Sum& sum) {
        return sum.launches >= launches || (sum.launches > 0 && sum.longest >= measure.count()) ||
               sum.followed >= measure.count();
      });
}

bool Measurement::covers(Milliseconds time) const {
  const auto covers = [&](const Sum& sum) {
    return (sum.batches >= 2 && sum.wall() >= time) || sum.longest >= time.count() ||
           sum.followed >= time.count();
  };
  return std::all_of(sums_.begin(), sums_.begin() + static_cast<std::ptrdiff_t>(size_), covers);
}

std::vector<double> Measurement::rates() const {
  std::vector<double> rates(size_);
  for (std::size_t i = 0; i < size_; ++i) {
    if (sums_[i].device > 0) rates[i] = sums_[i].alone / sums_[i].device;
  }
  return rates;
}

std::vector<double> Measurement::throughputs() const {
  std::vector<double> rates = this->rates();
  for (std::size_t i = 0; i < size_; ++i) {
    const Sum& sum = sums_[i];
    if (sum.batches >= 2 && sum.wall().count() > 0) rates[i] = sum.done / sum.wall().count();
  }
  return rates;
}

}  // namespace slate::scheduler
