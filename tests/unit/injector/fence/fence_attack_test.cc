// Kernels that break out, on sim or a GPU. The device would let them: what they aim at lies in
// memory that it allows to the launch. Behind the fence each try must leave the victim's bytes as
// they are, leave a record of what was tried, and end the launch, after which a harmless kernel
// runs in the same control block.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "daemon/dispatch/worker_launch.h"
#include "device/cuda/cuda_device.h"
#include "device/device.h"
#include "tests/unit/forms/form_runner.h"

namespace slate::test {
namespace {

using injector::FenceRecord;
using injector::Violation;

constexpr std::uint32_t kBlocks = 24;
constexpr std::uint32_t kThreads = 64;
constexpr int kSchedules = SLATE_FENCE_SCHEDULES;
constexpr bool kOnGpu = SLATE_FENCE_ON_GPU;
constexpr std::uint32_t kAll = ~0u;    // every thread attacks
constexpr std::uint32_t kDepth = 256;  // bytes of the victim in front of and behind the target

/// Where the parameter `bad` points.
enum class Target { kVictim, kNull, kTop, kPastEnd, kAcrossEnd, kBeforeStart, kTable, kMiddle };

struct Attack {
  std::string name;
  std::string body;  // of the threads that attack; %bad is the target
  Violation kind = Violation::kRange;
  std::uint32_t bytes = 4;
  Target target = Target::kVictim;
  std::int64_t offset = 0;  // of the address in the record from the target
  bool knows_address = true;
  bool assembles = true;  // by ptxas; sim takes more
};

void PrintTo(const Attack& attack, std::ostream* out) {
  *out << attack.name;
}

/// What stands around the attack.
enum class Setting { kPlain, kBarriers, kOneBarrier, kFunction, kEarlyReturn, kLateEnd, kDrained };

constexpr std::string_view kHead = R"(.version 8.7
.target sm_90
.address_size 64
.const .align 4 .b32 table[4] = {{1, 2, 3, 4}};
.global .align 4 .b32 counter;
{1}
.func (.param .b32 f_result) identity(.param .b32 f_in)
{{
	.reg .b32 %a;
	ld.param.b32 %a, [f_in];
	st.param.b32 [f_result], %a;
	ret;
}}
.func attack_function(.param .b64 g_good, .param .b64 g_bad)
{{
	.reg .pred %p<8>;
	.reg .b16 %h<8>;
	.reg .b32 %r<40>, %t;
	.reg .b64 %rd<20>, %good, %bad;
	.reg .f32 %f<40>;
	{2}
	ld.param.b64 %good, [g_good];
	ld.param.b64 %bad, [g_bad];
	mov.u32 %t, %tid.x;
	mov.u16 %h1, 1;
	mov.u32 %r1, 1;
	mov.u32 %r2, 2;
	mov.u32 %r3, 3;
	mov.u32 %r4, 4;
	mov.u64 %rd1, 1;
	mov.u64 %rd2, 2;
	mov.f32 %f2, 0f3F800000;
	{0}
	ret;
}}
.visible .entry innocent(.param .u64 out, .param .u64 unused, .param .u32 n)
{{
	.reg .b32 %r<8>;
	.reg .b64 %rd<4>;
	ld.param.u64 %rd1, [out];
	mov.u32 %r1, %ctaid.x;
	mov.u32 %r2, %tid.x;
	mad.lo.u32 %r3, %r1, 64, %r2;
	mul.wide.u32 %rd2, %r3, 4;
	add.u64 %rd2, %rd1, %rd2;
	mul.lo.u32 %r4, %r3, 3;
	st.global.u32 [%rd2], %r4;
	ret;
}}
)";

constexpr std::string_view kEntry =
    R"(.visible .entry attack(.param .u64 p_good, .param .u64 p_bad, .param .u32 p_who)
{{
	.reg .pred %p<8>, %hit, %all;
	.reg .b16 %h<8>;
	.reg .b32 %r<40>, %t, %who, %i;
	.reg .b64 %rd<20>, %good, %bad, %mine;
	.reg .f32 %f<40>;
	.local .align 8 .b8 loc[64];
	{1}
	ld.param.u64 %good, [p_good];
	ld.param.u64 %bad, [p_bad];
	ld.param.u32 %who, [p_who];
	mov.u32 %t, %tid.x;
	mov.u32 %i, %ctaid.x;
	mad.lo.u32 %i, %i, 64, %t;
	mul.wide.u32 %mine, %i, 4;
	add.u64 %mine, %good, %mine;
	mov.u16 %h1, 1;
	mov.u32 %r1, 1;
	mov.u32 %r2, 2;
	mov.u32 %r3, 3;
	mov.u32 %r4, 4;
	mov.u64 %rd1, 1;
	mov.u64 %rd2, 2;
	mov.f32 %f2, 0f3F800000;
	{2}
	setp.eq.u32 %hit, %i, %who;
	setp.eq.u32 %all, %who, -1;
	or.pred %hit, %hit, %all;
	@!%hit bra SKIP;
	{0}
SKIP:
	{3}
	st.global.u32 [%mine], %i;
	ret;
}}
)";

/// The attack behind the end of the block's shared memory, of which `reserved` bytes are in front.
std::string body_of(const Attack& attack, std::uint32_t reserved) {
  constexpr std::string_view kEnd = "mov.u32 %r1, END;";
  std::string body = attack.body;
  if (const std::size_t at = body.find(kEnd); at != body.npos) {
    body.replace(at, kEnd.size(),
                 fmt::format("mov.u32 %r1, %total_smem_size;\nadd.u32 %r1, %r1, {};", reserved));
  }
  return body;
}

std::string module_text(const Attack& attack, Setting setting, std::uint32_t reserved) {
  std::string body = body_of(attack, reserved);
  const std::string in_function = setting == Setting::kFunction ? body : "";
  const std::string_view assert_function = attack.body.contains("__assertfail")
                                               ? ".extern .func __assertfail(.param .b64 a, .param "
                                                 ".b64 b, .param .b32 c, .param .b64 d, "
                                                 ".param .b64 e);"
                                               : "";
  std::string text = fmt::format(kHead, in_function, assert_function,
                                 in_function.contains("loc") ? ".local .align 8 .b8 loc[64];" : "");
  std::string shared = "	.shared .align 16 .b8 sh[256];";
  std::string before, after;
  const std::string fill =
      "	mov.u32 %r38, sh;\n	mad.lo.u32 %r38, %t, 4, %r38;\n"
      "	st.shared.u32 [%r38], %t;\n";
  switch (setting) {
    case Setting::kPlain:
      break;
    case Setting::kBarriers:
      before = fill + "	bar.sync 0;\n";
      after =
          "	bar.sync 0;\n	xor.b32 %r39, %t, 1;\n	shl.b32 %r39, %r39, 2;\n"
          "	mov.u32 %r38, sh;\n	add.u32 %r38, %r38, %r39;\n	ld.shared.u32 %r37, "
          "[%r38];\n"
          "	bar.sync 0;\n";
      break;
    case Setting::kOneBarrier:
      before = fill;
      after = "	bar.sync 0;\n	ld.shared.u32 %r37, [sh];\n";
      break;
    case Setting::kEarlyReturn:
      before = "	setp.eq.u32 %p7, %t, 5;\n	@%p7 ret;\n" + fill;
      after = "	bar.sync 0;\n	ld.shared.u32 %r37, [sh];\n	bar.sync 0;\n";
      break;
    case Setting::kLateEnd:
      // Odd threads end long after the others have come to the barrier.
      before =
          "	and.b32 %r36, %t, 1;\n	setp.ne.u32 %p7, %r36, 0;\n	@%p7 bra LEAVE;\n" + fill;
      after =
          "	bar.sync 0;\n	ld.shared.u32 %r37, [sh];\n	bar.sync 0;\n	bra STAY;\nLEAVE:\n"
          "	mov.u32 %r36, 0;\nLATER:\n	ld.volatile.global.u32 %r37, [%mine];\n"
          "	add.u32 %r36, %r36, 1;\n	setp.lt.u32 %p6, %r36, 50;\n	@%p6 bra LATER;\n"
          "	ret;\nSTAY:\n";
      break;
    case Setting::kDrained:
      // Data say how many barriers there are, and threads leave before.
      before = "	setp.eq.u32 %p7, %t, 5;\n	@%p7 ret;\n" + fill;
      after =
          "	ld.global.u32 %r36, [%good];\n	and.b32 %r36, %r36, 3;\nTURN:\n	bar.sync 0;\n"
          "	ld.shared.u32 %r37, [sh];\n	bar.sync 0;\n	sub.u32 %r36, %r36, 1;\n"
          "	setp.gt.s32 %p6, %r36, 0;\n	@%p6 bra TURN;\n";
      break;
    case Setting::kFunction:
      body =
          "	{\n	.param .b64 a, b;\n	st.param.b64 [a], %good;\n	st.param.b64 [b], "
          "%bad;\n"
          "	call attack_function, (a, b);\n	}\n";
      break;
  }
  return text + fmt::format(kEntry, body, shared, before, after);
}

std::vector<Attack> memory_attacks();
std::vector<Attack> other_attacks();

std::unique_ptr<device::Device> open_device(int seed) {
  auto device = kOnGpu ? cuda::open_cuda_device(0)
                       : device::open_device(fmt::format(
                             "sim:sms={},memory=256M,seed={},quantum={},max_kernel_seconds=30",
                             1 + seed % 4, seed, 1 + seed * 31 % 150));
  EXPECT_TRUE(device) << device.error().message;
  return std::move(*device);
}

bool has_device() {
  return !kOnGpu || cuda::driver_finds_a_gpu();
}

class AttackRunner {
 public:
  AttackRunner(const Attack& attack, Setting setting, int seed)
      : attack_(attack), random_(static_cast<std::uint64_t>(seed)) {
    device_ = open_device(seed);
    // Another launch than those to come, of the same blocks.
    const KernelCase first = {
        .name = attack_.name,
        .entry = "attack",
        .grid = {kBlocks, 1, 1},
        .block = {kThreads, 1, 1},
        .arguments = {Argument::buffer(std::vector<std::uint32_t>(kBlocks * kThreads, 7)),
                      Argument::value(std::uint64_t{0}), Argument::value(kAll)}};
    runner_ = std::make_unique<FormRunner>(
        *device_, module_text(attack, setting, reserved_shared(device_->info())), 0, true, &first);
    for (const injector::FenceVerdict& entry : runner_->fenced().entries)
      EXPECT_EQ(entry.why_not, "") << entry.name;
    victim_ = {runner_->beyond_extent().base, 2 * kDepth};
    runner_->write(victim_.base, std::vector<std::byte>(victim_.bytes, std::byte{0xa5}));
    runner_->write(end() - kDepth, std::vector<std::byte>(kDepth, std::byte{0x5a}));
  }

  /// In every form that it has.
  void try_all(std::uint32_t who) {
    const KernelCase kernel = kernel_case("attack", who);
    SCOPED_TRACE(fmt::format("attacker {}", who));
    runner_->run_native(kernel);
    check(who, "native", false);
    if (runner_->run_bounded(kernel)) check(who, "bounded", false);
    if (!runner_->forms("attack").slice.empty()) {
      runner_->run_slices(kernel, random_);
      check(who, "slice", true);
    }
    if (!runner_->forms("attack").profile.empty()) {
      runner_->run_profile(kernel);
      check(who, "profile", false);
    }
    if (runner_->forms("attack").worker.empty()) return;
    daemon::WorkerQueue queue = runner_->make_queue();
    for (int i = 0; i < 2; ++i) {
      runner_->run_worker(kernel, random_, {}, &queue);
      check(who, "worker", true);
      const Outcome after = runner_->run_worker(kernel_case("innocent", 0), random_, {}, &queue);
      EXPECT_EQ(difference(after, {innocent_result()}), "") << "after the attack";
      EXPECT_EQ(runner_->take_record().state, FenceRecord::kFree) << "an innocent kernel";
    }
  }

  /// With other placements, more workers and retreats while it is under way.
  void try_disturbed(std::uint32_t who) {
    if (!has_worker()) return;
    daemon::WorkerQueue queue = runner_->make_queue();
    const Disturbance all{.placements = true, .retreats = true, .supplements = true};
    runner_->run_worker(kernel_case("attack", who), random_, all, &queue);
    check(who, "worker, disturbed", true);
    const Outcome after = runner_->run_worker(kernel_case("innocent", 0), random_, all, &queue);
    EXPECT_EQ(difference(after, {innocent_result()}), "") << "after the attack";
  }

  /// At words that the workers use.
  void try_control_block() {
    daemon::WorkerQueue queue = runner_->make_queue();
    runner_->run_worker(kernel_case("innocent", 0), random_, {}, &queue);
    for (const std::uint64_t offset :
         {injector::ControlBlock::kNextOffset, injector::ControlBlock::kStateOffset,
          injector::ControlBlock::kArrivedOffset, injector::ControlBlock::kSmOffset}) {
      for (const std::uint32_t who : {kThreads * 5, kThreads * 7 + 37, kAll}) {
        KernelCase kernel = kernel_case("attack", who);
        kernel.arguments[1] = Argument::value(queue.control().base + offset);
        runner_->run_worker(kernel, random_, {}, &queue);
        const FenceRecord record = runner_->take_record();
        EXPECT_EQ(record.state, FenceRecord::kComplete);
        EXPECT_EQ(record.address, queue.control().base + offset);
        const Outcome after = runner_->run_worker(kernel_case("innocent", 0), random_, {}, &queue);
        EXPECT_EQ(difference(after, {innocent_result()}), "");
      }
    }
  }

  /// Of a session of which a thread was ended before.
  void try_behind_a_record() {
    runner_->set_ended();
    runner_->run_native(kernel_case("attack", kAll));
    EXPECT_EQ(runner_->take_record().state, FenceRecord::kFree);
    EXPECT_EQ(runner_->read(victim_), std::vector<std::byte>(victim_.bytes, std::byte{0xa5}));
  }

  bool drains() const { return runner_->forms("attack").analysis.drains; }
  bool has_worker() const { return !runner_->forms("attack").worker.empty(); }

 private:
  device::Address end() const {
    const auto extent = runner_->main_extent();
    return extent.base + extent.bytes;
  }

  std::uint64_t target() const {
    switch (attack_.target) {
      case Target::kVictim:
        return victim_.base + kDepth;
      case Target::kNull:
        return 0;
      case Target::kTop:
        return ~std::uint64_t{0} - 63;
      case Target::kPastEnd:
        return end();
      case Target::kAcrossEnd:
        return end() - 4;
      case Target::kBeforeStart:
        return runner_->main_extent().base - 16;
      case Target::kTable:
        return runner_->beyond_extent().base + runner_->beyond_extent().bytes;
      case Target::kMiddle:
        return runner_->main_extent().base + (1 << 20);
    }
    return 0;
  }

  KernelCase kernel_case(const std::string& entry, std::uint32_t who) const {
    return {.name = attack_.name,
            .entry = entry,
            .grid = {kBlocks, 1, 1},
            .block = {kThreads, 1, 1},
            .arguments = {Argument::buffer(std::vector<std::uint32_t>(kBlocks * kThreads, 7)),
                          Argument::value(target()), Argument::value(who)}};
  }

  static std::vector<std::byte> innocent_result() {
    std::vector<std::uint32_t> words(kBlocks * kThreads);
    for (std::uint32_t i = 0; i < words.size(); ++i) words[i] = 3 * i;
    const auto* bytes = reinterpret_cast<const std::byte*>(words.data());
    return {bytes, bytes + 4 * words.size()};
  }

  void check(std::uint32_t who, std::string_view form, bool is_numbered) {
    SCOPED_TRACE(form);
    const FenceRecord record = runner_->take_record();
    ASSERT_EQ(record.state, FenceRecord::kComplete) << "no violation was seen";
    EXPECT_EQ(record.kind, static_cast<std::uint32_t>(attack_.kind));
    EXPECT_EQ(record.bytes, attack_.bytes);
    EXPECT_EQ(record.module, 7u);
    if (attack_.knows_address) {
      EXPECT_EQ(record.address, target() + static_cast<std::uint64_t>(attack_.offset));
    }
    if (who != kAll) {
      EXPECT_EQ(record.thread[0], who % kThreads);
      const bool in_function = !runner_->fenced().functions[record.function].contains("attack__") &&
                               runner_->fenced().functions[record.function] != "attack";
      if (!in_function) {
        EXPECT_EQ(record.block[0], who / kThreads);
        EXPECT_EQ((record.flags & injector::kFenceNumbered) != 0, is_numbered);
      }
    }
    EXPECT_EQ(runner_->read(victim_), std::vector<std::byte>(victim_.bytes, std::byte{0xa5}));
    EXPECT_EQ(runner_->read({end() - kDepth, kDepth}),
              std::vector<std::byte>(kDepth, std::byte{0x5a}));
  }

  const Attack& attack_;
  std::mt19937_64 random_;
  std::unique_ptr<device::Device> device_;
  std::unique_ptr<FormRunner> runner_;
  device::AddressRange victim_{};
};

class FenceAttackTargetTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_device()) GTEST_SKIP() << "no GPU";
  }
};

TEST_F(FenceAttackTargetTest, WithoutTheFenceTheDeviceLetsThem) {
  const Attack attack{.name = "StoreWord", .body = "st.global.u32 [%bad], %r1;"};
  const auto device = open_device(1);
  FormRunner runner(*device, module_text(attack, Setting::kPlain, 0), 0);
  const device::AddressRange victim{runner.beyond_extent().base, 4};
  runner.write(victim.base, std::vector<std::byte>(4, std::byte{0xa5}));
  runner.run_native({.name = "attack",
                     .entry = "attack",
                     .grid = {1, 1, 1},
                     .block = {kThreads, 1, 1},
                     .arguments = {Argument::buffer(std::vector<std::uint32_t>(kThreads)),
                                   Argument::value(victim.base), Argument::value(kAll)}});
  EXPECT_NE(runner.read(victim), std::vector<std::byte>(4, std::byte{0xa5}));
}

class FenceAttackTest : public testing::TestWithParam<Attack> {
 protected:
  void SetUp() override {
    if (!has_device()) GTEST_SKIP() << "no GPU";
    if (kOnGpu && !GetParam().assembles) GTEST_SKIP() << "ptxas refuses it";
  }
};

TEST_P(FenceAttackTest, NothingIsTouchedAndTheLaunchEnds) {
  int seed = 1;
  for (const Setting setting : {Setting::kPlain, Setting::kBarriers, Setting::kOneBarrier}) {
    SCOPED_TRACE(fmt::format("setting {}", static_cast<int>(setting)));
    AttackRunner runner(GetParam(), setting, seed++);
    EXPECT_TRUE(runner.has_worker() || !GetParam().knows_address);
    runner.try_all(kThreads * 5);       // a worker's leader
    runner.try_all(kThreads * 7 + 37);  // another thread
    runner.try_all(kAll);
    if (HasFailure()) return;
  }
}

TEST_P(FenceAttackTest, NothingIsTouchedByAFunction) {
  AttackRunner runner(GetParam(), Setting::kFunction, 3);
  runner.try_all(kThreads * 5);
  runner.try_all(kThreads * 7 + 37);
  runner.try_all(kAll);
}

TEST_P(FenceAttackTest, NothingIsTouchedWhereThreadsReturnEarly) {
  AttackRunner runner(GetParam(), Setting::kEarlyReturn, 4);
  runner.try_all(kThreads * 5);
  runner.try_all(kThreads * 7 + 37);
}

TEST_P(FenceAttackTest, NothingIsTouchedWhereThreadsEndBesideABarrier) {
  AttackRunner runner(GetParam(), Setting::kLateEnd, 6);
  runner.try_all(kThreads * 5);
  runner.try_all(kThreads * 7 + 38);
  runner.try_all(kAll);
}

TEST_P(FenceAttackTest, NothingIsTouchedWhereThreadsAreCountedAtBarriers) {
  AttackRunner runner(GetParam(), Setting::kDrained, 5);
  EXPECT_TRUE(runner.drains() || GetParam().name != "StoreWord");
  runner.try_all(kThreads * 5);
  runner.try_all(kThreads * 7 + 37);
  runner.try_all(kAll);
}

TEST_F(FenceAttackTargetTest, LaunchesEndOnEverySchedule) {
  const Attack attacks[] = {{.name = "StoreWord", .body = "st.global.u32 [%bad], %r1;"},
                            {.name = "Trap",
                             .body = "trap;",
                             .kind = Violation::kTrap,
                             .bytes = 0,
                             .knows_address = false}};
  for (const Attack& attack : attacks) {
    for (const Setting setting : {Setting::kPlain, Setting::kBarriers, Setting::kOneBarrier,
                                  Setting::kFunction, Setting::kEarlyReturn, Setting::kDrained}) {
      for (int seed = 1; seed <= kSchedules && !testing::Test::HasFailure(); ++seed) {
        SCOPED_TRACE(
            fmt::format("{} in setting {}, seed {}", attack.name, static_cast<int>(setting), seed));
        AttackRunner runner(attack, setting, seed);
        runner.try_all(kAll);
        runner.try_disturbed(kThreads * 5);
        runner.try_disturbed(kThreads * 20 + 11);
        runner.try_disturbed(kAll);
      }
    }
  }
}

TEST_F(FenceAttackTargetTest, NobodyClaimsTheRecordOfASessionThatHasOne) {
  const Attack attack{.name = "StoreWord", .body = "st.global.u32 [%bad], %r1;"};
  AttackRunner runner(attack, Setting::kPlain, 1);
  runner.try_behind_a_record();
}

TEST_F(FenceAttackTargetTest, TheControlBlockIsOutOfReach) {
  const Attack attack{.name = "ControlBlock", .body = "atom.global.add.u32 %r1, [%bad], 100;"};
  for (int seed = 1; seed < 5; ++seed) {
    AttackRunner runner(attack, Setting::kOneBarrier, seed);
    runner.try_control_block();
  }
}

/// The index is read, so that the copy compares it with the elements that the pointer has. There is
/// no room behind the parameters, so it computes these itself.
TEST_F(FenceAttackTargetTest, ABoundedCopyTouchesNothingThatWasTakenOutBeforeItBegan) {
  const std::string text = R"(.version 8.7
.target sm_90
.address_size 64
.visible .entry kernel(.param .u64 words, .param .u64 indices, .param .align 8 .b8 more[4080])
{
.reg .b32 %r<4>;
.reg .b64 %rd<8>;
ld.param.u64 %rd1, [words];
ld.param.u64 %rd2, [indices];
mov.u32 %r1, %tid.x;
mul.wide.u32 %rd3, %r1, 4;
add.u64 %rd4, %rd2, %rd3;
ld.global.u32 %r2, [%rd4];
mul.wide.u32 %rd5, %r2, 4;
add.u64 %rd6, %rd1, %rd5;
st.global.u32 [%rd6], %r1;
ret;
}
)";
  const auto device = open_device(1);
  const std::vector<std::uint32_t> indices(kThreads, 1 << 20);
  const KernelCase kernel{
      .name = "kernel",
      .entry = "kernel",
      .grid = {1, 1, 1},
      .block = {kThreads, 1, 1},
      .arguments = {Argument::buffer(std::vector<std::uint32_t>(kThreads)),
                    Argument::buffer(indices), Argument::value(std::array<std::byte, 4080>{})}};
  FormRunner runner(*device, text, 0, true, &kernel);
  ASSERT_TRUE(runner.run_bounded(kernel)) << "the copy is not for this launch";
  ASSERT_EQ(runner.take_record().state, FenceRecord::kFree) << "the index is in the main extent";
  ASSERT_TRUE(runner.run_bounded_without_memory(kernel));
  EXPECT_EQ(runner.take_record().state, FenceRecord::kComplete);
}

std::string name_of(const testing::TestParamInfo<Attack>& info) {
  return info.param.name;
}

INSTANTIATE_TEST_SUITE_P(Memory, FenceAttackTest, testing::ValuesIn(memory_attacks()), name_of);
INSTANTIATE_TEST_SUITE_P(Other, FenceAttackTest, testing::ValuesIn(other_attacks()), name_of);

/// Loads, stores and atomics of all widths, everywhere.
std::vector<Attack> memory_attacks() {
  std::vector<Attack> all;
  const auto add = [&](std::string name, std::string body, std::uint32_t bytes,
                       Target target = Target::kVictim, std::int64_t offset = 0,
                       Violation kind = Violation::kRange) {
    all.push_back({std::move(name), std::move(body), kind, bytes, target, offset});
  };
  add("StoreByte", "st.global.u8 [%bad], %r1;", 1);
  add("StoreHalf", "st.global.u16 [%bad], %h1;", 2);
  add("StoreWord", "st.global.u32 [%bad], %r1;", 4);
  add("StoreLong", "st.global.u64 [%bad], %rd1;", 8);
  add("StorePair", "st.global.v2.u32 [%bad], {%r1, %r2};", 8);
  add("StoreFour", "st.global.v4.u32 [%bad], {%r1, %r2, %r3, %r4};", 16);
  add("StoreLongs", "st.global.v2.u64 [%bad], {%rd1, %rd2};", 16);
  add("StoreVolatile", "st.volatile.global.u32 [%bad], %r1;", 4);
  add("StoreRelease", "st.release.gpu.global.u32 [%bad], %r1;", 4);
  add("StoreGeneric", "st.u32 [%bad], %r1;", 4);
  add("StoreGenericBytes", "st.v4.u8 [%bad], {%r1, %r2, %r3, %r4};", 4);
  add("StoreBehind", "st.global.u32 [%bad+64], %r1;", 4, Target::kVictim, 64);
  add("StoreInFront", "st.global.u32 [%bad+-64], %r1;", 4, Target::kVictim, -64);
  add("StoreFarBehind", "sub.u64 %rd1, %bad, 80000;\nst.global.u32 [%rd1+80000], %r1;", 4);
  add("StoreFarInFront", "add.u64 %rd1, %bad, 80000;\nst.global.u32 [%rd1+-80000], %r1;", 4);
  add("StoreComputed",
      "mul.wide.u32 %rd1, %t, 0;\nadd.u64 %rd2, %bad, %rd1;\n"
      "st.global.u32 [%rd2], %r1;",
      4);
  add("LoadByte", "ld.global.u8 %r1, [%bad];", 1);
  add("LoadHalf", "ld.global.u16 %h1, [%bad];", 2);
  add("LoadWord", "ld.global.u32 %r1, [%bad];", 4);
  add("LoadLong", "ld.global.u64 %rd1, [%bad];", 8);
  add("LoadFour", "ld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%bad];", 16);
  add("LoadConstantCache", "ld.global.nc.u32 %r1, [%bad];", 4);
  add("LoadVolatile", "ld.volatile.global.u32 %r1, [%bad];", 4);
  add("LoadAcquire", "ld.acquire.sys.global.u32 %r1, [%bad];", 4);
  add("LoadGeneric", "ld.u32 %r1, [%bad];", 4);
  add("LoadUniform", "ldu.global.u32 %r1, [%bad];", 4);
  add("AtomAdd", "atom.global.add.u32 %r1, [%bad], 1;", 4);
  add("AtomAddLong", "atom.global.add.u64 %rd1, [%bad], 1;", 8);
  add("AtomExchange", "atom.global.exch.b32 %r1, [%bad], 1;", 4);
  add("AtomCompare", "atom.global.cas.b32 %r1, [%bad], 1, 2;", 4);
  add("AtomFloat", "atom.global.add.f32 %f1, [%bad], %f2;", 4);
  add("AtomGeneric", "atom.max.u32 %r1, [%bad], 1;", 4);
  add("AtomSystem", "atom.sys.global.or.b32 %r1, [%bad], 1;", 4);
  add("ReduceAdd", "red.global.add.u32 [%bad], 1;", 4);
  add("ReduceLong", "red.global.min.u64 [%bad], 1;", 8);
  add("ReduceGeneric", "red.xor.b32 [%bad], 1;", 4);
  add("Null", "st.global.u32 [%bad], %r1;", 4, Target::kNull);
  add("NullLoad", "ld.global.u32 %r1, [%bad];", 4, Target::kNull);
  add("NullGeneric", "st.u32 [%bad], %r1;", 4, Target::kNull);
  add("Absolute", "st.global.u32 [64], %r1;", 4, Target::kNull, 64);
  all.back().assembles = false;
  add("Top", "st.global.u64 [%bad+56], %rd1;", 8, Target::kTop, 56);
  add("TopLoad", "ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%bad+48];", 16, Target::kTop, 48);
  add("Wrapped", "st.global.u32 [%bad+64], %r1;", 4, Target::kTop, 64);
  add("WrappedMerged",
      "ld.global.u32 %r1, [%bad];\nld.global.u32 %r2, [%bad+64];\n"
      "ld.global.u32 %r3, [%bad+4000];",
      4, Target::kTop);
  add("PastEnd", "st.global.u32 [%bad], %r1;", 4, Target::kPastEnd);
  add("PastEndLoad", "ld.global.u8 %r1, [%bad];", 1, Target::kPastEnd);
  add("PastEndMerged", "ld.global.u32 %r1, [%bad+-8];\nst.global.u32 [%bad], %r1;", 4,
      Target::kPastEnd);
  add("PastEndLongMerged", "ld.global.u32 %r1, [%bad+-4000];\nst.global.u32 [%bad], %r1;", 4,
      Target::kPastEnd);
  add("AcrossEnd", "st.global.u64 [%bad], %rd1;", 8, Target::kAcrossEnd, 0, Violation::kMisaligned);
  add("AcrossEndBytes", "ld.global.u32 %r1, [%bad];\nst.global.u8 [%bad+4], %r1;", 1,
      Target::kAcrossEnd, 4);
  add("BeforeStart", "st.global.u32 [%bad], %r1;", 4, Target::kBeforeStart);
  // By an index from a pointer among the parameters.
  const std::string index =
      "sub.u64 %rd10, %bad, %good;\nshr.s64 %rd11, %rd10, 2;\ncvt.u32.u64 %r20, %rd11;\n";
  const std::string element =
      index + "mul.wide.s32 %rd12, %r20, 4;\nadd.s64 %rd13, %good, %rd12;\n";
  add("IndexPastEnd", element + "st.global.u32 [%rd13], %r1;", 4, Target::kPastEnd);
  add("IndexBehind", element + "st.global.u32 [%rd13+64], %r1;", 4, Target::kPastEnd, 64);
  add("IndexInFront", element + "st.global.u32 [%rd13+-64], %r1;", 4, Target::kBeforeStart, -64);
  add("IndexAcrossEnd", element + "ld.global.u32 %r1, [%rd13];\nst.global.u8 [%rd13+4], %r1;", 1,
      Target::kAcrossEnd, 4);
  add("IndexNegative", element + "ld.global.u32 %r1, [%rd13];", 4, Target::kBeforeStart);
  add("IndexNegativeUnsigned",
      index +
          "mul.wide.u32 %rd12, %r20, 4;\nadd.s64 %rd13, %rd12, %good;\n"
          "st.global.u32 [%rd13], %r1;",
      4, Target::kBeforeStart, std::int64_t{1} << 34);
  add("IndexChangedBehind", element + "mov.u32 %r20, 0;\nst.global.u32 [%rd13], %r1;", 4,
      Target::kPastEnd);
  add("IndexShifted",
      index +
          "cvt.u64.u32 %rd12, %r20;\nshl.b64 %rd13, %rd12, 2;\nadd.s64 %rd14, %rd13, %good;\n"
          "atom.global.add.u32 %r1, [%rd14], 1;",
      4, Target::kPastEnd);
  add("IndexMultiplied", index + "mad.wide.s32 %rd12, %r20, 4, %good;\nst.global.u32 [%rd12], %r1;",
      4, Target::kPastEnd);
  add("IndexFromAnotherPlace",
      index +
          "add.s64 %rd12, %good, 256;\nsub.s32 %r21, %r20, 64;\nmul.wide.s32 %rd13, %r21, 4;\n"
          "add.s64 %rd14, %rd12, %rd13;\nst.global.u32 [%rd14], %r1;",
      4, Target::kPastEnd);
  add("IndexOfBytes",
      "sub.u64 %rd10, %bad, %good;\ncvt.u32.u64 %r20, %rd10;\ncvt.s64.s32 %rd12, %r20;\n"
      "add.s64 %rd13, %good, %rd12;\nst.global.u32 [%rd13+1], %r1;",
      4, Target::kMiddle, 1, Violation::kMisaligned);
  const std::string loaded = index + "st.local.u32 [loc], %r20;\nld.local.";
  const std::string loaded_element =
      loaded + "s32 %rd12, [loc];\nshl.b64 %rd13, %rd12, 2;\nadd.s64 %rd14, %rd13, %good;\n";
  add("IndexLoaded", loaded_element + "st.global.u32 [%rd14], %r1;", 4, Target::kPastEnd);
  add("IndexLoadedNegative", loaded_element + "ld.global.u32 %r1, [%rd14];", 4,
      Target::kBeforeStart);
  add("IndexLoadedUnsigned",
      loaded +
          "u32 %rd12, [loc];\nmul.lo.s64 %rd13, %rd12, 4;\nadd.s64 %rd14, %good, %rd13;\n"
          "st.global.u32 [%rd14], %r1;",
      4, Target::kBeforeStart, std::int64_t{1} << 34);
  // Near what is compared in its place, and in another block.
  const std::string neighbour =
      index +
      "sub.s32 %r21, %r20, 8;\nmul.wide.s32 %rd12, %r21, 4;\nadd.s64 %rd13, %good, %rd12;\n";
  const std::string second = "mul.wide.s32 %rd14, %r20, 4;\nadd.s64 %rd15, %good, %rd14;\n";
  add("IndexNeighbour",
      neighbour + second + "ld.global.u32 %r1, [%rd13];\nst.global.u32 [%rd15], %r1;", 4,
      Target::kPastEnd);
  add("IndexNeighbourBelow",
      index +
          "add.s32 %r21, %r20, 8;\nmul.wide.s32 %rd12, %r21, 4;\n"
          "add.s64 %rd13, %good, %rd12;\n" +
          second + "ld.global.u32 %r1, [%rd15];\nst.global.u32 [%rd13], %r1;",
      4, Target::kBeforeStart);
  add("IndexNeighbourBehindIf",
      neighbour +
          "ld.global.nc.u32 %r1, [%rd13];\nsetp.ne.u32 %p1, %t, 0;\n"
          "@%p1 bra BEHIND_IF;\nmov.u32 %r2, 1;\nBEHIND_IF:\n" +
          second + "st.global.u32 [%rd15], %r1;",
      4, Target::kPastEnd);
  add("IndexChangedByIf",
      index +
          "mov.u32 %r21, 0;\nmul.wide.s32 %rd12, %r21, 4;\nadd.s64 %rd13, %good, %rd12;\n"
          "ld.global.nc.u32 %r1, [%rd13];\nsetp.eq.u64 %p1, %bad, 0;\n"
          "@%p1 bra BEHIND_CHANGE;\nmov.u32 %r21, %r20;\nBEHIND_CHANGE:\n"
          "mul.wide.s32 %rd14, %r21, 4;\nadd.s64 %rd15, %good, %rd14;\n"
          "st.global.u32 [%rd15], %r1;",
      4, Target::kPastEnd);
  add("IndexChangedByTurn",
      index +
          "mov.u32 %r21, 0;\nmov.u32 %r22, 0;\nTURN_WITH_IF:\nmul.wide.s32 %rd12, %r21, 4;\n"
          "add.s64 %rd13, %good, %rd12;\nld.global.nc.u32 %r1, [%rd13];\n"
          "setp.eq.u32 %p1, %r22, 0;\n@%p1 bra BEHIND_FIRST;\nmov.u32 %r21, %r20;\n"
          "BEHIND_FIRST:\nadd.s32 %r23, %r21, 1;\nmul.wide.s32 %rd14, %r23, 4;\n"
          "add.s64 %rd15, %good, %rd14;\nst.global.u32 [%rd15+-4], %r1;\n"
          "add.u32 %r22, %r22, 1;\nsetp.lt.u32 %p2, %r22, 3;\n@%p2 bra TURN_WITH_IF;",
      4, Target::kPastEnd);
  add("IndexInALoop",
      "mov.u32 %r20, 0;\nTURN_OF_INDEX:\nmul.wide.u32 %rd12, %r20, 4;\n"
      "add.s64 %rd13, %good, %rd12;\nadd.u32 %r20, %r20, 65536;\n"
      "ld.global.u32 %r21, [%rd13];\nsetp.ne.u32 %p1, %r20, 0;\n@%p1 bra TURN_OF_INDEX;",
      4);
  all.back().knows_address = false;
  add("BeforeStartMerged", "ld.global.u32 %r1, [%bad+16];\nst.global.u32 [%bad+12], %r1;", 4,
      Target::kBeforeStart, 12);
  add("FenceTable", "st.global.u32 [%bad+64], %r1;", 4, Target::kTable, 64);
  add("FenceTableLoad", "ld.global.u64 %rd1, [%bad+80];", 8, Target::kTable, 80);
  add("FenceRecord", "st.global.u32 [%bad], %r1;", 4, Target::kTable);
  add("MisalignedWord", "st.global.u32 [%bad+2], %r1;", 4, Target::kMiddle, 2,
      Violation::kMisaligned);
  add("MisalignedHalf", "ld.global.u16 %h1, [%bad+1];", 2, Target::kMiddle, 1,
      Violation::kMisaligned);
  add("MisalignedLong", "ld.global.u64 %rd1, [%bad+4];", 8, Target::kMiddle, 4,
      Violation::kMisaligned);
  add("MisalignedFour", "ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%bad+8];", 16, Target::kMiddle, 8,
      Violation::kMisaligned);
  add("MisalignedAtom", "atom.global.add.u32 %r1, [%bad+3], 1;", 4, Target::kMiddle, 3,
      Violation::kMisaligned);
  add("MisalignedGeneric", "ld.u64 %rd1, [%bad+2];", 8, Target::kMiddle, 2, Violation::kMisaligned);
  add("MisalignedComputed",
      "cvt.u64.u32 %rd1, %t;\nadd.u64 %rd2, %bad, %rd1;\nsub.u64 %rd2, %rd2, "
      "%rd1;\nadd.u64 %rd3, %rd2, 1;\nst.global.u32 [%rd3], %r1;",
      4, Target::kMiddle, 1, Violation::kMisaligned);
  add("Guarded", "setp.ne.u64 %p1, %bad, 0;\n@%p1 st.global.u32 [%bad], %r1;", 4);
  add("GuardedNot", "setp.eq.u64 %p1, %bad, 0;\n@!%p1 ld.global.u32 %r1, [%bad];", 4);
  add("GuardedTwice",
      "setp.ne.u64 %p1, %bad, 0;\nsetp.eq.u64 %p2, %bad, 0;\n"
      "@%p2 ld.global.u32 %r2, [%bad+4];\n@%p1 st.global.u32 [%bad], %r1;",
      4);
  add("AfterGuarded",
      "setp.eq.u64 %p1, %bad, 0;\n@%p1 ld.global.u32 %r2, [%bad];\n"
      "st.global.u32 [%bad], %r1;",
      4);
  add("Loop",
      "mov.u64 %rd1, %good;\nmov.u32 %r1, 0;\nLOOP:\nsetp.eq.u32 %p1, %r1, 5;\n"
      "selp.b64 %rd2, %bad, %rd1, %p1;\nst.global.u32 [%rd2], %r1;\n"
      "add.u64 %rd1, %rd1, 4;\nadd.u32 %r1, %r1, 1;\nsetp.lt.u32 %p2, %r1, 9;\n"
      "@%p2 bra LOOP;",
      4);
  add("LoopWalksOut",
      "sub.u64 %rd1, %bad, 40;\nmov.u32 %r1, 0;\nLOOP:\n"
      "ld.global.u32 %r2, [%rd1];\nadd.u64 %rd1, %rd1, 8;\nadd.u32 %r1, %r1, 1;\n"
      "setp.lt.u32 %p2, %r1, 9;\n@%p2 bra LOOP;",
      4, Target::kPastEnd);
  add("BaseChanges",
      "ld.global.u32 %r1, [%good];\nmov.u64 %rd1, %good;\nld.global.u32 %r2, [%rd1];\n"
      "mov.u64 %rd1, %bad;\nst.global.u32 [%rd1], %r1;",
      4);
  add("BaseChangesBehindBranch",
      "mov.u64 %rd1, %good;\nmov.u32 %r1, 0;\nLOOP:\nld.global.u32 %r2, [%rd1];\n"
      "setp.eq.u32 %p1, %r1, 1;\n@%p1 bra OUT;\nmov.u64 %rd1, %bad;\nmov.u32 %r1, 1;\nbra LOOP;\n"
      "OUT:",
      4);
  add("ReadThenWriteConstant",
      "mov.u64 %rd1, table;\ncvta.const.u64 %rd1, %rd1;\n"
      "ld.u32 %r1, [%rd1];\nst.global.u32 [%bad], %r1;",
      4);
  return all;
}

std::vector<Attack> other_attacks() {
  std::vector<Attack> all;
  const auto add = [&](std::string name, std::string body, std::uint32_t bytes,
                       Violation kind = Violation::kRange) {
    all.push_back({std::move(name), std::move(body), kind, bytes, Target::kVictim, 0, false});
  };
  add("SharedFar", "mov.u32 %r1, 0x7fff0000;\nst.shared.u32 [%r1], %r2;", 4);
  add("SharedTop", "mov.u32 %r1, -4;\nld.shared.u32 %r2, [%r1];", 4);
  add("SharedWrapped", "mov.u32 %r1, -8;\nld.shared.v4.u32 {%r2, %r3, %r4, %r5}, [%r1+-8];", 16);
  add("SharedPastEnd", "mov.u32 %r1, END;\nst.shared.u8 [%r1], %r2;", 1);
  add("SharedAtom", "mov.u32 %r1, 0x100000;\natom.shared.add.u32 %r2, [%r1], 1;", 4);
  add("SharedReduce", "mov.u32 %r1, 0x100000;\nred.shared.add.u32 [%r1], 1;", 4);
  add("SharedMisaligned", "mov.u32 %r1, 18;\nld.shared.u32 %r2, [%r1];", 4, Violation::kMisaligned);
  add("SharedRegister64", "mov.u64 %rd1, 0x100000010;\nld.shared.u32 %r2, [%rd1];", 4);
  add("SharedMerged",
      "mov.u32 %r1, END;\nsub.u32 %r1, %r1, 8;\n"
      "ld.shared.u32 %r2, [%r1+8];",
      4);
  add("SharedWindow",
      "mov.u32 %r1, END;\ncvt.u64.u32 %rd1, %r1;\n"
      "cvta.shared.u64 %rd2, %rd1;\nst.u32 [%rd2], %r2;",
      4);
  add("SharedWindowFar",
      "mov.u64 %rd1, 0x700000;\ncvta.shared.u64 %rd2, %rd1;\n"
      "atom.add.u32 %r2, [%rd2], 1;",
      4);
  add("LocalFar", "mov.u64 %rd1, loc;\nadd.u64 %rd1, %rd1, %bad;\nst.local.u32 [%rd1], %r1;", 4);
  add("LocalPastEnd",
      "mov.u64 %rd1, loc;\ncvt.u64.u32 %rd2, %t;\nmul.lo.u64 %rd2, %rd2, 0;\n"
      "add.u64 %rd1, %rd1, %rd2;\nst.local.u32 [%rd1+64], %r1;",
      4);
  add("LocalInFront", "mov.u64 %rd1, loc;\nst.local.u32 [%rd1+-80], %r1;", 4);
  add("LocalMisaligned", "mov.u64 %rd1, loc;\nld.local.u32 %r1, [%rd1+2];", 4,
      Violation::kMisaligned);
  add("LocalWindow", "mov.u64 %rd1, loc;\ncvta.local.u64 %rd2, %rd1;\nst.u32 [%rd2+64], %r1;", 4);
  add("LocalWindowFar",
      "mov.u64 %rd1, loc;\ncvta.local.u64 %rd2, %rd1;\n"
      "add.u64 %rd2, %rd2, 0x100000;\nld.u32 %r1, [%rd2];",
      4);
  add("ConstantPastEnd",
      "mov.u64 %rd1, table;\ncvt.u64.u32 %rd2, %t;\nmul.lo.u64 %rd2, %rd2, 0;\n"
      "add.u64 %rd1, %rd1, %rd2;\nld.const.u32 %r1, [%rd1+16];",
      4);
  add("ConstantFar", "mov.u64 %rd1, 0x8000000;\nld.const.u32 %r1, [%rd1];", 4);
  add("VariablePastEnd",
      "mov.u64 %rd1, counter;\ncvt.u64.u32 %rd2, %t;\nmul.lo.u64 %rd2, %rd2, 0;\n"
      "add.u64 %rd1, %rd1, %rd2;\nst.global.u32 [%rd1+4096], %r1;",
      4);
  add("VariableByNamePastEnd", "st.global.u32 [counter+4096], %r1;", 4);
  add("CopyFrom",
      "mov.u32 %r1, 0;\ncvt.u64.u32 %rd1, %r1;\n"
      "cp.async.ca.shared.global [%r1], [%bad], 4;\ncp.async.wait_all;",
      4);
  add("CopyFromWide",
      "mov.u32 %r1, 0;\ncp.async.cg.shared.global [%r1], [%bad], 16;\n"
      "cp.async.wait_all;",
      16);
  add("CopyTo",
      "mov.u32 %r1, 0x100000;\ncp.async.ca.shared.global [%r1], [%good], 4;\n"
      "cp.async.wait_all;",
      4);
  add("CopyFromPart",
      "mov.u32 %r1, 0;\nmov.u32 %r2, 8;\n"
      "cp.async.cg.shared.global [%r1], [%bad], 16, %r2;\ncp.async.wait_all;",
      8);
  add("Trap", "trap;", 0, Violation::kTrap);
  add("GuardedTrap", "setp.ne.u64 %p1, %bad, 0;\n@%p1 trap;", 0, Violation::kTrap);
  add("Breakpoint", "brkpt;", 0, Violation::kBreakpoint);
  add("Jump",
      "mov.u32 %r1, 7;\nTABLE: .branchtargets FIRST, SECOND;\nbrx.idx %r1, TABLE;\n"
      "FIRST:\nmov.u32 %r2, 1;\nSECOND:\nmov.u32 %r2, 2;",
      0, Violation::kBranch);
  add("BarrierNumber", "mov.u32 %r1, 16;\nbar.sync %r1, 64;", 0, Violation::kBarrier);
  add("BarrierCount", "mov.u32 %r1, 33;\nbarrier.sync 2, %r1;", 0, Violation::kBarrier);
  add("BarrierCountZero", "mov.u32 %r1, 0;\nbarrier.arrive 2, %r1;", 0, Violation::kBarrier);
  add("SharedSweep",
      "mov.u32 %r1, 0;\nSWEEP:\nst.shared.u32 [%r1], %r2;\nadd.u32 %r1, %r1, 4;\n"
      "setp.lt.u32 %p1, %r1, 0x4000;\n@%p1 bra SWEEP;",
      4);
  add("SharedSweepWindow",
      "mov.u64 %rd1, 0;\ncvta.shared.u64 %rd1, %rd1;\nmov.u32 %r1, 0;\nSWEEP:\n"
      "st.u32 [%rd1], %r2;\nadd.u64 %rd1, %rd1, 4;\nadd.u32 %r1, %r1, 1;\n"
      "setp.lt.u32 %p1, %r1, 0x4000;\n@%p1 bra SWEEP;",
      4);
  add("SharedSweepDown",
      "mov.u32 %r1, 0x2000;\nSWEEP:\natom.shared.exch.b32 %r2, [%r1], -1;\nsub.u32 %r1, %r1, 4;\n"
      "setp.ne.u32 %p1, %r1, 0;\n@%p1 bra SWEEP;",
      4);
  add("Assert",
      "{\n.param .b64 a, b, d, e;\n.param .b32 c;\nst.param.b64 [a], 0;\nst.param.b64 [b], 0;\n"
      "st.param.b32 [c], 0;\nst.param.b64 [d], 0;\nst.param.b64 [e], 0;\n"
      "call __assertfail, (a, b, c, d, e);\n}",
      0, Violation::kAssert);
  add("Texture", "tex.1d.v4.u32.s32 {%r1, %r2, %r3, %r4}, [%bad, {%t}];", 0, Violation::kHandle);
  add("TextureQuery", "txq.width.b32 %r1, [%bad];", 0, Violation::kHandle);
  add("Surface", "suld.b.1d.b32.trap {%r1}, [%bad, {%t}];", 0, Violation::kHandle);
  add("BulkFrom",
      "mov.u32 %r1, 0;\nmov.u32 %r2, 64;\n"
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%bad], "
      "%r2, [%r1];",
      64);
  add("BulkTo",
      "mov.u32 %r1, 0;\nmov.u32 %r2, 64;\n"
      "cp.async.bulk.global.shared::cta.bulk_group [%bad], [%r1], %r2;\n"
      "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;",
      64);
  add("BarrierObject", "mov.u32 %r1, 0x200000;\nmbarrier.init.shared.b64 [%r1], 1;", 8);
  add("MatrixRows",
      "mov.u32 %r1, 0x200000;\n"
      "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r2, %r3, %r4, %r5}, [%r1];",
      16);
  add("Matrix",
      "mov.u32 %r1, 16;\nwmma.load.a.sync.aligned.row.m16n16k16.global.f16 "
      "{%r2, %r3, %r4, %r5, %r6, %r7, %r8, %r9}, [%bad], %r1;",
      512);
  return all;
}

}  // namespace
}  // namespace slate::test
