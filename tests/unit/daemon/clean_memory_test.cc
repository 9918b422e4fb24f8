// Memory that leaves without being copied, as nothing wrote to it since it came back. Here all of a
// session's memory leaves in front of each command, on sim. What is clean is compared with its copy
// then, so a writer that is forgotten is found by the next command.
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "daemon/engine/residency/residency.h"
#include "tests/unit/daemon/session_fixture.h"

namespace slate::daemon {
namespace {

using ipc::CommandType;

/// A kernel with the parameters [to] and [from]; `body` has them in %to and %from, a word at [from]
/// in %value and the place of the thread's word at [to] in %mine.
std::string kernel_text(const std::string& name, const std::string& body) {
  return ".visible .entry " + name + R"((.param .u64 a, .param .u64 b)
{
  .reg .b64 %to, %from, %mine, %d<9>;
  .reg .b32 %value, %thread, %r<9>;
  .reg .pred %p<4>;
  .shared .align 128 .b8 tile[128];
  ld.param.u64 %to, [a];
  ld.param.u64 %from, [b];
  ld.global.u32 %value, [%from];
  mov.u32 %thread, %tid.x;
  mad.wide.u32 %mine, %thread, 4, %to;
)" + body +
         "\n  ret;\n}\n";
}

/// By name; each writes to [to] and to nothing else.
const std::map<std::string, std::string>& writers() {
  static const std::map<std::string, std::string> kWriters = {
      {"stores", "st.global.u32 [%mine], %value;"},
      {"stores_four", "st.global.v4.u32 [%to], {%value, %value, %value, %value};"},
      {"stores_by_any_address", "st.u32 [%mine], %value;"},
      {"stores_volatile", "st.volatile.global.u32 [%mine], %value;"},
      {"stores_relaxed", "st.relaxed.gpu.global.u32 [%mine], %value;"},
      {"adds", "atom.global.add.u32 %r1, [%mine], 7;"},
      {"exchanges", "atom.global.exch.b32 %r1, [%mine], %value;"},
      {"swaps", "atom.global.cas.b32 %r1, [%mine], 0, 9;"},
      {"reduces", "red.global.max.u32 [%mine], %value;"},
      {"where_a_predicate_says",
       "setp.eq.u32 %p1, %thread, 5; @%p1 st.global.u32 [%mine], %value;"},
      {"by_a_chosen_address",
       "setp.eq.u32 %p1, %thread, 0; selp.b64 %d1, %to, %mine, %p1; st.global.u32 [%d1], 11;"},
      {"in_a_function", "call.uni put, (%mine, %value);"},
      {"from_shared_memory", R"(
  mov.u32 %r1, tile;
  shl.b32 %r2, %thread, 2;
  add.u32 %r2, %r1, %r2;
  st.shared.u32 [%r2], %value;
  bar.sync 0;
  fence.proxy.async.shared::cta;
  setp.ne.u32 %p1, %thread, 0;
  @%p1 bra $end;
  cp.async.bulk.global.shared::cta.bulk_group [%to], [%r1], 128;
  cp.async.bulk.commit_group;
  cp.async.bulk.wait_group 0;
$end:)"},
  };
  return kWriters;
}

class CleanMemoryTest : public testing::Test {
 protected:
  static constexpr std::uint64_t kBytes = 3 << 19;  // of an allocation, which fills a segment
  static constexpr std::uint32_t kThreads = 32;

  CleanMemoryTest() {
    std::string ptx = R"(.version 8.3
.target sm_90
.address_size 64
.func put(.param .u64 place, .param .u32 value)
{
  .reg .b64 %d1;
  .reg .b32 %r1;
  ld.param.u64 %d1, [place];
  ld.param.u32 %r1, [value];
  st.global.u32 [%d1], %r1;
  ret;
}
)";
    for (const auto& [name, body] : writers()) ptx += kernel_text(name, body);
    ptx += kernel_text("reads", "");
    ptx += R"(.visible .entry by_a_stride(.param .u64 a, .param .s64 b)
{
  .reg .b64 %to, %stride;
  ld.param.u64 %to, [a];
  ld.param.s64 %stride, [b];
  mad.lo.s64 %to, %stride, 4, %to;
  st.global.u32 [%to], 19;
  ret;
}
)";
    ptx += kernel_text("by_a_table", "ld.global.u64 %d1, [%to]; st.global.u32 [%d1], %value;");
    const auto image = TestSession::text(ptx);
    const auto size = static_cast<std::uint32_t>(image.size());
    EXPECT_TRUE(session_.call(CommandType::kModuleLoad,
                              ipc::ModuleLoad{1, size, 0, ipc::kImagePtx, 0}, image));
  }
  void SetUp() override {
    to_ = *session_.allocate(kBytes);
    from_ = *session_.allocate(kBytes);
    table_ = *session_.allocate(kBytes);
    fill(to_, 1000);
    fill(from_, 2000);
    fill(table_, 3000);
    put(table_, to_);
  }
  void TearDown() override { EXPECT_EQ(session_.async_error(), ErrorCode::kNone); }

  void fill(std::uint64_t at, std::uint32_t value) {
    ASSERT_TRUE(session_.post(CommandType::kFill, ipc::Fill{at, kBytes, kBytes, 1, 0, value, 4}));
  }
  template <typename Value>
  void put(std::uint64_t at, const Value& value) {
    ASSERT_TRUE(
        session_.post(CommandType::kCopyInline, ipc::CopyInline{at, 0}, ipc::bytes_of(value)));
  }
  void copy(std::uint64_t to, std::uint64_t from, std::uint64_t bytes) {
    ASSERT_TRUE(session_.post(
        CommandType::kCopy,
        ipc::Copy{Place::on_device(to, bytes), Place::on_device(from, bytes), {bytes}, 0}));
  }
  void launch(const std::string& name, std::uint64_t to, std::uint64_t from) {
    if (!functions_.contains(name)) {
      functions_[name] = functions_.size() + 1;
      ASSERT_TRUE(session_.add_function(functions_[name], name)) << name;
    }
    const std::uint64_t arguments[] = {to, from};
    ASSERT_TRUE(session_.post(
        CommandType::kLaunch,
        ipc::Launch{functions_[name], 0, {1, 1, 1}, {kThreads, 1, 1}, 0, sizeof(arguments)},
        std::as_bytes(std::span(arguments))));
  }
  /// The first words of the allocation.
  std::vector<int> words(std::uint64_t at, std::size_t count = kThreads) {
    std::vector<int> found(count);
    auto staging = session_.client->acquire_staging();
    EXPECT_TRUE(session_.post(CommandType::kCopy,
                              ipc::Copy{Place::in_slot(staging->slot, staging->sequence),
                                        Place::on_device(at, 4 * count),
                                        {4 * count},
                                        0}));
    EXPECT_TRUE(session_.client->wait_staging(*staging));
    std::memcpy(found.data(), staging->memory.data(), 4 * count);
    session_.client->release_staging(*staging, true);
    return found;
  }
  /// From word to word, as a number of 64 bits.
  static std::uint64_t stride(std::uint64_t from, std::uint64_t to) {
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(to - from) / 4);
  }
  std::uint64_t clean_out() const { return residency_->counts().clean_out; }

  const std::unique_ptr<device::Device> device_ =
      std::move(*device::open_device("sim:sms=2,memory=128M"));
  const std::shared_ptr<Residency> residency_ = std::make_shared<Residency>(
      *device_,
      Residency::Settings{
          .capacity = 64 << 20, .swap = 256 << 20, .piece = 2 << 20, .evicts_always = true},
      HostPool::Settings{.pinned = 0, .directory = "", .chunk = 16 << 20, .most = 256 << 20});
  Completer completer_{*device_};
  Compiler compiler_{*device_, nullptr};
  FormMaker maker_{compiler_, {.forms = false}};  // tells what kernels reach
  TestSession session_{*device_,
                       completer_,
                       64 << 20,
                       std::chrono::seconds(60),
                       {},
                       nullptr,
                       nullptr,
                       1,
                       ::geteuid(),
                       nullptr,
                       [this](SessionSpec& spec) { spec.residency = residency_; },
                       &maker_};
  std::map<std::string, std::uint64_t> functions_;
  std::uint64_t to_ = 0, from_ = 0, table_ = 0;
};

TEST_F(CleanMemoryTest, WhatIsOnlyReadIsNotCopiedOut) {
  launch("reads", to_, from_);
  ASSERT_TRUE(session_.synchronize());
  const std::uint64_t before = clean_out();
  for (int turn = 0; turn < 4; ++turn) launch("reads", to_, from_);
  ASSERT_TRUE(session_.synchronize());
  EXPECT_EQ(clean_out() - before, 4 * (2 << 20));
  const std::uint64_t moved = residency_->counts().moved_out;
  launch("stores", to_, from_);
  launch("reads", table_, from_);
  launch("reads", table_, from_);
  ASSERT_TRUE(session_.synchronize());
  EXPECT_EQ(words(from_, 1), std::vector<int>{2000});
  EXPECT_GT(residency_->counts().moved_out, moved);
}

TEST_F(CleanMemoryTest, EveryKindOfWriteOfAKernelIsSeen) {
  for (const auto& [name, body] : writers()) {
    fill(to_, 0);
    const std::vector<int> before = words(to_);
    launch(name, to_, from_);
    launch("reads", from_, to_);
    EXPECT_NE(words(to_), before) << name;
    EXPECT_EQ(words(from_, 1), std::vector<int>{2000}) << name;
    ASSERT_EQ(session_.async_error(), ErrorCode::kNone) << name;
  }
}

TEST_F(CleanMemoryTest, AWriteByAnAddressFromMemoryIsSeenWhereverItGoes) {
  (void)words(to_, 2);
  launch("by_a_table", table_, from_);
  EXPECT_EQ(words(to_, 2), (std::vector<int>{2000, 1000}));
}

TEST_F(CleanMemoryTest, AStrideIntoAnotherAllocationIsSeen) {
  for (const std::uint64_t start : {from_, table_}) {
    fill(to_, 1000);
    (void)words(to_, 2);
    launch("by_a_stride", start, stride(start, to_ + 4));
    EXPECT_EQ(words(to_, 2), (std::vector<int>{1000, 19}));
  }
  launch("by_a_stride", to_, stride(to_, from_));
  EXPECT_EQ(words(from_, 1), std::vector<int>{19});
}

TEST_F(CleanMemoryTest, EveryKindOfCopyAndFillIsSeen) {
  (void)words(to_, 2);
  put(to_ + 4, std::uint32_t{17});
  EXPECT_EQ(words(to_, 3), (std::vector<int>{1000, 17, 1000}));
  copy(to_ + 4, from_, 4);
  EXPECT_EQ(words(to_, 3), (std::vector<int>{1000, 2000, 1000}));
  ASSERT_TRUE(session_.post(CommandType::kFill, ipc::Fill{to_ + 8, 8, 4, 2, 0, 5, 1}));
  EXPECT_EQ(words(to_, 5), (std::vector<int>{1000, 2000, 0x05050505, 1000, 0x05050505}));
  auto staging = session_.client->acquire_staging();
  ASSERT_TRUE(staging);
  const std::uint32_t value = 23;
  std::memcpy(staging->memory.data(), &value, sizeof(value));
  ASSERT_TRUE(session_.post(
      CommandType::kCopy,
      ipc::Copy{
          Place::on_device(to_, 4), Place::in_slot(staging->slot, staging->sequence), {4}, 0}));
  ASSERT_TRUE(session_.client->wait_staging(*staging));
  session_.client->release_staging(*staging, true);
  EXPECT_EQ(words(to_, 2), (std::vector<int>{23, 2000}));
}

TEST_F(CleanMemoryTest, RandomProgramsComputeWhatTheyDoWithoutMoves) {
  constexpr std::uint64_t kPlaces = 8;  // words that a program uses in each allocation
  std::mt19937 random(7);
  const auto any_of = [&](std::uint64_t count) { return random() % count; };
  const std::vector<std::uint64_t> all = {to_, from_, table_};
  std::map<std::uint64_t, std::uint32_t> expected;
  for (const std::uint64_t base : all) {
    fill(base, static_cast<std::uint32_t>(base >> 20));
    for (std::uint64_t i = 0; i < kPlaces + kThreads; ++i)
      expected[base + 4 * i] = static_cast<std::uint32_t>(base >> 20);
  }
  for (int command = 0; command < 100; ++command) {
    const std::uint64_t first = any_of(3), second = (first + 1 + any_of(2)) % 3;
    const std::uint64_t to = all[first] + 4 * any_of(kPlaces);
    const std::uint64_t from = all[second] + 4 * any_of(kPlaces);
    switch (any_of(6)) {
      case 0:
        put(to, std::uint32_t{static_cast<std::uint32_t>(command)});
        expected[to] = static_cast<std::uint32_t>(command);
        break;
      case 1:
        copy(to, from, 4);
        expected[to] = expected[from];
        break;
      case 2:
        launch("stores", to, from);
        for (std::uint64_t i = 0, value = expected[from]; i < kThreads; ++i)
          expected[to + 4 * i] = static_cast<std::uint32_t>(value);
        break;
      case 3:
        launch("adds", to, from);
        for (std::uint64_t i = 0; i < kThreads; ++i) expected[to + 4 * i] += 7;
        break;
      case 4:
        launch("reads", to, from);
        break;
      default:
        EXPECT_EQ(*session_.read_int(from), static_cast<int>(expected[from])) << command;
    }
  }
  for (const std::uint64_t base : all) {
    const auto found = words(base, kPlaces + kThreads);
    for (std::uint64_t i = 0; i < found.size(); ++i)
      EXPECT_EQ(found[i], static_cast<int>(expected[base + 4 * i])) << i;
  }
  EXPECT_GT(clean_out(), 0u);
}

/// Two sessions on a device for one of them.
class OutsideMemoryTest : public testing::Test {
 protected:
  static constexpr std::uint64_t kBytes = 28 << 20;

  void SetUp() override {
    owner_at_ = *owner_.allocate(kBytes);
    ASSERT_TRUE(owner_.post(CommandType::kFill, ipc::Fill{owner_at_, kBytes, kBytes, 1, 0, 41, 4}));
    ASSERT_TRUE(owner_.synchronize());
  }
  void TearDown() override {
    EXPECT_EQ(*owner_.read_int(owner_at_), 41);
    EXPECT_EQ(*owner_.read_int(owner_at_ + kBytes - 4), 41);
    EXPECT_EQ(owner_.async_error(), ErrorCode::kNone);
  }
  Result<void> make_array(std::uint64_t mib) {
    const ArraySpec spec{.format = {ChannelKind::kFloat, 32, 1, 0},
                         .extent = {1 << 10, mib << 8, 0}};
    return asker_.call(CommandType::kArrayCreate, ipc::ArrayCreate{1, spec});
  }
  std::uint64_t evictions() const { return residency_->counts().evictions; }

  const std::unique_ptr<device::Device> device_ =
      std::move(*device::open_device("sim:sms=2,memory=40M"));
  const std::shared_ptr<Residency> residency_ = std::make_shared<Residency>(
      *device_, Residency::Settings{.capacity = 32 << 20, .swap = 128 << 20, .piece = 4 << 20},
      HostPool::Settings{.pinned = 0, .directory = "", .chunk = 16 << 20, .most = 128 << 20});
  const std::function<void(SessionSpec&)> adapt_ = [this](SessionSpec& spec) {
    spec.residency = residency_;
  };
  Completer completer_{*device_};
  TestSession owner_{*device_,    completer_, 64 << 20, std::chrono::seconds(60),
                     {},          nullptr,    nullptr,  1,
                     ::geteuid(), nullptr,    adapt_};
  TestSession asker_{*device_,    completer_, 64 << 20, std::chrono::seconds(60),
                     {},          nullptr,    nullptr,  2,
                     ::geteuid(), nullptr,    adapt_};
  std::uint64_t owner_at_ = 0;
};

TEST_F(OutsideMemoryTest, OthersLeaveForAnArray) {
  const auto made = make_array(20);
  EXPECT_TRUE(made) << made.error().message;
  EXPECT_GT(owner_.session->status().places.on_host, 0u);
  EXPECT_EQ(residency_->counts().moved_in, 0u) << "an array is no segment";
}

TEST_F(OutsideMemoryTest, OthersLeaveForAModulesVariables) {
  const std::string ptx =
      ".version 8.0\n.target sm_90\n.address_size 64\n.visible .global .align 4 .b8 v[20971520];\n";
  const auto image = TestSession::text(ptx);
  const auto loaded = asker_.call(
      CommandType::kModuleLoad,
      ipc::ModuleLoad{1, static_cast<std::uint32_t>(image.size()), 0, ipc::kImagePtx, 0}, image);
  EXPECT_TRUE(loaded) << loaded.error().message;
  EXPECT_GT(owner_.session->status().places.on_host, 0u);
}

TEST_F(OutsideMemoryTest, TheSessionsOwnMemoryLeavesToo) {
  const auto at = *asker_.allocate(20 << 20);
  ASSERT_TRUE(asker_.post(CommandType::kFill, ipc::Fill{at, 20 << 20, 20 << 20, 1, 0, 5, 4}));
  const auto made = make_array(30);
  EXPECT_TRUE(made) << made.error().message;
  EXPECT_GT(asker_.session->status().places.on_host, 0u);
}

TEST_F(OutsideMemoryTest, NobodyLeavesForWhatASessionMayNotHave) {
  EXPECT_EQ(make_array(70).error().code, ErrorCode::kOutOfMemory) << "it may have 64 MiB";
  EXPECT_EQ(evictions(), 0u);
}

TEST_F(OutsideMemoryTest, WhatTheDeviceCannotHoldIsRefused) {
  EXPECT_EQ(make_array(60).error().code, ErrorCode::kOutOfMemory);
  EXPECT_TRUE(make_array(4)) << "and what it can hold is made";
}

}  // namespace
}  // namespace slate::daemon
