// Sums over completions and progress reports.
#include "scheduler/measurement.h"

#include <algorithm>

namespace slate::scheduler {

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

void Measurement::begin(std::size_t members) {
  size_ = members;
  sums_.fill({});
}

void Measurement::add(std::size_t member, Milliseconds alone, Milliseconds device,
                      std::uint32_t launches) {
  Sum& sum = sums_[member];
  sum.alone += alone.count() * launches;
  sum.device += device.count() * launches;
  sum.launches += launches;
  sum.longest = std::max(sum.longest, device.count());
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

std::span<const double> Measurement::rates() const {
  for (std::size_t i = 0; i < size_; ++i) {
    rates_[i] = sums_[i].device > 0 ? sums_[i].alone / sums_[i].device : 0;
  }
  return {rates_.data(), size_};
}

}  // namespace slate::scheduler
