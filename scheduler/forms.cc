// The rules by which launches take their forms. Pure functions.
#include "scheduler/forms.h"

#include <algorithm>
#include <bit>

namespace slate::scheduler {
namespace {

const TimeEstimate& alone_in(const KernelProfile& profile, Form form) {
  return profile.alone[static_cast<std::size_t>(form)];
}

// Workers leave when their tasks are done, so other sessions may wait for one task, or for one
// block. With the time to tell the workers that is less than 0.1 ms.
constexpr Milliseconds kLongestTask{0.05};
constexpr std::uint32_t kLargestTask = 64;  // blocks
constexpr std::uint32_t kUnknownTask = 4;   // blocks at most, of which it is not known how long
// Longest task during which the next one is fetched. Fetching hides the way to memory, but a worker
// that has to leave runs that task, too, and one more when it is told late.
constexpr Milliseconds kLongestFetched{0.02};
constexpr std::uint64_t kRounds = 12;  // of tasks for each worker, as launches have by default
constexpr std::uint64_t kLargestUsualTask = 16;
constexpr double kMuchQuicker = 0.75;
constexpr double kCloseForms = 1.15;  // a form that looks slower than this by the other is so

/// Whether the launch goes in slices, so that no session waits for the end of a long kernel.
bool goes_in_slices(const KernelProfile& profile, const WaitingLaunch& launch,
                    const Settings& settings) {
  if (!launch.slice_legal || one_wave(launch)) return false;
  const TimeEstimate& native = alone_in(profile, Form::kNative);
  const TimeEstimate& slice = alone_in(profile, Form::kSlice);
  if (native.known()) {
    const bool slow = slice.known() && slice.ms * settings.worker_floor > native.ms;
    return native.ms > settings.long_kernel.count() && !slow;
  }
  if (slice.known()) return slice.ms > settings.long_kernel.count();
  return launch.wave > 0 && launch.blocks / launch.wave >= settings.unknown_worker_waves;
}

/// The quickest size of tasks of those measured enough; 0 if there is none.
std::uint32_t best_task(const KernelProfile& profile, const Settings& settings) {
  std::uint32_t best = 0;
  double ms = 0;
  for (const auto& [size, time] : profile.tasks) {
    if (time.samples < settings.task_tries || (best != 0 && time.ms >= ms)) continue;
    best = size;
    ms = time.ms;
  }
  return best;
}

/// What to measure next around the best size, or `usual` to begin with; 0: nothing more.
std::uint32_t next_task(const KernelProfile& profile, std::uint32_t usual, std::uint32_t most,
                        const Settings& settings) {
  const std::uint32_t best = best_task(profile, settings);
  if (best == 0) return usual;
  for (const std::uint32_t size : {best * 2, best / 2}) {
    if (size == 0 || size > most) continue;
    const auto known = profile.tasks.find(size);
    if (known == profile.tasks.end() || known->second.samples < settings.task_tries) return size;
  }
  return 0;
}

/// Blocks that a task may have.
std::uint32_t largest_task(const KernelProfile& profile, const WaitingLaunch& launch) {
  const Milliseconds block = block_time(Milliseconds(profile.best_alone().ms), launch);
  if (block.count() <= 0) return kUnknownTask;
  return static_cast<std::uint32_t>(std::clamp<double>(kLongestTask / block, 1, kLargestTask));
}

std::uint32_t usual_task(const WaitingLaunch& launch) {
  if (launch.wave == 0) return 1;
  const std::uint64_t usual = launch.blocks / (launch.wave * kRounds);
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(usual, 1, kLargestUsualTask));
}

/// The form that is slower by little, when it is to be measured again: it may have met a cold
/// device. The more the quicker one is known to take its time, the more rarely. Of long kernels the
/// worker form only, without which they go in slices.
std::optional<Form> tried_again(const KernelProfile& profile, const Settings& settings) {
  const TimeEstimate& native = alone_in(profile, Form::kNative);
  const TimeEstimate& worker = alone_in(profile, Form::kWorker);
  if (!native.known() || !worker.known()) return std::nullopt;
  const Form best = profile.best_form();
  if (best == Form::kWorker && is_long(profile, settings)) return std::nullopt;
  const Form other = best == Form::kWorker ? Form::kNative : Form::kWorker;
  const TimeEstimate& time = alone_in(profile, other);
  if (is_clearly_slower(profile, other)) return std::nullopt;
  const int often = std::bit_width(alone_in(profile, best).samples);
  const bool known = time.samples >= settings.form_tries * static_cast<std::uint32_t>(often);
  return known ? std::nullopt : std::optional(other);
}

bool enough(const TimeEstimate& time, std::uint32_t launches, const Settings& settings) {
  // A single launch may have met something; of very long ones it has to do.
  return time.samples >= launches || time.ms >= settings.native_try.count() ||
         (time.samples >= 2 && time.samples * time.ms >= settings.measure_alone.count());
}

}  // namespace

bool one_wave(const WaitingLaunch& launch) {
  return launch.wave > 0 && launch.blocks <= launch.wave;
}

bool may_work(const WaitingLaunch& launch) {
  if (launch.only) return launch.only == Form::kWorker;
  return launch.worker_legal && !one_wave(launch);
}

bool is_long(const KernelProfile& profile, const Settings& settings) {
  const TimeEstimate& time = profile.best_alone();
  return !time.known() || time.ms > settings.long_kernel.count();
}

Milliseconds expected_time(const ProfileTable& profiles, KernelId kernel,
                           const Settings& settings) {
  return profiles.alone(kernel).value_or(settings.unknown_kernel);
}

Form choose_form(const KernelProfile& profile, const WaitingLaunch& launch,
                 const Settings& settings, bool trying) {
  if (launch.only) return *launch.only;
  if (launch.blocks_started > 0) return Form::kSlice;
  if (!may_work(launch)) {
    return goes_in_slices(profile, launch, settings) ? Form::kSlice : Form::kNative;
  }
  if (profile.form_override) return *profile.form_override;
  const TimeEstimate& native = alone_in(profile, Form::kNative);
  const TimeEstimate& worker = alone_in(profile, Form::kWorker);
  if (!native.known() && !worker.known()) {
    const bool big =
        launch.wave > 0 && launch.blocks / launch.wave >= settings.unknown_worker_waves;
    return big || launch.worker_likely ? Form::kWorker : Form::kNative;
  }
  if (trying) {
    if (enough(worker, settings.form_tries, settings)) {
      if (!enough(native, settings.form_tries, settings) &&
          worker.ms <= settings.native_try.count()) {
        return Form::kNative;
      }
    } else if (worker.known() || enough(native, settings.native_first, settings)) {
      return Form::kWorker;
    }
    if (const auto again = tried_again(profile, settings)) return *again;
  }
  if (is_long(profile, settings)) {
    const bool slow =
        native.known() && worker.known() && worker.ms * settings.worker_floor > native.ms;
    if (!slow) return Form::kWorker;
    return goes_in_slices(profile, launch, settings) ? Form::kSlice : Form::kNative;
  }
  const Form best = profile.best_form();
  return best == Form::kSlice ? Form::kNative : best;
}

bool is_much_quicker(const KernelProfile& profile) {
  const TimeEstimate& native = alone_in(profile, Form::kNative);
  return !native.known() || alone_in(profile, Form::kWorker).ms < kMuchQuicker * native.ms;
}

bool is_clearly_slower(const KernelProfile& profile, Form form) {
  const TimeEstimate& time = alone_in(profile, form);
  return time.known() && time.ms > profile.best_alone().ms * kCloseForms;
}

bool alone_measured(const KernelProfile& profile, const WaitingLaunch& launch,
                    const Settings& settings) {
  const TimeEstimate& native = alone_in(profile, Form::kNative);
  if (launch.only || (may_work(launch) && profile.form_override)) {
    const Form form = launch.only.value_or(profile.form_override.value_or(Form::kNative));
    return enough(alone_in(profile, form), settings.form_tries, settings);
  }
  if (!may_work(launch)) {
    return enough(native, settings.form_tries, settings) ||
           enough(alone_in(profile, Form::kSlice), settings.form_tries, settings);
  }
  const TimeEstimate& worker = alone_in(profile, Form::kWorker);
  return enough(worker, settings.form_tries, settings) &&
         (enough(native, settings.form_tries, settings) || worker.ms > settings.native_try.count());
}

Milliseconds block_time(Milliseconds alone, const WaitingLaunch& launch) {
  if (launch.blocks == 0) return {};
  return alone * (static_cast<double>(launch.wave) / static_cast<double>(launch.blocks));
}

std::uint32_t choose_task(const KernelProfile& profile, const WaitingLaunch& launch,
                          const Settings& settings, bool trying) {
  const std::uint32_t most = largest_task(profile, launch), usual = usual_task(launch);
  // Only for kernels that run as workers because that is quicker.
  const bool runs_so = profile.best_form() == Form::kWorker &&
                       enough(alone_in(profile, Form::kWorker), settings.form_tries, settings);
  std::uint32_t size = profile.task_size;
  if (size == 0 && trying && runs_so && launch.wave > 0) {
    size = next_task(profile, std::bit_floor(std::min(usual, most)), most, settings);
  }
  if (size == 0) size = best_task(profile, settings);
  return (size == 0 ? usual : size) > most ? most : size;
}

bool may_prefetch(const KernelProfile& profile, const WaitingLaunch& launch,
                  std::uint32_t task_size) {
  const Milliseconds block = block_time(Milliseconds(profile.best_alone().ms), launch);
  const std::uint32_t blocks = task_size == 0 ? usual_task(launch) : task_size;
  return block.count() > 0 && block * blocks <= kLongestFetched;
}

std::uint64_t slice_blocks(const ProfileTable& profiles, const WaitingLaunch& launch,
                           const Settings& settings) {
  const std::uint64_t left = launch.blocks - launch.blocks_started;
  const std::uint64_t wave = std::max<std::uint64_t>(1, launch.wave);
  std::uint64_t waves = settings.slice_waves;
  if (const auto alone = profiles.alone(launch.kernel); alone && alone->count() > 0) {
    const double blocks =
        static_cast<double>(launch.blocks) * (settings.slice.count() / alone->count());
    waves = static_cast<std::uint64_t>(blocks / static_cast<double>(wave));
  }
  const std::uint64_t size = std::max<std::uint64_t>(1, waves) * wave;
  // No small rest at the end.
  return left < size + size / 2 ? left : size;
}

Start start_in_form(const SessionView& session, Form form, const Placement& placement,
                    const ProfileTable& profiles, const Settings& settings, bool trying) {
  const WaitingLaunch& launch = *session.waiting;
  // What has begun in slices goes on so, whatever was planned for whole launches.
  if (launch.blocks_started > 0) form = Form::kSlice;
  Start start{.session = session.id, .form = form, .placement = placement};
  if (form == Form::kSlice) start.slice_blocks = slice_blocks(profiles, launch, settings);
  if (form == Form::kWorker) {
    const KernelProfile& profile = profiles.kernel(launch.kernel);
    start.task_size = choose_task(profile, launch, settings, trying);
    start.prefetch = may_prefetch(profile, launch, start.task_size);
  }
  return start;
}

double part_of(const WaitingLaunch& launch, const Start& start) {
  if (start.form != Form::kSlice || launch.blocks == 0) return 1;
  const std::uint64_t left = launch.blocks - launch.blocks_started;
  const std::uint64_t size = start.slice_blocks == 0 ? left : std::min(start.slice_blocks, left);
  return static_cast<double>(size) / static_cast<double>(launch.blocks);
}

Milliseconds expected_time(const ProfileTable& profiles, KernelId kernel, double part,
                           const Settings& settings) {
  const auto alone = profiles.alone(kernel);
  return alone ? *alone * part : settings.unknown_kernel;
}

std::uint32_t least_units(const WaitingLaunch& launch, const Machine& machine) {
  if (!one_wave(launch) || machine.sm_count == 0) return 1;
  const std::uint64_t per_sm = std::max<std::uint64_t>(1, launch.wave / machine.sm_count);
  const std::uint64_t sms = (launch.blocks + per_sm - 1) / per_sm;
  const std::uint64_t per_unit = std::max(1U, machine.sms_per_unit);
  const std::uint64_t units = (sms + per_unit - 1) / per_unit;
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(units, 1, machine.units));
}

bool is_movable(const RunningWork& running, const ProfileTable& profiles,
                const Settings& settings) {
  return running.resizable && (running.placement.empty() || running.placement.blocks_per_sm != 0 ||
                               is_long(profiles.kernel(running.kernel), settings));
}

bool worth_resizing(const SessionView& session, const ProfileTable& profiles,
                    const Settings& settings) {
  const RunningWork& running = session.running;
  return (running.launches == 1 || running.fixed) && is_movable(running, profiles, settings);
}

bool has_stuck_work(const SessionView& session, Time now, const Settings& settings) {
  const RunningWork& running = session.running;
  const Milliseconds usual = std::max(settings.overdue, 2 * running.expected);
  return running.fixed && now - running.fixed_since >= usual;
}

bool has_lasting_work(const SessionView& session, Time now, const Settings& settings) {
  const RunningWork& running = session.running;
  if (!running.fixed) return false;
  return running.uncertain || running.expected > settings.long_kernel ||
         has_stuck_work(session, now, settings);
}

Time overdue_at(const SessionView& session, const Settings& settings) {
  const RunningWork& running = session.running;
  if (!running.fixed || running.fixed_filled >= 1) return kNever;
  return running.fixed_since + std::chrono::duration_cast<Time::duration>(settings.overdue);
}

bool may_queue(const SessionView& session, const ProfileTable& profiles, const Settings& settings,
               Milliseconds ahead, std::uint32_t launches, bool settled) {
  const RunningWork& running = session.running;
  if (running.launches == 0) return true;
  if (is_movable(running, profiles, settings)) return false;
  if (running.expected < ahead) return true;
  // Without a second slice behind it, a long kernel would pause after each.
  if ((settled || running.form == Form::kSlice) && running.launches < 2) return true;
  return running.launches < launches && expected_time(profiles, running.kernel, settings) < ahead;
}

double filled_by(const WaitingLaunch& launch) {
  if (launch.wave == 0) return 1;
  return std::min(1.0, static_cast<double>(launch.blocks) / static_cast<double>(launch.wave));
}

bool runs_beside(const SessionView& session, const ProfileTable& profiles,
                 const Settings& settings) {
  const RunningWork& running = session.running;
  return session.waiting && session.waiting->stream_is_free &&
         running.filled + filled_by(*session.waiting) <= 1 &&
         !is_movable(running, profiles, settings);
}

bool share_device(const SessionView& session, const ProfileTable& profiles,
                  const Settings& settings, const Share& share, Decisions& decisions) {
  if (worth_resizing(session, profiles, settings) && session.running.placement != share.placement) {
    decisions.resize.push_back({.session = session.id, .placement = share.placement});
  }
  if (!session.waiting || !share.has_room ||
      !may_queue(session, profiles, settings, share.ahead, settings.ahead_launches,
                 share.settled)) {
    return false;
  }
  Start start = start_in_form(session, share.form, share.placement, profiles, settings, false);
  start.tag = share.tag;
  start.sampled = share.sampled;
  start.repeats = share.repeats && start.form == Form::kNative;
  decisions.start.push_back(start);
  return true;
}

void record_alone(ProfileTable& profiles, const Completion& completion, const Settings& settings) {
  if (completion.resized) return;
  KernelProfile& profile = profiles.kernel(completion.kernel);
  const double ms = completion.device_time.count() / completion.part;
  if (completion.form == Form::kWorker && completion.task_size != 0) {
    profile.tasks[completion.task_size].add(ms, completion.launches);
    const std::uint32_t best = best_task(profile, settings);
    if (best != 0 && next_task(profile, best, kLargestTask, settings) == 0)
      profile.task_size = best;
    // Sizes that are only being tried say nothing of the form.
    if (best != 0 && best != completion.task_size) return;
  }
  profile.alone[static_cast<std::size_t>(completion.form)].add(ms, completion.launches);
}

void record_placed(ProfileTable& profiles, const Completion& completion) {
  if (completion.resized || completion.placement.empty()) return;
  // By size only: where on the device makes no difference, and this bounds the rows.
  Placement size = completion.placement;
  size.first = 0;
  profiles.kernel(completion.kernel)
      .placed[static_cast<std::size_t>(completion.form)][size]
      .add(completion.device_time.count() / completion.part, completion.launches);
}

}  // namespace slate::scheduler
