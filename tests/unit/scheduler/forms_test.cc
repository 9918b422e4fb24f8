// Which form a launch takes, and how much may be queued.
#include "scheduler/forms.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace slate::scheduler {
namespace {

constexpr auto kNative = static_cast<std::size_t>(Form::kNative);
constexpr auto kWorker = static_cast<std::size_t>(Form::kWorker);
constexpr auto kSlice = static_cast<std::size_t>(Form::kSlice);

WaitingLaunch launch_of(std::uint64_t blocks, std::uint64_t wave, bool legal = true) {
  return {.kernel = 0, .blocks = blocks, .wave = wave, .worker_legal = legal, .since = {}};
}

TEST(FormsTest, OneWaveGridsStayNative) {
  KernelProfile profile;
  profile.alone[kNative].add(100);
  profile.alone[kWorker].add(1);
  EXPECT_EQ(choose_form(profile, launch_of(1000, 1000), {}, true), Form::kNative);
  EXPECT_EQ(choose_form(profile, launch_of(1001, 1000), {}, true), Form::kWorker);
}

TEST(FormsTest, UnknownKernelsOfManyWavesStartAsWorkers) {
  EXPECT_EQ(choose_form({}, launch_of(64'000, 1000), {}, false), Form::kWorker);
  EXPECT_EQ(choose_form({}, launch_of(63'999, 1000), {}, false), Form::kNative);
  EXPECT_EQ(choose_form({}, launch_of(64'000, 1000, false), {}, false), Form::kNative);
  EXPECT_EQ(choose_form({}, launch_of(64'000, 0), {}, false), Form::kNative);
}

TEST(FormsTest, TheWorkerFormIsTriedTwiceAfterThreeNativeLaunchesAndOnlyAlone) {
  const Settings settings;
  KernelProfile profile;
  const WaitingLaunch launch = launch_of(5000, 1000);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(choose_form(profile, launch, settings, true), Form::kNative);
    profile.alone[kNative].add(0.5);
  }
  EXPECT_EQ(choose_form(profile, launch, settings, false), Form::kNative);
  for (int i = 0; i < 2; ++i) {
    EXPECT_FALSE(alone_measured(profile, launch, settings));
    EXPECT_EQ(choose_form(profile, launch, settings, true), Form::kWorker);
    profile.alone[kWorker].add(0.6);
  }
  EXPECT_TRUE(alone_measured(profile, launch, settings));
  EXPECT_EQ(choose_form(profile, launch, settings, true), Form::kNative);
}

TEST(FormsTest, LongKernelsAreWorkersUnlessThatIsMuchSlower) {
  KernelProfile profile;
  profile.alone[kNative].add(15, 2);
  profile.alone[kWorker].add(16, 2);
  EXPECT_EQ(choose_form(profile, launch_of(5000, 1000), {}, true), Form::kWorker);
  profile.alone[kWorker] = {};
  profile.alone[kWorker].add(17);  // once is not enough to be sure
  EXPECT_EQ(choose_form(profile, launch_of(5000, 1000), {}, true), Form::kWorker);
  profile.alone[kWorker].add(17);
  EXPECT_EQ(choose_form(profile, launch_of(5000, 1000), {}, false), Form::kNative);
  profile.alone[kWorker].add(17, 2);
  EXPECT_EQ(choose_form(profile, launch_of(5000, 1000), {}, true), Form::kNative);
}

WaitingLaunch slice_of(std::uint64_t blocks, std::uint64_t wave) {
  WaitingLaunch launch = launch_of(blocks, wave, false);
  launch.slice_legal = true;
  return launch;
}

TEST(FormsTest, LongKernelsThatCannotBeWorkersGoInSlices) {
  KernelProfile profile;
  profile.alone[kNative].add(9);
  EXPECT_EQ(choose_form(profile, slice_of(5000, 1000), {}, true), Form::kNative);
  profile.alone[kNative] = {};
  profile.alone[kNative].add(11);
  EXPECT_EQ(choose_form(profile, slice_of(5000, 1000), {}, true), Form::kSlice);
  EXPECT_EQ(choose_form(profile, slice_of(1000, 1000), {}, true), Form::kNative);
  EXPECT_EQ(choose_form(profile, launch_of(5000, 1000, false), {}, true), Form::kNative);
  profile.alone[kSlice].add(12.5);
  EXPECT_EQ(choose_form(profile, slice_of(5000, 1000), {}, true), Form::kNative);
}

TEST(FormsTest, UnknownKernelsOfManyWavesThatCannotBeWorkersStartInSlices) {
  EXPECT_EQ(choose_form({}, slice_of(64'000, 1000), {}, false), Form::kSlice);
  EXPECT_EQ(choose_form({}, slice_of(63'999, 1000), {}, false), Form::kNative);
}

TEST(FormsTest, WhatHasBegunInSlicesGoesOnInSlices) {
  ProfileTable profiles;
  const KernelId id = profiles.find_or_add({.name = "k"});
  SessionView session;
  session.waiting = launch_of(5000, 1000);
  session.waiting->kernel = id;
  session.waiting->blocks_started = 2000;
  EXPECT_EQ(choose_form({}, *session.waiting, {}, true), Form::kSlice);
  const Start start =
      start_in_form(session, Form::kNative, {.first = 0, .count = 1}, profiles, {}, true);
  EXPECT_EQ(start.form, Form::kSlice);
  EXPECT_EQ(start.slice_blocks, 3000U);
}

TEST(FormsTest, SlicesAreWholeWavesOfAboutTheirTime) {
  ProfileTable profiles;
  const KernelId id = profiles.find_or_add({.name = "k"});
  WaitingLaunch launch = slice_of(100'000, 1000);
  launch.kernel = id;
  Settings settings;
  EXPECT_EQ(slice_blocks(profiles, launch, settings), 16'000U);  // unknown
  profiles.kernel(id).alone[kSlice].add(40);                     // 2 ms are 5,000 blocks
  EXPECT_EQ(slice_blocks(profiles, launch, settings), 5'000U);
  launch.blocks_started = 93'000;  // 7,000 left: no rest of 2,000
  EXPECT_EQ(slice_blocks(profiles, launch, settings), 7'000U);
  profiles.kernel(id).alone[kSlice] = {};
  profiles.kernel(id).alone[kSlice].add(4000);  // less than a wave
  launch.blocks_started = 0;
  EXPECT_EQ(slice_blocks(profiles, launch, settings), 1'000U);
}

/// Sizes of tasks that are started while a kernel of that speed by size of tasks runs alone.
std::vector<std::uint32_t> tasks_tried(KernelProfile& profile, ProfileTable& profiles, KernelId id,
                                       double (*ms)(std::uint32_t)) {
  std::vector<std::uint32_t> tried;
  const Settings settings;
  for (int i = 0; i < 100; ++i) {
    const auto size = choose_task(profile, launch_of(24'000, 1000), settings, true);
    tried.push_back(size);
    Completion completion;
    completion.kernel = id;
    completion.form = Form::kWorker;
    completion.task_size = size;
    completion.device_time = Milliseconds(ms(size));
    record_alone(profiles, completion, settings);
  }
  return tried;
}

TEST(FormsTest, SizesOfTasksAreTriedAroundTheBest) {
  ProfileTable profiles;
  const KernelId id = profiles.find_or_add({.name = "k"});
  KernelProfile& profile = profiles.kernel(id);
  for (int i = 0; i < 4; ++i) profile.alone[kWorker].add(0.05);
  for (int i = 0; i < 4; ++i) profile.alone[kNative].add(0.1);
  const auto tried = tasks_tried(profile, profiles, id, [](std::uint32_t size) {
    return size == 8 ? 0.045 : size == 4 ? 0.0475 : 0.05;
  });
  EXPECT_EQ(tried.front(), 2U);  // the usual one for two waves a worker
  EXPECT_EQ(tried.back(), 8U);
  EXPECT_EQ(profile.task_size, 8U);
  EXPECT_EQ(std::ranges::count(tried, 16U), 4);
  EXPECT_EQ(std::ranges::count(tried, 1U), 0);
  EXPECT_NEAR(profile.alone[kWorker].ms, 0.045, 0.001);
  // Beside others, too, it is used but nothing is tried.
  EXPECT_EQ(choose_task(profile, launch_of(24'000, 1000), {}, false), 8U);
}

/// The forms of so many launches alone, one after the other, that take such times.
std::vector<Form> forms_run(KernelProfile profile, int launches, double (*ms)(Form, int launch)) {
  ProfileTable profiles;
  const KernelId id = profiles.find_or_add({.name = "k"});
  profiles.kernel(id) = std::move(profile);
  std::vector<Form> forms;
  for (int i = 0; i < launches; ++i) {
    Completion completion;
    completion.kernel = id;
    completion.form = choose_form(profiles.kernel(id), launch_of(5000, 1000), {}, true);
    completion.device_time = Milliseconds(ms(completion.form, i));
    record_alone(profiles, completion, {});
    forms.push_back(completion.form);
  }
  return forms;
}

TEST(FormsTest, TasksOfLongBlocksAreShort) {
  ProfileTable profiles;
  const KernelId id = profiles.find_or_add({.name = "k"});
  KernelProfile& profile = profiles.kernel(id);
  const WaitingLaunch launch = launch_of(240'000, 1000);
  // Nothing is known of its blocks.
  EXPECT_EQ(choose_task(profile, launch, {}, false), 4U);
  EXPECT_FALSE(may_prefetch(profile, launch, 4));
  for (int i = 0; i < 4; ++i) profile.alone[kWorker].add(3.5);  // 240 waves: 15 us a block
  for (int i = 0; i < 4; ++i) profile.alone[kNative].add(4);
  EXPECT_EQ(choose_task(profile, launch, {}, false), 3U);
  EXPECT_FALSE(may_prefetch(profile, launch, 3));
  // Nor are larger ones tried, however good they would be: a block of these takes 0.15 ms.
  const auto tried =
      tasks_tried(profile, profiles, id, [](std::uint32_t size) { return 3.5 / size; });
  EXPECT_EQ(std::ranges::max(tried), 1U);
  profile.tasks.clear();
  profile.alone[kWorker] = {.ms = 0.25, .samples = 4};  // 1 us a block
  EXPECT_EQ(choose_task(profile, launch_of(240'000, 1000), {}, false), 0U);
  EXPECT_TRUE(may_prefetch(profile, launch, 0));
  EXPECT_FALSE(may_prefetch(profile, launch, 32));
}

TEST(FormsTest, FormsThatAreNearlyAsQuickAreMeasuredAgainButEverMoreRarely) {
  constexpr int kLaunches = 1000;
  // The first launches, native ones, meet a cold device.
  const auto forms = forms_run({}, kLaunches, [](Form form, int launch) {
    return form == Form::kWorker ? 1.05 : launch < 4 ? 1.1 : 1.0;
  });
  EXPECT_EQ(std::ranges::count(std::span(forms).first(3), Form::kNative), 3);
  EXPECT_EQ(forms.back(), Form::kNative);
  const auto workers = std::ranges::count(forms, Form::kWorker);
  EXPECT_GE(workers, 15);
  EXPECT_LE(workers, 30);
  const auto late = std::span(forms).last(kLaunches / 2);
  EXPECT_LE(std::ranges::count(late, Form::kWorker), 2);
}

TEST(FormsTest, AFormThatIsClearlySlowerIsNotMeasuredAgain) {
  KernelProfile profile;
  for (int i = 0; i < 4; ++i) profile.alone[kNative].add(1);
  for (int i = 0; i < 4; ++i) profile.alone[kWorker].add(1.3);
  const auto forms = forms_run(profile, 100, [](Form, int) { return 1.0; });
  EXPECT_EQ(std::ranges::count(forms, Form::kWorker), 0);
}

// sgemm beside stream_read went in slices, a fifth slower than as workers, because its first two
// worker launches had been slow ones.
TEST(FormsTest, LongKernelsAreTriedAsWorkersAgainBeforeTheyGoInSlices) {
  KernelProfile profile;
  for (int i = 0; i < 2; ++i) profile.alone[kNative].add(16);
  for (int i = 0; i < 2; ++i) profile.alone[kWorker].add(18);
  WaitingLaunch launch = launch_of(5000, 1000);
  launch.slice_legal = true;
  EXPECT_EQ(choose_form(profile, launch, {}, false), Form::kSlice);
  EXPECT_EQ(choose_form(profile, launch, {}, true), Form::kWorker);
  for (int i = 0; i < 2; ++i) profile.alone[kWorker].add(18);
  EXPECT_EQ(choose_form(profile, launch, {}, true), Form::kSlice);
  profile.alone[kWorker] = {.ms = 15.5, .samples = 4};  // and never natively, when it is quicker so
  EXPECT_EQ(choose_form(profile, launch, {}, true), Form::kWorker);
}

TEST(FormsTest, OfLaunchesThatDifferAFewSayLittleOfTheForm) {
  KernelProfile profile;
  for (const double ms : {0.1, 1.0, 0.2, 0.9}) profile.alone[kNative].add(ms);
  for (const double ms : {0.1, 0.3}) profile.alone[kWorker].add(ms);
  EXPECT_LT(profile.alone[kWorker].ms, profile.alone[kNative].ms);
  EXPECT_EQ(profile.best_form(), Form::kNative);
}

TEST(FormsTest, TasksAreNotTriedForWhatRunsNatively) {
  KernelProfile profile;
  for (int i = 0; i < 4; ++i) profile.alone[kWorker].add(1);
  for (int i = 0; i < 4; ++i) profile.alone[kNative].add(0.5);
  EXPECT_EQ(choose_task(profile, launch_of(24'000, 1000), {}, true), 0U);
}

TEST(FormsTest, WhatNobodyCouldStopIsNotTriedNatively) {
  KernelProfile profile;
  profile.alone[kWorker].add(60);
  EXPECT_EQ(choose_form(profile, launch_of(5000, 1000), {}, true), Form::kWorker);
  EXPECT_TRUE(alone_measured(profile, launch_of(5000, 1000), {}));
  profile.alone[kWorker] = {};
  profile.alone[kWorker].add(40, 2);
  EXPECT_EQ(choose_form(profile, launch_of(5000, 1000), {}, true), Form::kNative);
}

TEST(FormsTest, TheAdministratorsFormIsTakenAndMeasuredAndNoOther) {
  const Settings settings;
  for (const Form form : {Form::kNative, Form::kWorker, Form::kSlice}) {
    KernelProfile profile;
    const WaitingLaunch launch{.blocks = 10, .wave = 100, .worker_legal = true, .only = form};
    EXPECT_EQ(choose_form(profile, launch, settings, true), form);
    EXPECT_FALSE(alone_measured(profile, launch, settings));
    profile.alone[static_cast<std::size_t>(form)].add(1, 10);
    EXPECT_TRUE(alone_measured(profile, launch, settings));
    EXPECT_EQ(choose_form(profile, launch, settings, true), form);
  }
}

TEST(FormsTest, NorIsItTriedASecondTime) {
  ProfileTable table;
  const KernelId id = table.find_or_add({.name = "long"});
  for (int launch = 0; launch < 4; ++launch) {
    record_alone(
        table,
        {.kernel = id, .form = Form::kWorker, .placement = {}, .device_time = Milliseconds(60)},
        {});
    EXPECT_EQ(choose_form(table.kernel(id), launch_of(5000, 1000), {}, true), Form::kWorker);
  }
}

TEST(FormsTest, EveryKernelIsMeasuredAfterAFewLaunches) {
  const Settings settings;
  for (const double native : {0.01, 0.5, 2.9, 3.1, 15.0, 49.0, 51.0, 5000.0}) {
    for (const double worker : {0.5, 0.95, 1.0, 1.2, 30.0}) {
      for (const std::uint64_t waves : {2U, 100U}) {
        KernelProfile profile;
        const WaitingLaunch launch = launch_of(waves * 1000, 1000);
        int tries = 0;
        while (!alone_measured(profile, launch, settings)) {
          const Form form = choose_form(profile, launch, settings, true);
          profile.alone[static_cast<std::size_t>(form)].add(
              form == Form::kNative ? native : native * worker);
          ASSERT_LT(++tries, 8) << native << " " << worker << " " << waves;
        }
      }
    }
  }
}

TEST(FormsTest, AGridOfOneWaveNeedsAsManySmsAsItHasFullOnes) {
  const Machine machine{.sm_count = 132, .units = 17, .sms_per_unit = 8};
  EXPECT_EQ(least_units(launch_of(128, 132), machine), 16U);
  EXPECT_EQ(least_units(launch_of(128, 132 * 16), machine), 1U);
  EXPECT_EQ(least_units(launch_of(132, 132), machine), 17U);
  EXPECT_EQ(least_units(launch_of(5000, 132), machine), 1U);
}

TEST(FormsTest, QueuesAreLimitedByTimeAndByCount) {
  ProfileTable table;
  const KernelId quick = table.find_or_add({.name = "quick"});
  const KernelId slow = table.find_or_add({.code = 1, .name = "slow"});
  const KernelId unknown = table.find_or_add({.code = 2, .name = "unknown"});
  table.kernel(quick).alone[kNative].add(1.5);
  table.kernel(slow).alone[kNative].add(15);
  const Settings settings;
  SessionView session;
  const auto allowed = [&](KernelId kernel, std::uint32_t running, double expected,
                           bool resizable = false) {
    session.running = {};
    session.running.kernel = kernel;
    session.running.launches = running;
    session.running.expected = Milliseconds(expected);
    session.running.resizable = resizable;
    session.running.placement = {.first = 0, .count = 1};
    return may_queue(session, table, settings, Milliseconds(1), 2, false);
  };
  EXPECT_TRUE(allowed(slow, 0, 0));
  EXPECT_FALSE(allowed(slow, 1, 15));
  EXPECT_TRUE(allowed(quick, 1, 0.9));
  EXPECT_FALSE(allowed(quick, 1, 1.5));  // not shorter than the limit
  EXPECT_FALSE(allowed(unknown, 1, 1, true));
  EXPECT_FALSE(allowed(slow, 1, 0.1, true));  // nothing behind what may have to retreat
  table.kernel(quick).alone[kNative] = {};
  table.kernel(quick).alone[kNative].add(0.9);
  EXPECT_TRUE(allowed(quick, 1, 1.2));
  EXPECT_FALSE(allowed(quick, 2, 1.8));
}

// Four kernels of one thread in four streams, 380 ms each, ran two at a time (HeCBench).
TEST(FormsTest, SmallGridsInFreeStreamsRunBesideEachOther) {
  ProfileTable table;
  const Settings settings;
  const KernelId kernel = table.find_or_add({.name = "long"});
  table.kernel(kernel).alone[kNative].add(380);
  const auto beside = [&](std::uint64_t blocks, std::uint64_t wave, bool free, double filled,
                          bool resizable = false) {
    SessionView session;
    session.waiting =
        WaitingLaunch{.kernel = kernel, .blocks = blocks, .wave = wave, .stream_is_free = free};
    session.running = {.launches = 3,
                       .expected = Milliseconds(1140),
                       .filled = filled,
                       .kernel = kernel,
                       .placement = {},
                       .resizable = resizable};
    return runs_beside(session, table, settings);
  };
  EXPECT_TRUE(beside(1, 2112, true, 0.1));
  EXPECT_TRUE(beside(1056, 2112, true, 0.5));
  EXPECT_FALSE(beside(1056, 2112, true, 0.6)) << "it would have to wait for blocks that run";
  EXPECT_FALSE(beside(1, 2112, false, 0.1)) << "it follows others in its stream";
  EXPECT_FALSE(beside(1, 0, true, 0.1)) << "nothing is known of its size";
  EXPECT_FALSE(beside(1, 2112, true, 0.1, true)) << "nothing goes behind what may have to retreat";
  EXPECT_TRUE(beside(4224, 2112, true, 0)) << "nothing runs";
}

// tensor_gemm of 9.6 ms ran for 600 ms with one worker an SM beside quasi_random, whose blocks left
// it next to none, and nothing could be done about it.
TEST(FormsTest, WhatMayStarveCanBeMoved) {
  ProfileTable table;
  const Settings settings;
  const KernelId kernel = table.find_or_add({.name = "short"});
  table.kernel(kernel).alone[kNative].add(9);
  const Placement shared{.first = 0, .count = 4, .blocks_per_sm = 1};
  const Placement own{.first = 0, .count = 4};
  EXPECT_TRUE(may_starve(shared, Milliseconds(9)));
  EXPECT_FALSE(may_starve(shared, Milliseconds(0.1)));  // a hundred times that does no harm
  EXPECT_FALSE(may_starve(own, Milliseconds(9)));

  SessionView session;
  session.running = {.launches = 1, .kernel = kernel, .placement = shared, .resizable = true};
  EXPECT_TRUE(worth_resizing(session, table, settings));
  EXPECT_FALSE(may_queue(session, table, settings, Milliseconds(100), 8, true));
  Decisions decisions;
  (void)share_device(session, table, settings, {.placement = own}, decisions);
  ASSERT_EQ(decisions.resize.size(), 1u);
  EXPECT_EQ(decisions.resize.front().placement, own);
  session.running.placement = own;  // it ends soon
  EXPECT_FALSE(worth_resizing(session, table, settings));
  session.running.placement = shared;
  session.running.resizable = false;
  EXPECT_FALSE(worth_resizing(session, table, settings));
}

}  // namespace
}  // namespace slate::scheduler
