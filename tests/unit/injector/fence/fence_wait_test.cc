// Threads that wait for one that the fence has ended, on sim or a GPU. The attacker ends before it
// does what the others wait for. They must end, too, in every form, and the record must be the
// attacker's. So must the threads of later kernels of the session.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "device/cuda/cuda_device.h"
#include "device/device.h"
#include "tests/unit/forms/form_runner.h"

namespace slate::test::waits {
namespace {

using injector::FenceRecord;
using injector::Violation;

constexpr std::uint32_t kBlocks = 24;
constexpr std::uint32_t kThreads = 64;
constexpr bool kOnGpu = SLATE_FENCE_ON_GPU;
constexpr std::uint32_t kNobody = ~0u;

/// A way to wait. The attacker runs `first`, what it attacks with, and `then`; the others `wait`.
struct Waiting {
  std::string name;
  std::string first, then, wait;
  bool is_in_block = false;  // whether only the attacker's own block waits for it
  bool has_worker = false;
};

void PrintTo(const Waiting& waiting, std::ostream* out) {
  *out << waiting.name;
}

constexpr std::string_view kText = R"(.version 8.7
.target sm_90
.address_size 64
.func (.param .b32 result) has_come(.param .b64 word)
{{
	.reg .b32 %a;
	.reg .b64 %b;
	ld.param.b64 %b, [word];
	ld.volatile.u32 %a, [%b];
	st.param.b32 [result], %a;
	ret;
}}
.func wait_for(.param .b64 word)
{{
	.reg .pred %p;
	.reg .b32 %a;
	.reg .b64 %b;
	ld.param.b64 %b, [word];
AGAIN:
	ld.acquire.gpu.u32 %a, [%b];
	setp.eq.u32 %p, %a, 0;
	@%p bra AGAIN;
	ret;
}}
.visible .entry attack(.param .u64 p_out, .param .u64 p_words, .param .u64 p_bad, .param .u32 p_who)
{{
	.reg .pred %p<8>, %hit, %mine;
	.reg .b32 %r<20>, %t, %who, %i, %all;
	.reg .b64 %rd<20>, %out, %words, %bad;
	.shared .align 8 .b8 sh[512];
	.shared .align 8 .b8 object[8];
	.shared .align 8 .b8 told[8];
	ld.param.u64 %out, [p_out];
	ld.param.u64 %words, [p_words];
	ld.param.u64 %bad, [p_bad];
	ld.param.u32 %who, [p_who];
	mov.u32 %t, %tid.x;
	mov.u32 %i, %ctaid.x;
	mov.u32 %r1, 1;
	mov.u32 %r2, 0;
	mov.u32 %all, {4};
	shr.u32 %r3, %who, 6;
	setp.eq.u32 %mine, %r3, %i;
	mad.lo.u32 %i, %i, 64, %t;
	mul.wide.u32 %rd1, %i, 4;
	add.u64 %out, %out, %rd1;
	setp.eq.u32 %hit, %i, %who;
	mov.u32 %r3, sh;
	mad.lo.u32 %r3, %t, 8, %r3;
	st.shared.u64 [%r3], %words;
	st.shared.u32 [told], %r2;
	{6}
	bar.sync 0;
	@%hit bra ATTACK;
	{5}
	{3}
	bra BEHIND;
ATTACK:
	{0}
	{1}
	{2}
BEHIND:
	st.global.u32 [%out], %r1;
	ret;
}}
)";
constexpr std::string_view kOnlyInBlock = "@!%mine bra BEHIND;";
constexpr std::string_view kMakeObject =
    "setp.eq.u32 %p1, %t, 0;\n@%p1 mbarrier.init.shared.b64 [object], 64;";
constexpr std::string_view kStore = "st.global.u32 [%bad], %r1;";

std::string module_text(const Waiting& waiting, std::string_view attack) {
  return fmt::format(kText, waiting.first, attack, waiting.then, waiting.wait, kBlocks * kThreads,
                     waiting.is_in_block ? kOnlyInBlock : "",
                     waiting.wait.contains("[object]") ? kMakeObject : "");
}

std::vector<Waiting> ways_to_wait() {
  const std::string tell = "membar.gl;\nst.volatile.global.u32 [%words], %r1;";
  const std::string tell_block = "st.volatile.shared.u32 [told], %r1;";
  const std::string again = "setp.eq.u32 %p1, %r4, 0;\n@%p1 bra WAIT;";
  const std::string call =
      "{\n.param .b64 in;\nst.param.b64 [in], %words;\ncall wait_for, (in);\n}";
  const std::string ask =
      "{\n.param .b64 in;\n.param .b32 out;\nst.param.b64 [in], %words;\n"
      "call (out), has_come, (in);\nld.param.b32 %r4, [out];\n}\n";
  std::vector<Waiting> all{
      {"Volatile", "", tell, "WAIT:\nld.volatile.global.u32 %r4, [%words];\n" + again},
      {"Acquire", "", tell, "WAIT:\nld.acquire.gpu.global.u32 %r4, [%words];\n" + again},
      // A GPU may never give way from such a loop to another thread of the same warp.
      {"Plain", "", tell,
       "shr.u32 %r5, %i, 5;\nshr.u32 %r6, %who, 5;\nsetp.eq.u32 %p2, %r5, %r6;\n"
       "@%p2 bra BEHIND;\nWAIT:\nmembar.gl;\nld.global.u32 %r4, [%words];\n" +
           again},
      {"Atomic", "", tell, "WAIT:\natom.global.or.b32 %r4, [%words], 0;\n" + again},
      {"Pauses", "", tell,
       "mov.u32 %r5, 8;\nWAIT:\nnanosleep.u32 %r5;\nld.volatile.global.u32 %r4, [%words];\n"
       "min.u32 %r5, %r5, 100;\nshl.b32 %r5, %r5, 1;\n" +
           again},
      {"Lock",
       "TAKE:\natom.global.cas.b32 %r4, [%words], 0, 1;\nsetp.ne.u32 %p1, %r4, 0;\n"
       "@%p1 bra TAKE;\nst.volatile.global.u32 [%words+4], %r1;",
       "membar.gl;\natom.global.exch.b32 %r4, [%words], 0;",
       // Once the attacker has the lock.
       "READY:\nld.volatile.global.u32 %r4, [%words+4];\nsetp.eq.u32 %p1, %r4, 0;\n"
       "@%p1 bra READY;\nWAIT:\natom.global.cas.b32 %r4, [%words], 0, 1;\n"
       "setp.ne.u32 %p1, %r4, 0;\n@%p1 bra WAIT;\nmembar.gl;\n"
       "atom.global.exch.b32 %r4, [%words], 0;"},
      {"GridBarrier", "", "red.global.add.u32 [%words], 1;",
       "red.global.add.u32 [%words], 1;\nWAIT:\nld.volatile.global.u32 %r4, [%words];\n"
       "setp.lt.u32 %p1, %r4, %all;\n@%p1 bra WAIT;"},
      {"OneLaneForAll", "", tell,
       "mov.u32 %r5, %laneid;\nactivemask.b32 %r6;\nbrev.b32 %r7, %r6;\nclz.b32 %r7, %r7;\n"
       "setp.eq.u32 %p2, %r5, %r7;\nmov.u32 %r4, 0;\nWAIT:\n"
       "@%p2 ld.volatile.global.u32 %r4, [%words];\n"
       "shfl.sync.idx.b32 %r4, %r4, %r7, 31, %r6;\n" +
           again},
      {"TwoLoops", "", tell,
       "TURN:\nmov.u32 %r5, 0;\nSTEP:\nld.volatile.global.u32 %r4, [%words];\n"
       "add.u32 %r5, %r5, 1;\nsetp.lt.u32 %p1, %r5, 10;\n@%p1 bra STEP;\n"
       "setp.eq.u32 %p1, %r4, 0;\n@%p1 bra TURN;"},
      {"TwoWaysIn", "", tell,
       "and.b32 %r5, %t, 1;\nsetp.eq.u32 %p1, %r5, 0;\n@%p1 bra MIDDLE;\nWAIT:\n"
       "ld.volatile.global.u32 %r4, [%words];\nsetp.ne.u32 %p1, %r4, 0;\n@%p1 bra BEHIND;\n"
       "MIDDLE:\nld.volatile.global.u32 %r4, [%words+4];\nbra WAIT;"},
      {"Function", "", tell, call},
      {"LoopOfCalls", "", tell, "WAIT:\n" + ask + again},
      {"Shared", "", tell_block, "WAIT:\nld.volatile.shared.u32 %r4, [told];\n" + again, true,
       true},
      {"SharedFunction", "", tell_block,
       "mov.u64 %rd2, told;\ncvta.shared.u64 %words, %rd2;\n" + call, true, true},
      // Behind it are barriers of which data say how many there are.
      {"SharedDrained", "", tell_block,
       "setp.eq.u32 %p2, %t, 5;\n@%p2 ret;\nWAIT:\nld.volatile.shared.u32 %r4, [told];\n" + again +
           "\nld.global.u32 %r5, [%words];\nand.b32 %r5, %r5, 3;\nTURN:\nbar.sync 0;\n"
           "ld.shared.u32 %r6, [sh];\nbar.sync 0;\nsub.u32 %r5, %r5, 1;\n"
           "setp.gt.s32 %p1, %r5, 0;\n@%p1 bra TURN;",
       true, true},
      {"BarrierObject", "", "mbarrier.arrive.shared.b64 %rd2, [object];",
       "mbarrier.arrive.shared.b64 %rd2, [object];\nWAIT:\n"
       "mbarrier.try_wait.shared.b64 %p1, [object], %rd2;\n@!%p1 bra WAIT;",
       true}};
  return all;
}

class WaitRunner {
 public:
  WaitRunner(const Waiting& waiting, std::string_view attack, int seed)
      : random_(static_cast<std::uint64_t>(seed)), is_in_block_(waiting.is_in_block) {
    device_ = kOnGpu ? require_device(cuda::open_cuda_device(0))
                     : require_device(device::open_device(fmt::format(
                           "sim:sms={},memory=256M,seed={},quantum={},max_kernel_seconds=60",
                           1 + seed % 4, seed, 1 + seed * 31 % 150)));
    const KernelCase first = kernel_case(kNobody);
    runner_ = std::make_unique<FormRunner>(*device_, module_text(waiting, attack), 0, true, &first);
    const auto& entries = runner_->fenced().entries;
    for (const injector::FenceVerdict& entry : entries) {
      EXPECT_EQ(entry.why_not, "") << entry.name;
      EXPECT_EQ(entry.counts.waits, entries.front().counts.waits) << "a form's own loops need none";
    }
  }

  bool has_worker() const { return !runner_->forms("attack").worker.empty(); }

  /// In each form, calls `check` with its name and what it left, behind a launch with this
  /// attacker.
  void in_all_forms(std::uint32_t who, const auto& check) {
    const KernelCase kernel = kernel_case(who);
    check("native", runner_->run_native(kernel));
    if (const auto bounded = runner_->run_bounded(kernel)) check("bounded", *bounded);
    // A block may have to end before those that it waits for begin.
    if (is_in_block_ && !runner_->forms("attack").slice.empty()) {
      check("slice", runner_->run_slices(kernel, random_));
    }
    if (!runner_->forms("attack").profile.empty()) {
      check("profile", runner_->run_profile(kernel));
    }
    if (!is_in_block_ || !has_worker()) return;
    daemon::WorkerQueue queue = runner_->make_queue();
    for (int i = 0; i < 2; ++i) {
      check("worker", runner_->run_worker(kernel, random_, {}, &queue));
    }
  }

  void attack(std::uint32_t who, Violation kind) {
    SCOPED_TRACE(fmt::format("attacker {}", who));
    in_all_forms(who, [&](const std::string& form, const Outcome&) {
      const FenceRecord record = runner_->take_record();
      ASSERT_EQ(record.state, FenceRecord::kComplete) << form;
      EXPECT_EQ(record.kind, static_cast<std::uint32_t>(kind)) << form;
      EXPECT_EQ(record.thread[0], who % kThreads) << form;
      EXPECT_EQ(record.block[0], who / kThreads) << form;
      EXPECT_TRUE(runner_->has_ended()) << form;
    });
  }

  /// It does nothing but what the others wait for.
  void be_kind(std::uint32_t who) {
    Outcome first;
    in_all_forms(who, [&](const std::string& form, const Outcome& outcome) {
      if (first.empty()) first = outcome;
      EXPECT_EQ(difference(outcome, first), "") << form;
      EXPECT_EQ(runner_->take_record().state, FenceRecord::kFree) << form;
      EXPECT_FALSE(runner_->has_ended()) << form;
    });
  }

  /// Nobody does what they wait for, but the session has ended before.
  void wait_afterwards() {
    runner_->set_ended();
    in_all_forms(kNobody, [&](const std::string& form, const Outcome&) {
      EXPECT_EQ(runner_->take_record().state, FenceRecord::kFree) << form;
    });
  }

 private:
  static std::unique_ptr<device::Device> require_device(
      Result<std::unique_ptr<device::Device>> device) {
    EXPECT_TRUE(device) << device.error().message;
    return std::move(*device);
  }

  KernelCase kernel_case(std::uint32_t who) const {
    return {.name = "waits",
            .entry = "attack",
            .grid = {kBlocks, 1, 1},
            .block = {kThreads, 1, 1},
            .arguments = {Argument::buffer(std::vector<std::uint32_t>(kBlocks * kThreads, 7)),
                          Argument::buffer(std::vector<std::uint32_t>(4, 0)),
                          Argument::value(std::uint64_t{16}), Argument::value(who)}};
  }

  std::unique_ptr<device::Device> device_;
  std::unique_ptr<FormRunner> runner_;
  std::mt19937_64 random_;
  bool is_in_block_;
};

class FenceWaitTest : public testing::TestWithParam<Waiting> {
 protected:
  void SetUp() override {
    if (kOnGpu && !cuda::driver_finds_a_gpu()) GTEST_SKIP() << "no GPU";
  }
};

TEST_P(FenceWaitTest, ThreadsThatWaitForAnEndedOneEnd) {
  for (int seed = 1; seed <= std::min(3, SLATE_FENCE_SCHEDULES) && !HasFailure(); ++seed) {
    WaitRunner runner(GetParam(), kStore, seed);
    EXPECT_TRUE(runner.has_worker() || !GetParam().has_worker);
    runner.attack(kThreads * 5, Violation::kRange);       // a worker's leader
    runner.attack(kThreads * 7 + 37, Violation::kRange);  // another thread
  }
}

TEST_P(FenceWaitTest, ThreadsThatWaitForATrappedOneEnd) {
  WaitRunner runner(GetParam(), "trap;", 2);
  runner.attack(kThreads * 3 + 2, Violation::kTrap);
}

TEST_P(FenceWaitTest, ThreadsThatWaitInALaterKernelEnd) {
  WaitRunner runner(GetParam(), kStore, 3);
  runner.wait_afterwards();
}

TEST_P(FenceWaitTest, ThreadsThatAreToldGoOn) {
  WaitRunner runner(GetParam(), "", 1);
  runner.be_kind(kThreads * 4 + 6);
}

INSTANTIATE_TEST_SUITE_P(Ways, FenceWaitTest, testing::ValuesIn(ways_to_wait()),
                         [](const auto& each) { return each.param.name; });

}  // namespace
}  // namespace slate::test::waits
