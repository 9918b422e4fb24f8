// Rules that all policies share: which form a launch takes by default, how long it may be expected
// to run, and how much may be queued. Functions without state, on any thread that may read the
// profiles. All times are device time.
#pragma once

#include "scheduler/policy.h"
#include "scheduler/settings.h"

namespace slate::scheduler {

/// Whether all blocks of the grid are on the device at once: such grids stay native. False while
/// the size of a wave is unknown.
bool one_wave(const WaitingLaunch& launch);
/// Whether the worker form is legal for the launch and can be of use.
bool may_work(const WaitingLaunch& launch);
/// Whether the kernel takes longer than Settings::long_kernel in its quickest form, or was never
/// measured: it may have to be interrupted.
bool is_long(const KernelProfile& profile, const Settings& settings);
/// Blocks to start at once of a launch in slices: whole waves that take about Settings::slice, or
/// Settings::slice_waves waves while the kernel's time is unknown.
std::uint64_t slice_blocks(const ProfileTable& profiles, const WaitingLaunch& launch,
                           const Settings& settings);
/// The start of the session's waiting launch in `form`, with the slice or task that the form needs.
/// Requires: session.waiting. A launch that has begun in slices goes on in slices. `trying`: as for
/// choose_form().
Start start_in_form(const SessionView& session, Form form, const Placement& placement,
                    const ProfileTable& profiles, const Settings& settings, bool trying);
/// Time of one launch alone in its quickest form; Settings::unknown_kernel if never measured.
Milliseconds expected_time(const ProfileTable& profiles, KernelId kernel, const Settings& settings);
/// Time of a slice that covers `part` of the grid; Settings::unknown_kernel if never measured.
Milliseconds expected_time(const ProfileTable& profiles, KernelId kernel, double part,
                           const Settings& settings);
/// The part of its launch's grid that `start` starts: 1 except for slices.
double part_of(const WaitingLaunch& launch, const Start& start);

/// The form for a launch by what is known of its kernel: the quickest form, the worker form for
/// long kernels, slices for long kernels that cannot be workers. With `trying` the launch has the
/// device to itself, so a form that was not measured often enough may be chosen.
Form choose_form(const KernelProfile& profile, const WaitingLaunch& launch,
                 const Settings& settings, bool trying);
/// Time that a change from one placement to another takes, in the native form too: blocks have to
/// end.
inline constexpr Milliseconds kChange{0.5};

/// Blocks of a task for a launch in the worker form; 0: the usual number. `trying`: as for
/// choose_form(). Twice and half of the best size so far are tried until neither is quicker. A task
/// lasts at most about 0.05 ms, as workers leave only between tasks. The paper's task size is
/// SLATE_ITERS (Slate, Figure 5), 10 by default.
std::uint32_t choose_task(const KernelProfile& profile, const WaitingLaunch& launch,
                          const Settings& settings, bool trying);
/// Time of one block beside as many others as fit, for a launch that takes `alone`; 0: unknown.
Milliseconds block_time(Milliseconds alone, const WaitingLaunch& launch);
/// Whether a worker may fetch its next task before it has finished one of `task_size` blocks.
bool may_prefetch(const KernelProfile& profile, const WaitingLaunch& launch,
                  std::uint32_t task_size);
/// Whether the worker form is quicker than native by more than a quarter. Then it stays quicker
/// beside other kernels, whose blocks find less room beside workers than beside blocks that end.
bool is_much_quicker(const KernelProfile& profile);
/// Whether `form` alone was more than 15 % slower than the quickest form.
bool is_clearly_slower(const KernelProfile& profile, Form form);
/// Whether choose_form() has no form left to try for launches like this one.
bool alone_measured(const KernelProfile& profile, const WaitingLaunch& launch,
                    const Settings& settings);

/// Units that a one-wave grid needs to stay one wave; 1 for all other grids.
std::uint32_t least_units(const WaitingLaunch& launch, const Machine& machine);

/// Whether the session has work that is off the device: its placement is empty.
inline bool retreated(const SessionView& session) {
  return session.running.launches > 0 && session.running.resizable && !session.running.fixed &&
         session.running.placement.empty();
}
/// Whether the session has work that may hold SMs.
inline bool on_device(const SessionView& session) {
  return session.running.launches > 0 && !retreated(session);
}
/// Whether resizable work of the session can be taken off the device now: nothing is queued behind
/// it. Launches beside it that cannot be resized stay.
inline bool can_retreat(const SessionView& session) {
  return (session.running.launches == 1 || session.running.fixed) && session.running.resizable &&
         !session.running.placement.empty();
}
/// Whether work of the session that nobody can take off the device takes longer than it should: it
/// may be endless.
bool has_stuck_work(const SessionView& session, Time now, const Settings& settings);
/// Whether nothing should be queued on the device behind such work: it is long, or nobody knows how
/// long it takes. A launch that waits for it on the device waits until its end.
bool has_lasting_work(const SessionView& session, Time now, const Settings& settings);
/// When others begin beside such work, since it leaves room; kNever: it leaves none, or there is
/// none.
Time overdue_at(const SessionView& session, const Settings& settings);
/// Whether a launch that takes `alone` by itself has to be resizable because of its placement.
/// Workers with a quota share their SMs with blocks of other sessions, which may leave them almost
/// no room: the launch then takes up to a hundred times as long.
inline bool may_starve(const Placement& placement, Milliseconds alone) {
  return placement.blocks_per_sm != 0 && alone >= kChange;
}
/// Whether the work is resizable and such that no other session should have to wait for its end:
/// long, under a quota, or off the device.
bool is_movable(const RunningWork& running, const ProfileTable& profiles, const Settings& settings);
/// Whether the session's only running launch is movable (is_movable()), or the only one that can be
/// resized.
bool worth_resizing(const SessionView& session, const ProfileTable& profiles,
                    const Settings& settings);
/// Whether one more launch of the session may be started. One of these must hold:
/// - nothing of the session runs;
/// - less than `ahead` of device time is queued;
/// - fewer than `launches` launches are queued, of a kernel shorter than `ahead`;
/// - one launch is queued, and it is a slice or `settled` holds: its end would leave SMs idle until
///   it was noticed.
/// Nothing is queued behind movable work, which may have to retreat.
bool may_queue(const SessionView& session, const ProfileTable& profiles, const Settings& settings,
               Milliseconds ahead, std::uint32_t launches, bool settled);

/// Part of the device that the launch's blocks take at once; 1: all of it, or unknown.
double filled_by(const WaitingLaunch& launch);

/// Whether the waiting launch would run beside all that runs of its session, and so would not make
/// others wait longer: its stream is free, and all blocks fit the device at once.
bool runs_beside(const SessionView& session, const ProfileTable& profiles,
                 const Settings& settings);

/// How the launches of one session share the device with other sessions.
struct Share {
  Form form = Form::kNative;  // form of the waiting launch
  Placement placement;
  std::uint64_t tag = 0;  // tag of the start
  Milliseconds ahead{};   // device time that may be queued
  bool has_room = true;   // whether the session's user may queue the launch (Roster::has_room())
  bool settled = false;   // whether the share stays, so that its queue need not run out
  bool sampled = false;   // whether a sample of the launches is timed
  bool repeats = false;   // whether native launches may repeat without decisions
};
/// Resizes the session's running work to the placement, and starts its waiting launch there if
/// its user has room and may_queue() allows. Returns true if the launch was started.
bool share_device(const SessionView& session, const ProfileTable& profiles,
                  const Settings& settings, const Share& share, Decisions& decisions);

/// Adds the time of launches that had the whole device to themselves. Requires
/// completion.measured().
void record_alone(ProfileTable& profiles, const Completion& completion, const Settings& settings);
/// Adds the time of launches on a part of the device, by the size of the part. Requires
/// completion.measured().
void record_placed(ProfileTable& profiles, const Completion& completion);

}  // namespace slate::scheduler
