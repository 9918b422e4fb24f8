// A host that has no memory left: it ends the work that wanted some, and nothing else.
#include <gtest/gtest.h>

#include <future>
#include <new>

#include "device/sim/gpu.h"
#include "device/sim/streams.h"
#include "injector/ptx/module.h"

namespace slate::sim {
namespace {

constexpr const char* kPrints = R"(.version 9.0
.target sm_90
.address_size 64
.extern .func (.param .b32 r) vprintf(.param .b64 format, .param .b64 list);
.global .align 1 .b8 text[4] = {104, 105, 10, 0};
.visible .entry prints()
{
  .reg .b64 %rd<2>;
  cvta.global.u64 %rd1, text;
  { .param .b64 p0; .param .b64 p1; .param .b32 q0;
    st.param.b64 [p0], %rd1; st.param.b64 [p1], 0;
    call.uni (q0), vprintf, (p0, p1); }
  ret;
})";

Settings two_threads() {
  Settings settings;
  settings.sms = 2;
  settings.threads = 2;
  return settings;
}

/// A launch of 100 blocks that print.
std::shared_ptr<KernelRun> printing(const char* text, PrintSink print) {
  const std::shared_ptr<const ptx::Module> module = *ptx::parse(kPrints);
  const auto at = reinterpret_cast<device::Address>(text);
  const auto program = Program::decode(module, *module->find_entry("prints"), {{"text", at}});
  EXPECT_TRUE(program);
  auto run = std::make_shared<KernelRun>();
  run->launch.program = *program;
  run->launch.grid = {100, 1, 1};
  run->launch.block = {32, 1, 1};
  run->launch.memory.globals = {at, 4};
  run->launch.print = std::move(print);
  run->cost = block_cost((*program)->info(), 32, 0);
  run->sms.set();
  return run;
}

TEST(HostMemoryTest, ALaunchThatFindsNoneFaultsAndOthersRun) {
  const char text[4] = "hi\n";
  Gpu gpu(two_threads());
  for (const bool fails : {true, false}) {
    const auto run = printing(text, [fails](std::string_view) {
      if (fails) throw std::bad_alloc();
    });
    std::promise<KernelOutcome> ended;
    run->done = [&ended](const KernelOutcome& outcome) { ended.set_value(outcome); };
    gpu.start(run);
    const KernelOutcome outcome = ended.get_future().get();
    ASSERT_EQ(outcome.fault.has_value(), fails);
    if (!fails) continue;
    EXPECT_EQ(outcome.fault->code, ErrorCode::kLaunchFailed);
    EXPECT_EQ(outcome.fault->message.rfind("kernel prints: the host has no memory", 0), 0u);
  }
}

TEST(HostMemoryTest, ACopyThatFindsNoneFaultsItsStreamOnly) {
  const Settings settings = two_threads();
  Streams streams(settings);
  SmSet all;
  all.set();
  const device::Stream stream = streams.create_stream(0, device::kWholeDevice, all);
  const device::Stream other = streams.create_stream(0, device::kWholeDevice, all);
  const device::Event event = streams.create_event(false);
  const auto outcome_on = [&](device::Stream its) {
    EXPECT_TRUE(streams.record(event, its));
    auto reached = streams.query(event);
    while (reached && !*reached) {
      streams.wait_for_progress(std::chrono::seconds(1));
      reached = streams.query(event);
    }
    return reached ? ErrorCode::kNone : reached.error().code;
  };
  ASSERT_TRUE(streams.enqueue(stream, []() -> Result<void> { throw std::bad_alloc(); }));
  EXPECT_EQ(outcome_on(stream), ErrorCode::kLaunchFailed);
  EXPECT_EQ(outcome_on(other), ErrorCode::kNone);
}

}  // namespace
}  // namespace slate::sim
