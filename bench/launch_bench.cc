// What a launch takes the engine and the program of processor time, beside what the device's driver
// takes: a session whose device does nothing, launches in a row, and one at a time with a wait
// behind it. Needs no GPU; 2 cores give no more than the row. One JSON line a case, medians.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "bench/median.h"
#include "tests/unit/daemon/fake_device.h"
#include "tests/unit/daemon/session_client.h"

namespace {

using namespace slate;
using namespace slate::bench;
using namespace slate::daemon;

constexpr int kRounds = 9;

/// Every launch has ended when it is made, and took 10 us.
class IdleDevice final : public FakeDevice {
 public:
  Result<void> launch(const device::LaunchSpec&, device::Stream) override { return {}; }
  Result<float> elapsed_ms(device::Event, device::Event) override { return 0.01F; }
};

double microseconds_of(int who) {
  rusage used{};
  ::getrusage(who, &used);
  const auto us = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_usec);
  };
  return us(used.ru_utime) + us(used.ru_stime);
}

/// Calls `work`, which makes `launches`, again and again; prints each launch's part.
template <typename Work>
void measure(const char* name, int launches, const Work& work) {
  std::vector<double> engine, program, wall;
  for (int round = 0; round < kRounds; ++round) {
    const double all = microseconds_of(RUSAGE_SELF), own = microseconds_of(RUSAGE_THREAD);
    const std::int64_t start = now_ns();
    work();
    wall.push_back(static_cast<double>(now_ns() - start) * 1e-3 / launches);
    const double mine = (microseconds_of(RUSAGE_THREAD) - own) / launches;
    program.push_back(mine);
    engine.push_back((microseconds_of(RUSAGE_SELF) - all) / launches - mine);
  }
  std::printf("{\"case\": \"%s\", \"engine_us\": %.3f, \"program_us\": %.3f, \"wall_us\": %.3f}\n",
              name, median(engine), median(program), median(wall));
}

}  // namespace

int main(int argc, char** argv) {
  const bool small = argc > 1 && std::string_view(argv[1]) == "--small";
  const int in_a_row = small ? 1'000 : 100'000, single = small ? 50 : 5'000;
  IdleDevice device;
  Compiler compiler(device, nullptr);
  Completer completer(device);
  FormService forms(device, FormChoice::kNative, true);
  Trace trace(4096);
  const scheduler::Settings settings;
  Executor executor(device, forms, completer, trace, policy_maker("adaptive", settings), settings);
  {
    SessionClient client(device, compiler, executor, completer, 1);
    client.load("not read", "noop");
    const std::uint64_t argument = client.allocate(4096);
    const auto row = [&] {
      for (int i = 0; i < in_a_row; ++i) client.launch(0, 1, argument);
      client.synchronize();
    };
    row();
    measure("launches in a row", in_a_row, row);
    measure("launch and synchronize", single, [&] {
      for (int i = 0; i < single; ++i) {
        client.launch(0, 1, argument);
        client.synchronize();
      }
    });
  }
  executor.stop_preparing();
  return testing::Test::HasFailure() ? 1 : 0;
}
