// Sums over completions and progress reports.
#include "scheduler/measurement.h"

#include <algorithm>

namespace slate::scheduler {

namespace {
constexpr double kAtEnds = 1.5;
}  // namespace

ProgressSpan::Step ProgressSpan::next(const Progress& progress) {
  const bool follows = valid_ && last_.placement == progress.placement &&
                       last_.tag == progress.tag && last_.kernel == progress.kernel &&
                       progress.blocks_done >= last_.blocks_done && progress.at > last_.at;
  Step step;
  if (follows && progress.blocks > 0) {
    step.ms = Milliseconds(progress.at - last_.at).count();
    step.grids = static_cast<double>(progress.blocks_done - last_.blocks_done) /
                 static_cast<double>(progress.blocks);
  }
  last_ = progress;
  valid_ = true;
  return step;
}

void Measurement::begin(std::size_t members, Time now) {
  size_ = members;
  begun_ = now;
  sums_.fill({});
  from_ = kNever;
  until_ = {};
}

void Measurement::add(std::size_t member, Milliseconds alone, const Completion& completion) {
  Sum& sum = sums_[member];
  const Milliseconds took = completion.device_time * completion.launches;
  sum.done += (completion.timed ? alone : completion.device_time).count() * completion.launches;
  sum.ended += completion.launches;
  until_ = std::max(until_, completion.ended);
  if (!completion.timed) return;
  sum.alone += alone.count() * completion.launches;
  sum.device += took.count();
  sum.launches += completion.launches;
  sum.longest = std::max(sum.longest, completion.device_time.count());
  const Time started = completion.ended - std::chrono::duration_cast<Time::duration>(took);
  from_ = std::min(from_, std::max(begun_, started));
}

Milliseconds Measurement::wall() const {
  return until_ > from_ ? Milliseconds(until_ - from_) : Milliseconds(0);
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

std::vector<double> Measurement::rates() const {
  std::vector<double> rates(size_);
  for (std::size_t i = 0; i < size_; ++i) {
    if (sums_[i].device > 0) rates[i] = sums_[i].alone / sums_[i].device;
  }
  return rates;
}

std::vector<double> Measurement::rates_with_gaps() const {
  std::vector<double> rates = this->rates();
  for (std::size_t i = 0; i < size_; ++i) {
    const Sum& sum = sums_[i];
    // How much of the time its launches fill is known up to about one and a half of them at the
    // ends.
    const double filled = sum.ended > 0 ? wall().count() * (1 - kAtEnds / sum.ended) : 0;
    if (filled > 0) rates[i] = std::min(rates[i], sum.done / filled);
  }
  return rates;
}

}  // namespace slate::scheduler
