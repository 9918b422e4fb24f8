// Which form a launch takes when nothing else argues, how long it may be expected to run, and how
// much may be queued. Rules shared by all policies; no state.
#pragma once

#include "scheduler/policy.h"
#include "scheduler/settings.h"

namespace slate::scheduler {

/// All blocks of the grid are on the device at once: such grids stay native.
bool one_wave(const WaitingLaunch& launch);
/// The worker form is legal and can be of use.
bool may_work(const WaitingLaunch& launch);
/// A kernel that somebody may have to interrupt: longer than Settings::long_kernel, or unknown.
bool is_long(const KernelProfile& profile, const Settings& settings);
/// Blocks to start at once of a launch that goes in slices: about Settings::slice of device time,
/// in whole waves.
std::uint64_t slice_blocks(const ProfileTable& profiles, const WaitingLaunch& launch,
                           const Settings& settings);
/// The start of the waiting launch in `form`, with what the form needs to be told.
Start start_in_form(const SessionView& session, Form form, const Placement& placement,
                    const ProfileTable& profiles, const Settings& settings, bool trying);
/// Time of one launch alone in its best form; Settings::unknown_kernel if never measured.
Milliseconds expected_time(const ProfileTable& profiles, KernelId kernel, const Settings& settings);
/// The same of a slice that covers `part` of the grid; an unknown kernel's slice is as unknown.
Milliseconds expected_time(const ProfileTable& profiles, KernelId kernel, double part,
                           const Settings& settings);
/// The part of its launch that `start` starts: 1 but for slices.
double part_of(const WaitingLaunch& launch, const Start& start);

/// The quickest form measured, workers for what is long; `trying`: the launch has the device to
/// itself, so a form that was not measured enough may be tried.
Form choose_form(const KernelProfile& profile, const WaitingLaunch& launch,
                 const Settings& settings, bool trying);
/// Of the change from one placement to another, natively too: blocks have to end.
inline constexpr Milliseconds kChange{0.5};

/// Blocks a task for a launch in the worker form; 0: the usual number. `trying`: as above. Around
/// the best size so far, twice and half of it are tried until neither is quicker; none that takes
/// so long that whoever wants its SMs would notice.
std::uint32_t choose_task(const KernelProfile& profile, const WaitingLaunch& launch,
                          const Settings& settings, bool trying);
/// Of a block beside as many others as fit, where the launch takes `alone`; 0: not known.
Milliseconds block_time(Milliseconds alone, const WaitingLaunch& launch);
/// Whether a worker may have its next task before it is through with one of that size.
bool may_prefetch(const KernelProfile& profile, const WaitingLaunch& launch,
                  std::uint32_t task_size);
/// As workers it is so much quicker than natively that it stays so beside others, whose blocks find
/// less room beside workers than beside blocks that come and go.
bool is_much_quicker(const KernelProfile& profile);
/// Alone, as it was measured.
bool is_clearly_slower(const KernelProfile& profile, Form form);
/// Whether choose_form() has nothing more to try for launches like this.
bool alone_measured(const KernelProfile& profile, const WaitingLaunch& launch,
                    const Settings& settings);

/// Units that a one-wave grid needs to stay one wave; 1 for all others.
std::uint32_t least_units(const WaitingLaunch& launch, const Machine& machine);

/// The session has work that its placement allows nowhere.
inline bool retreated(const SessionView& session) {
  return session.running.launches > 0 && session.running.resizable &&
         session.running.placement.empty();
}
inline bool on_device(const SessionView& session) {
  return session.running.launches > 0 && !retreated(session);
}
/// It can be taken off the device now: nothing is queued behind it.
inline bool can_retreat(const SessionView& session) {
  return session.running.launches == 1 && session.running.resizable &&
         !session.running.placement.empty();
}
/// Workers with a quota share their SMs with others' blocks, which may leave them next to no room:
/// then a launch takes a hundred times as long. One that lasts so long by itself has to be
/// resizable, however short its kernel.
inline bool may_starve(const Placement& placement, Milliseconds alone) {
  return placement.blocks_per_sm != 0 && alone >= kChange;
}
/// Resizable work for whose end nobody should have to wait.
bool is_movable(const RunningWork& running, const ProfileTable& profiles, const Settings& settings);
/// It is all that the session has there; nothing is queued behind it.
bool worth_resizing(const SessionView& session, const ProfileTable& profiles,
                    const Settings& settings);
/// One more launch may be started: less than `ahead` is queued, or fewer than `launches` kernels
/// shorter than that; `settled`: or a single launch, however long, whose end would leave its SMs
/// idle until it was noticed. Nothing is queued behind work that is movable, which may have to
/// retreat.
bool may_queue(const SessionView& session, const ProfileTable& profiles, const Settings& settings,
               Milliseconds ahead, std::uint32_t launches, bool settled);

/// How a session's launches go beside those of others.
struct Share {
  Form form = Form::kNative;  // of the waiting launch
  Placement placement;
  std::uint64_t tag = 0;
  Milliseconds ahead{};
  bool settled = false;  // the share stays: nobody waits for its queue to run out
  bool sampled = false;  // and nobody measures every launch
};
/// Brings what runs to the placement, and starts the waiting launch there if it may be queued. True
/// if it was started.
bool share_device(const SessionView& session, const ProfileTable& profiles,
                  const Settings& settings, const Share& share, Decisions& decisions);

/// Records a completion that had the whole device to itself.
void record_alone(ProfileTable& profiles, const Completion& completion, const Settings& settings);
/// Records one on a part of the device, by size of the part.
void record_placed(ProfileTable& profiles, const Completion& completion);

}  // namespace slate::scheduler
