// A session that goes on in the next engine, where the one before died in the middle of a command.
// Both engines are in this process, one after the other, on the same simulated device.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <functional>
#include <future>
#include <memory>
#include <numeric>
#include <thread>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "daemon/engine/own_copies.h"
#include "daemon/engine/residency/residency.h"
#include "daemon/engine/resume_order.h"
#include "daemon/engine/session.h"
#include "daemon/engine/session_book.h"
#include "tests/unit/daemon/forwarding_device.h"
#include "tests/unit/ipc/session_ends.h"

namespace slate::daemon {
namespace {

using ipc::CommandType;

constexpr std::string_view kMovedModule = R"(
.version 7.0
.target sm_70
.address_size 64
.visible .entry nothing() { ret; }
)";

constexpr std::string_view kVariables = R"(
.version 7.0
.target sm_70
.address_size 64
.visible .global .align 4 .u32 counter;
.visible .const .align 4 .u32 weight = 5;
.visible .entry add(.param .u64 to)
{
	.reg .b32 %r<4>;
	.reg .b64 %rd<2>;
	ld.param.u64 %rd1, [to];
	ld.global.u32 %r1, [counter];
	ld.const.u32 %r2, [weight];
	add.u32 %r3, %r1, %r2;
	st.global.u32 [%rd1], %r3;
	ret;
}
)";

/// Sim, which gets lost where the test wants it, and says of its events what the test wants.
class LosableDevice : public ForwardingDevice {
 public:
  LosableDevice() : ForwardingDevice(std::move(*device::open_device("sim:sms=1,memory=256M"))) {}

  /// It is lost when this block of host memory is mapped, from 1 on; 0: never.
  void lose_at_block(int count) {
    blocks_left_ = count;
    lost_ = false;
  }
  bool lost() const override { return lost_; }
  Result<device::Address> map_host(int fd, std::uint64_t bytes, device::Address least) override {
    if (blocks_left_ > 0 && --blocks_left_ == 0) {
      lost_ = true;
      return fail(ErrorCode::kIllegalAddress, "the device is lost");
    }
    return ForwardingDevice::map_host(fd, bytes, least);
  }
  /// No event seems to be reached.
  void hide_progress(bool hides) { hides_ = hides; }
  Result<bool> query(device::Event event) override {
    auto reached = ForwardingDevice::query(event);
    return reached && hides_ ? Result<bool>(false) : reached;
  }
  /// All events seem to be so far apart; 0: as they are.
  void set_elapsed(float milliseconds) { elapsed_ = milliseconds; }
  Result<float> elapsed_ms(device::Event start, device::Event stop) override {
    return elapsed_ > 0 ? Result<float>(elapsed_) : ForwardingDevice::elapsed_ms(start, stop);
  }
  /// Fills seem to be done, and are not.
  void lose_fills(bool loses) { loses_fills_ = loses; }
  Result<void> fill(device::Address to, std::uint64_t to_pitch, FillValue value, const Box& box,
                    device::Stream stream) override {
    if (loses_fills_) return {};
    return ForwardingDevice::fill(to, to_pitch, value, box, stream);
  }

 private:
  std::atomic<bool> hides_{false};
  std::atomic<bool> loses_fills_{false};
  std::atomic<float> elapsed_{0};
  std::atomic<int> blocks_left_{0};
  std::atomic<bool> lost_{false};
};

UniqueFd copy_of(const UniqueFd& fd) {
  return UniqueFd(::fcntl(fd.get(), F_DUPFD_CLOEXEC, 0));
}

/// What the supervisor keeps of a session.
class KeptSession {
 public:
  explicit KeptSession(const DeviceInfo& device) : ends_(device, 64 << 20) {}

  SessionSpec spec_for(device::Device& device) {
    SessionSpec spec;
    spec.id = 1;
    spec.program = "test";
    spec.memory_limit = 64 << 20;
    spec.ends = {copy_of(ends_.ends.from_client), copy_of(ends_.ends.to_client),
                 copy_of(ends_.ends.socket)};
    spec.segment = ipc::SessionEnds::map_again(ends_.segment);
    HeldMemory held;
    {
      const MutexLock lock(mutex_);
      for (const auto& [key, memory] : held_) held.emplace(key, copy_of(memory));
    }
    spec.book = std::make_shared<SessionBook>(device, open_book(), std::move(held), holder());
    if (suspected_of_ != ErrorCode::kNone) {
      spec.suspected_of = suspected_of_;
      spec.order = std::make_shared<ResumeOrder>();
      spec.order->expect(spec.id);
    }
    if (capacity_ > 0) {
      residency_ = std::make_shared<Residency>(
          device, Residency::Settings{.capacity = capacity_, .swap = 256 << 20, .piece = 4 << 20},
          HostPool::Settings{.pinned = 0, .directory = "", .chunk = 16 << 20});
      spec.residency = residency_;
    }
    return spec;
  }
  /// From the next engine on it may have been the cause of this fault.
  void suspect_of(ErrorCode fault) { suspected_of_ = fault; }
  /// From the next engine on the device has so much, and the rest is on the host.
  void swap_beyond(std::uint64_t capacity) { capacity_ = capacity; }
  /// Of the present engine.
  Residency& residency() { return *residency_; }
  /// As another process sees it.
  std::unique_ptr<Book> open_book() {
    return std::move(*Book::from_fd(UniqueFd(::fcntl(book_->fd(), F_DUPFD_CLOEXEC, 0))));
  }
  /// Nothing comes from a dead engine.
  void hear(bool hears) {
    const MutexLock lock(mutex_);
    hears_ = hears;
  }
  std::size_t held() const {
    const MutexLock lock(mutex_);
    return held_.size();
  }
  /// What happens when the device has no memory left.
  void on_full(std::function<bool()> make_room) {
    const MutexLock lock(mutex_);
    make_room_ = std::move(make_room);
  }
  ipc::ClientChannel& client() { return *ends_.client; }
  void hang_up() {
    ends_.client.reset();
    ends_.bell.reset();
  }

 private:
  SessionBook::Holder holder() {
    return {.hold = [this](Book::Key key, int memory) -> Result<void> {
              const MutexLock lock(mutex_);
              if (hears_) held_[key].reset(::fcntl(memory, F_DUPFD_CLOEXEC, 0));
              return {};
            },
            .let_go =
                [this](Book::Key key) {
                  const MutexLock lock(mutex_);
                  if (hears_) held_.erase(key);
                },
            .make_room =
                [this] {
                  const MutexLock lock(mutex_);
                  return make_room_ && make_room_();
                }};
  }

  std::uint64_t capacity_ = 0;
  ErrorCode suspected_of_ = ErrorCode::kNone;
  std::shared_ptr<Residency> residency_;
  ipc::SessionEnds ends_;
  const std::unique_ptr<Book> book_ = std::move(*Book::make());
  mutable Mutex mutex_;
  HeldMemory held_ SLATE_GUARDED_BY(mutex_);
  bool hears_ SLATE_GUARDED_BY(mutex_) = true;
  std::function<bool()> make_room_ SLATE_GUARDED_BY(mutex_);
};

/// An engine with this one session.
class OneSession {
 public:
  OneSession(device::Device& device, SessionSpec spec)
      : completer_(device),
        compiler_(device, nullptr),
        maker_(compiler_, {.forms = false}),
        forms_(device, FormChoice::kNative, false, &maker_),
        executor_(device, forms_, completer_, trace_, policy_maker("fifo", {}), {}),
        session(device, compiler_, executor_, completer_, std::move(spec),
                {[](const Error&) {},
                 [](std::uint64_t) {},
                 {},
                 {},
                 [this](std::uint64_t, const std::string& why) { why_it_stays_.set_value(why); }},
                std::chrono::seconds(60)),
        thread_([this] { session.run(); }) {}
  ~OneSession() { join(); }
  void join() {
    if (thread_.joinable()) thread_.join();
  }
  /// Waits until the session says that it cannot leave.
  std::string why_it_stays() { return why_it_stays_.get_future().get(); }

 private:
  std::promise<std::string> why_it_stays_;
  Completer completer_;
  Compiler compiler_;
  FormMaker maker_;  // tells what kernels reach
  FormService forms_;
  Trace trace_{0};
  Executor executor_;

 public:
  Session session;

 private:
  std::thread thread_;
};

class SessionMovedTest : public testing::Test {
 protected:
  ~SessionMovedTest() override { kept_.hang_up(); }

  template <typename Body>
  void post(CommandType type, const Body& body, std::span<const std::byte> tail = {}) {
    EXPECT_TRUE(client().post(type, ipc::bytes_of(body), tail));
  }
  template <typename Answer, typename Body>
  Result<Answer> call(CommandType type, const Body& body, std::span<const std::byte> tail = {}) {
    Answer answer{};
    const auto done = client().call(type, ipc::bytes_of(body), tail,
                                    std::as_writable_bytes(std::span(&answer, 1)));
    if (!done) return std::unexpected(done.error());
    return answer;
  }
  Result<std::uint64_t> allocate(std::uint64_t bytes) {
    const auto answer =
        call<ipc::AddressReply>(CommandType::kMemoryAllocate, ipc::MemoryAllocate{bytes});
    if (!answer) return std::unexpected(answer.error());
    return answer->address;
  }
  /// The first error of commands without reply, once everything before has been looked at.
  Error async_error() {
    const auto done = call<ipc::MemoryInfoReply>(CommandType::kMemoryInfo, char{});
    return done ? client().take_async_error() : done.error();
  }
  /// Waits until all work of the session is done.
  void finish() {
    const auto waited =
        client().call(CommandType::kSynchronize,
                      ipc::bytes_of(ipc::Target{ipc::TargetKind::kSession, 0, 0}), {}, {});
    EXPECT_TRUE(waited) << waited.error().message;
  }
  /// Waits until all commands were taken. Returns the position of the last one.
  std::uint64_t last_taken() {
    const std::uint64_t last = client().status().ring_tail.load();
    const auto book = kept_.open_book();
    while (book->taken() < last && client().check()) std::this_thread::yield();
    return last;
  }
  /// The engine dies. `taken`: the position up to which it has told that commands were taken.
  void die(std::uint64_t taken) {
    kept_.hear(false);
    engine_->session.departure().freeze();
    engine_->session.stop("");
    engine_.reset();
    kept_.open_book()->taken(taken);
    kept_.hear(true);
  }
  void go_on() { engine_ = std::make_unique<OneSession>(device_, kept_.spec_for(device_)); }
  /// The session leaves its engine, which lives, and its client does not wait for that.
  void leave(bool to_host = false) {
    engine_->session.departure().want({.to_host = to_host});
    engine_->join();
    EXPECT_TRUE(engine_->session.departure().has_left());
    engine_.reset();
  }
  /// Copies between the device and this process, as no session would.
  void copy(const Place& to, const Place& from, std::uint64_t bytes) {
    // Takes the locks under which the session's thread has mapped the memory. ThreadSanitizer does
    // not see the order that the ring gives: each end has a mapping of its own.
    (void)engine_->session.status();
    OwnCopies copies(device_);
    ASSERT_TRUE(copies.begin(to, from, bytes));
    ASSERT_TRUE(copies.finish());
  }
  /// Has the client allocate memory, with contents.
  std::uint64_t allocate_filled() {
    const auto address = allocate(kWords * sizeof(std::uint32_t));
    EXPECT_TRUE(address);
    std::vector<std::uint32_t> words(kWords);
    std::iota(words.begin(), words.end(), 7u);
    copy(Place::on_device(*address), Place::on_host(words.data()), kWords * sizeof(std::uint32_t));
    return *address;
  }
  void expect_filled(std::uint64_t address) {
    std::vector<std::uint32_t> words(kWords), wanted(kWords);
    std::iota(wanted.begin(), wanted.end(), 7u);
    copy(Place::on_host(words.data()), Place::on_device(address), kWords * sizeof(std::uint32_t));
    EXPECT_EQ(words, wanted);
  }

  static constexpr std::size_t kWords = 5 << 20;  // 20 MiB: a segment of its own

  /// The engine dies while it has nothing to do.
  void die_idle() { die(last_taken()); }
  /// The engine dies while it carries out the command that comes next, which does not wait.
  template <typename Body>
  void die_in(CommandType type, const Body& body, std::span<const std::byte> tail = {}) {
    const std::uint64_t before = last_taken();
    post(type, body, tail);
    (void)last_taken();
    die(before);
    go_on();
  }

  ipc::ClientChannel& client() { return kept_.client(); }

  LosableDevice device_;
  KeptSession kept_{device_.info()};
  std::unique_ptr<OneSession> engine_ =
      std::make_unique<OneSession>(device_, kept_.spec_for(device_));
};

std::span<const std::byte> text(std::string_view text) {
  return std::as_bytes(std::span(text));
}

TEST_F(SessionMovedTest, HostMemoryThatWasBeingMadeIsMadeOnce) {
  ASSERT_TRUE(allocate(4096));
  die_in(CommandType::kHostAllocate, ipc::HostAllocate{7, 8192});
  EXPECT_EQ(async_error().message, "");
  EXPECT_EQ(engine_->session.status().pinned_used, 8192u);
  const auto memory = client().receive_memory(7);
  ASSERT_TRUE(memory) << memory.error().message;
  post(CommandType::kHostMapped, ipc::IdCommand{7});
  die_in(CommandType::kHostFree, ipc::IdCommand{7});
  EXPECT_EQ(async_error().message, "");
  EXPECT_EQ(engine_->session.status().pinned_used, 0u);
}

TEST_F(SessionMovedTest, AModuleThatWasBeingLoadedIsLoadedOnce) {
  die_in(CommandType::kModuleLoad, ipc::ModuleLoad{5, kMovedModule.size(), 0, ipc::kImagePtx, 0},
         text(kMovedModule));
  EXPECT_EQ(async_error().message, "");
  EXPECT_EQ(engine_->session.status().modules, 1u);
  die_in(CommandType::kFunctionGet, ipc::FunctionGet{5, 6}, text("nothing"));
  EXPECT_EQ(async_error().message, "");
  die_in(CommandType::kModuleUnload, ipc::IdCommand{5});
  EXPECT_EQ(async_error().message, "");
  EXPECT_EQ(engine_->session.status().modules, 0u);
}

class SessionVariablesTest : public SessionMovedTest {
 protected:
  void load() {
    const ipc::ModuleLoad load{5, kVariables.size(), 0, ipc::kImagePtx, 0};
    const auto loaded =
        client().call(CommandType::kModuleLoad, ipc::bytes_of(load), text(kVariables), {});
    ASSERT_TRUE(loaded) << loaded.error().message;
    ASSERT_TRUE(
        call<ipc::FunctionReply>(CommandType::kFunctionGet, ipc::FunctionGet{5, 6}, text("add")));
    counter_ = address_of("counter");
    weight_ = address_of("weight");
    const auto result = allocate(sizeof(std::uint32_t));
    ASSERT_TRUE(result);
    result_ = *result;
  }
  std::uint64_t address_of(std::string_view name) {
    const auto found =
        call<ipc::GlobalReply>(CommandType::kGlobalGet, ipc::GlobalGet{5}, text(name));
    EXPECT_TRUE(found) << name;
    return found ? found->address : 0;
  }
  void write(std::uint64_t address, std::uint32_t value) {
    post(CommandType::kCopyInline, ipc::CopyInline{address, 0},
         std::as_bytes(std::span(&value, 1)));
  }
  std::uint32_t read(std::uint64_t address) {
    finish();
    std::uint32_t value = 0;
    copy(Place::on_host(&value), Place::on_device(address), sizeof(value));
    return value;
  }
  void launch() {
    ipc::Launch body{};
    body.function = 6;
    body.parameter_bytes = sizeof(result_);
    for (const int axis : {0, 1, 2}) body.grid[axis] = body.block[axis] = 1;
    post(CommandType::kLaunch, body, std::as_bytes(std::span(&result_, 1)));
  }
  /// What the kernel makes of both variables.
  std::uint32_t sum() {
    launch();
    return read(result_);
  }
  /// The engine dies before it knows that anything is done.
  void die_behind(const std::function<void()>& begin) {
    device_.hide_progress(true);
    begin();
    const std::uint64_t taken = last_taken();
    engine_->session.departure().freeze();
    device_.hide_progress(false);
    die(taken);
    go_on();
  }

  /// A launch under way is not done again behind a write to what it has read. Returns the error.
  Error error_behind_a_write(const std::uint64_t& variable) {
    load();
    die_behind([&] {
      launch();
      write(variable, 9);
    });
    return async_error();
  }

  static constexpr const char* kWhyNot = "add reads what a copy, which came behind it, writes";
  std::uint64_t counter_ = 0, weight_ = 0, result_ = 0;
};

TEST_F(SessionVariablesTest, OneThatIsToLeaveWhenIdleIsServedWhileItsKernelRuns) {
  load();
  device_.hide_progress(true);
  launch();
  (void)last_taken();
  engine_->session.departure().want({.when_idle = true});
  ASSERT_TRUE(allocate(4096)) << "the kernel may wait for what comes next";
  EXPECT_FALSE(engine_->session.departure().has_left());
  device_.hide_progress(false);
  while (!engine_->session.departure().has_left()) {
    write(result_, 9);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  engine_->join();
  engine_.reset();
  go_on();
  EXPECT_EQ(read(result_), 9u);
  EXPECT_EQ(async_error().message, "");
}

TEST_F(SessionVariablesTest, GoOnInTheNextEngineAtTheirAddresses) {
  load();
  EXPECT_EQ(sum(), 5u) << "what they begin with";
  write(counter_, 100);
  write(weight_, 7);
  EXPECT_EQ(sum(), 107u);
  die_idle();
  go_on();
  EXPECT_EQ(sum(), 107u);
  EXPECT_EQ(address_of("counter"), counter_);
  EXPECT_EQ(address_of("weight"), weight_);
  EXPECT_EQ(read(weight_), 7u);
  write(weight_, 8);
  EXPECT_EQ(sum(), 108u);
  leave(true);
  go_on();
  EXPECT_EQ(sum(), 108u);
  EXPECT_EQ(async_error().message, "");
}

TEST_F(SessionVariablesTest, OfAModuleThatWasBeingLoadedAreMadeOnce) {
  post(CommandType::kMemoryFree, ipc::MemoryFree{*allocate(4)});
  finish();
  const std::uint64_t used = engine_->session.status().memory_used;
  die_in(CommandType::kModuleLoad, ipc::ModuleLoad{5, kVariables.size(), 0, ipc::kImagePtx, 0},
         text(kVariables));
  EXPECT_EQ(async_error().message, "");
  ASSERT_TRUE(
      call<ipc::FunctionReply>(CommandType::kFunctionGet, ipc::FunctionGet{5, 6}, text("add")));
  result_ = *allocate(sizeof(std::uint32_t));
  EXPECT_EQ(sum(), 5u);
  write(address_of("counter"), 1);
  EXPECT_EQ(sum(), 6u);
  post(CommandType::kModuleUnload, ipc::IdCommand{5});
  post(CommandType::kMemoryFree, ipc::MemoryFree{result_});
  finish();
  EXPECT_EQ(async_error().message, "");
  EXPECT_EQ(engine_->session.status().memory_used, used);
}

TEST_F(SessionVariablesTest, AreReadAgainOnlyIfNothingWasWrittenSince) {
  load();
  (void)sum();
  die_behind([&] { launch(); });
  EXPECT_EQ(async_error().message, "");
  EXPECT_EQ(read(result_), 5u);
  die_behind([&] {
    write(counter_, 1);
    launch();
  });
  EXPECT_EQ(async_error().message, "");
  EXPECT_EQ(read(result_), 6u);
}

TEST_F(SessionVariablesTest, AreNotReadAgainBehindAWrite) {
  EXPECT_NE(error_behind_a_write(counter_).message.find(kWhyNot), std::string::npos);
}

TEST_F(SessionVariablesTest, ASuspectThatCannotGoOnHearsOfTheFault) {
  kept_.suspect_of(ErrorCode::kMisalignedAddress);
  const Error error = error_behind_a_write(counter_);
  EXPECT_EQ(error.code, ErrorCode::kMisalignedAddress);
  EXPECT_NE(error.message.find("cannot be done again"), std::string::npos);
}

TEST_F(SessionVariablesTest, OfTheBankAreNotReadAgainBehindAWrite) {
  EXPECT_NE(error_behind_a_write(weight_).message.find(kWhyNot), std::string::npos);
}

TEST_F(SessionVariablesTest, AreNotTheProgramsToFree) {
  load();
  for (const std::uint64_t address : {counter_, weight_}) {
    post(CommandType::kMemoryFree, ipc::MemoryFree{address});
    EXPECT_EQ(async_error().code, ErrorCode::kInvalidValue);
  }
  EXPECT_EQ(sum(), 5u);
  // It can guess where its variables' memory begins, which harms nobody else.
  for (std::uint64_t guess = counter_ / 512 * 512; guess + 4096 > counter_; guess -= 512)
    post(CommandType::kMemoryFree, ipc::MemoryFree{guess});
  (void)async_error();
  post(CommandType::kModuleUnload, ipc::IdCommand{5});
  EXPECT_EQ(async_error().message, "");
}

TEST_F(SessionMovedTest, AModuleOfWhichChunksAreLostIsAskedForAgain) {
  const std::uint64_t half = kMovedModule.size() / 2;
  const ipc::ModuleLoad first{5, kMovedModule.size(), 0, ipc::kImagePtx, 0};
  const ipc::ModuleLoad last{5, kMovedModule.size(), half, ipc::kImagePtx, 0};
  const auto send_all = [&] {
    post(CommandType::kModuleLoad, first, text(kMovedModule.substr(0, half)));
    return call<ipc::OfferReply>(CommandType::kModuleLoad, last, text(kMovedModule.substr(half)));
  };
  die_in(CommandType::kModuleLoad, first, text(kMovedModule.substr(0, half)));
  die_in(CommandType::kModuleLoad, last, text(kMovedModule.substr(half)));
  EXPECT_EQ(async_error().message, "");
  EXPECT_EQ(engine_->session.status().modules, 0u) << "the first chunk is gone";
  die_idle();
  go_on();
  const auto asked = send_all();
  ASSERT_TRUE(asked) << asked.error().message;
  EXPECT_EQ(asked->known, 0u) << "nobody knows whether the client was asked";
  post(CommandType::kModuleLoad, first, text(kMovedModule.substr(0, half)));
  const auto loaded = client().call(CommandType::kModuleLoad, ipc::bytes_of(last),
                                    text(kMovedModule.substr(half)), {});
  EXPECT_TRUE(loaded) << loaded.error().message;
  EXPECT_EQ(engine_->session.status().modules, 1u);
  die_idle();
  go_on();
  EXPECT_EQ(async_error().message, "");
  EXPECT_EQ(engine_->session.status().modules, 1u);
}

TEST_F(SessionMovedTest, TheImageOfALostSourceIsAskedForWithIt) {
  const ipc::ModuleLoad source{5, kMovedModule.size(), 0, ipc::kImageSource, 0};
  const ipc::ModuleLoad image{5, kMovedModule.size(), 0, ipc::kImagePtx, 0};
  post(CommandType::kModuleLoad, source, text(kMovedModule));
  die_idle();
  go_on();
  const auto asked = call<ipc::OfferReply>(CommandType::kModuleLoad, image, text(kMovedModule));
  ASSERT_TRUE(asked) << asked.error().message;
  EXPECT_EQ(asked->known, 0u);
}

TEST_F(SessionMovedTest, AModuleThatWasRefusedIsNotAskedForAgain) {
  const std::string_view bad = ".version what";
  post(CommandType::kModuleLoad, ipc::ModuleLoad{5, bad.size(), 0, ipc::kImagePtx, 0}, text(bad));
  EXPECT_NE(async_error().message, "");
  die_idle();
  go_on();
  EXPECT_FALSE(kept_.open_book()->has(BookKind::kUpload, 5));
  EXPECT_EQ(async_error().message, "");
}

TEST_F(SessionMovedTest, NothingIsLeftOfAnAllocationThatWasUnderWay) {
  const auto first = allocate(4096);
  ASSERT_TRUE(first);
  const std::uint64_t used = engine_->session.status().memory_used;
  const std::size_t held = kept_.held();
  die_in(CommandType::kMemoryAllocate, ipc::MemoryAllocate{16 << 20});
  EXPECT_EQ(async_error().message, "");
  EXPECT_EQ(engine_->session.status().memory_used, used + (16 << 20));
  EXPECT_EQ(kept_.held(), held + 1);
  die_in(CommandType::kMemoryFree, ipc::MemoryFree{*first});
  EXPECT_EQ(async_error().message, "");
}

TEST_F(SessionMovedTest, WhatIsAnsweredIsNotDoneAgainByTheEngineAfterTheNext) {
  ASSERT_TRUE(allocate(16 << 20));
  const std::uint64_t used = engine_->session.status().memory_used;
  (void)last_taken();
  die(0);
  go_on();
  while (engine_->session.status().phase == SessionPhase::kStarting) std::this_thread::yield();
  const std::uint64_t taken = kept_.open_book()->taken();
  ASSERT_TRUE(allocate(16 << 20)) << "with the reply slot of the first one";
  (void)last_taken();
  die(taken);
  go_on();
  EXPECT_EQ(async_error().message, "");
  EXPECT_EQ(engine_->session.status().memory_used, 2 * used);
}

TEST_F(SessionMovedTest, StreamsAndEventsThatWereBeingMadeAreMadeOnce) {
  die_in(CommandType::kStreamCreate, ipc::StreamCreate{5, 0, 0, ipc::kNoProgress, 0});
  die_in(CommandType::kEventCreate, ipc::EventCreate{6, 0, 0});
  die_in(CommandType::kEventRecord, ipc::EventStream{6, 5});
  die_in(CommandType::kEventDestroy, ipc::IdCommand{6});
  die_in(CommandType::kStreamDestroy, ipc::IdCommand{5});
  EXPECT_EQ(async_error().message, "");
}

TEST_F(SessionMovedTest, AnEngineThatLosesTheDeviceAsItTakesASessionLeavesTheBookAsItIs) {
  post(CommandType::kHostAllocate, ipc::HostAllocate{7, 8192});
  post(CommandType::kHostAllocate, ipc::HostAllocate{8, 4096});
  die_idle();
  device_.lose_at_block(2);
  kept_.hear(false);
  go_on();
  engine_.reset();
  device_.lose_at_block(0);
  kept_.hear(true);
  go_on();
  EXPECT_EQ(async_error().message, "");
  EXPECT_EQ(engine_->session.status().pinned_used, 12288u);
}

TEST_F(SessionMovedTest, MemoryThatTheSupervisorCanDoWithoutIsAskedFor) {
  const device::AddressRange spare{*device_.reserve(224 << 20), 224 << 20};
  ASSERT_TRUE(device_.map(spare));
  EXPECT_EQ(allocate(48 << 20).error().code, ErrorCode::kOutOfMemory);
  std::atomic<int> asked = 0;
  kept_.on_full([&] {
    if (++asked > 1) return false;
    return device_.unmap(spare).has_value();
  });
  EXPECT_TRUE(allocate(48 << 20));
  EXPECT_FALSE(allocate(48 << 20)) << "beyond its limit";
  EXPECT_EQ(asked, 2);
  device_.unreserve(spare);
}

TEST_F(SessionMovedTest, ASessionLeavesAnEngineThatLives) {
  const std::uint64_t address = allocate_filled();
  const auto small = allocate(4096);
  ASSERT_TRUE(small);
  post(CommandType::kModuleLoad, ipc::ModuleLoad{5, kMovedModule.size(), 0, ipc::kImagePtx, 0},
       text(kMovedModule));
  post(CommandType::kStreamCreate, ipc::StreamCreate{5, 0, 0, ipc::kNoProgress, 0});
  EXPECT_EQ(async_error().message, "");
  const std::uint64_t used = engine_->session.status().memory_used;
  const std::size_t held = kept_.held();
  for (int move = 0; move < 3; ++move) {
    leave();
    go_on();
    EXPECT_EQ(async_error().message, "");
    EXPECT_EQ(engine_->session.status().memory_used, used);
    EXPECT_EQ(engine_->session.status().modules, 1u);
    EXPECT_EQ(kept_.held(), held) << "nothing of what it has is given back";
    expect_filled(address);
  }
  post(CommandType::kMemoryFree, ipc::MemoryFree{*small});
  post(CommandType::kStreamDestroy, ipc::IdCommand{5});
  EXPECT_EQ(async_error().message, "");
}

TEST_F(SessionMovedTest, CommandsThatComeWhileItLeavesAreTheNextEngines) {
  ASSERT_TRUE(allocate(4096));
  leave();
  post(CommandType::kHostAllocate, ipc::HostAllocate{7, 8192});
  go_on();
  EXPECT_EQ(async_error().message, "");
  EXPECT_EQ(engine_->session.status().pinned_used, 8192u);
}

TEST_F(SessionMovedTest, ASuspendedSessionHasNoDeviceMemory) {
  const std::uint64_t before = *device_.free_memory();
  const std::uint64_t address = allocate_filled();
  const auto freed = allocate(8192), kept = allocate(4096);
  ASSERT_TRUE(freed && kept);
  post(CommandType::kMemoryFree, ipc::MemoryFree{*freed});
  EXPECT_EQ(async_error().message, "");
  const std::uint64_t used = engine_->session.status().memory_used;
  const std::size_t held = kept_.held();
  leave(true);
  EXPECT_EQ(*device_.free_memory(), before);
  go_on();
  EXPECT_EQ(async_error().message, "");
  EXPECT_EQ(engine_->session.status().memory_used, used);
  EXPECT_EQ(kept_.held(), held) << "the memory of the new engine, and no copies";
  expect_filled(address);
  die_idle();
  go_on();
  EXPECT_EQ(async_error().message, "") << "what came back goes on like any other memory";
  expect_filled(address);
}

TEST_F(SessionMovedTest, AnEngineThatDiesWithASuspendedSessionLeavesItsMemory) {
  const std::uint64_t address = allocate_filled();
  post(CommandType::kHostAllocate, ipc::HostAllocate{7, 8192});
  EXPECT_EQ(async_error().message, "");
  leave(true);
  device_.lose_at_block(1);  // behind the memory that is copied back
  go_on();
  engine_.reset();
  device_.lose_at_block(0);
  go_on();
  EXPECT_EQ(async_error().message, "");
  expect_filled(address);
}

TEST_F(SessionMovedTest, ASessionThatCannotLeaveGoesOnWhereItIs) {
  const ArraySpec spec{.format = {ChannelKind::kFloat, 32, 1, 0}, .extent = {16, 0, 0}};
  ASSERT_TRUE(
      client().call(CommandType::kArrayCreate, ipc::bytes_of(ipc::ArrayCreate{1, spec}), {}, {}));
  engine_->session.departure().want({});
  EXPECT_NE(engine_->why_it_stays().find("arrays"), std::string::npos);
  ASSERT_TRUE(allocate(4096));
  EXPECT_FALSE(engine_->session.departure().has_left());
}

/// No file of this process may grow beyond so many bytes meanwhile.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    EXPECT_EQ(::getrlimit(RLIMIT_FSIZE, &before_), 0);
    handler_ = std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{bytes, before_.rlim_max};
    EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  }
  ~FileSizeLimit() {
    EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &before_), 0);
    (void)std::signal(SIGXFSZ, handler_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  rlimit before_{};
  sighandler_t handler_ = SIG_DFL;
};

TEST_F(SessionMovedTest, ASessionForWhoseMemoryTheHostHasNoRoomIsNotSuspended) {
  const std::uint64_t address = allocate_filled();
  {
    const FileSizeLimit limit(1 << 20);
    engine_->session.departure().want({.to_host = true});
    EXPECT_NE(engine_->why_it_stays(), "");
  }
  EXPECT_FALSE(engine_->session.departure().has_left());
  expect_filled(address);
  EXPECT_EQ(async_error().message, "");
}

TEST_F(SessionMovedTest, WithASwapSegmentsLeaveForAnArrayThatFindsTheDeviceFull) {
  die_idle();
  kept_.swap_beyond(std::uint64_t{128} << 20);
  go_on();
  const std::uint64_t address = allocate_filled();
  const std::uint64_t others = *device_.free_memory() - (8 << 20);
  const device::AddressRange theirs{*device_.reserve(others), others};
  ASSERT_TRUE(device_.map(theirs));
  EXPECT_EQ(engine_->session.status().places.on_host, 0u);
  // 16 MiB, where 8 are free.
  const ArraySpec spec{.format = {ChannelKind::kFloat, 32, 1, 0}, .extent = {1024, 4096, 0}};
  EXPECT_TRUE(
      client().call(CommandType::kArrayCreate, ipc::bytes_of(ipc::ArrayCreate{1, spec}), {}, {}));
  EXPECT_EQ(async_error().message, "");
  EXPECT_GT(engine_->session.status().places.on_host, 0u);
  ASSERT_TRUE(device_.unmap(theirs));
  device_.unreserve(theirs);
  // It comes back for a command, here one that writes the first word.
  post(CommandType::kFill, ipc::Fill{address, 4, 4, 1, ipc::kDefaultStream, 0, 4});
  finish();
  EXPECT_EQ(async_error().message, "");
  const std::uint32_t first = 7;
  copy(Place::on_device(address), Place::on_host(&first), sizeof(first));
  expect_filled(address);
}

TEST_F(SessionMovedTest, ASessionLeavesOnceItsHostFunctionHasEnded) {
  ASSERT_TRUE(allocate(4096));
  post(CommandType::kHostGate, ipc::HostGate{3, ipc::kDefaultStream});
  (void)last_taken();
  engine_->session.departure().want({});
  ASSERT_TRUE(allocate(4096)) << "it serves until then";
  post(CommandType::kHostDone, ipc::IdCommand{3});
  engine_->join();
  EXPECT_TRUE(engine_->session.departure().has_left());
  engine_.reset();
  go_on();
  EXPECT_EQ(async_error().message, "");
}

/// Its events are on one stream. Numbers are ids.
class EventsMovedTest : public SessionMovedTest {
 protected:
  static constexpr std::uint64_t kStream = 3;

  EventsMovedTest() {
    post(CommandType::kStreamCreate, ipc::StreamCreate{kStream, 0, 0, ipc::kNoProgress, 0});
  }
  void make(std::initializer_list<std::uint64_t> events, std::uint32_t flags = 0) {
    for (const std::uint64_t event : events)
      post(CommandType::kEventCreate, ipc::EventCreate{event, flags, 0});
  }
  void record(std::uint64_t event) {
    post(CommandType::kEventRecord, ipc::EventStream{event, kStream});
  }
  bool is_reached(std::uint64_t event) {
    const auto reply =
        call<ipc::QueryReply>(CommandType::kQuery, ipc::Target{ipc::TargetKind::kEvent, 0, event});
    EXPECT_TRUE(reply) << reply.error().message;
    return reply && reply->finished != 0;
  }
  void reach(std::uint64_t event) {
    while (!is_reached(event) && client().check()) std::this_thread::yield();
  }
  Result<float> elapsed(std::uint64_t start, std::uint64_t stop) {
    const auto reply =
        call<ipc::ElapsedReply>(CommandType::kEventElapsed, ipc::EventPair{start, stop});
    if (!reply) return std::unexpected(reply.error());
    return reply->milliseconds;
  }
  /// The engine dies before it has seen any progress of the commands that `begin` posts.
  void die_behind(const std::function<void()>& begin) {
    device_.hide_progress(true);
    begin();
    const std::uint64_t taken = last_taken();
    engine_->session.departure().freeze();
    device_.hide_progress(false);
    die(taken);
    go_on();
  }
};

TEST_F(EventsMovedTest, TheTimeThatAProgramHasHeardStays) {
  make({5, 6});
  record(5);
  record(6);
  reach(6);
  device_.set_elapsed(1234.5f);
  ASSERT_EQ(elapsed(5, 6), 1234.5f);
  device_.set_elapsed(0);
  for (int death = 0; death < 2; ++death) {
    die_idle();
    go_on();
    EXPECT_EQ(elapsed(5, 6), 1234.5f);
    EXPECT_EQ(elapsed(6, 5), -1234.5f);
  }
  leave();
  go_on();
  EXPECT_EQ(elapsed(5, 6), 1234.5f);
  EXPECT_EQ(async_error().message, "");
}

TEST_F(EventsMovedTest, EventsOfDifferentEnginesHaveATimeBetweenThem) {
  make({5, 6, 7});
  record(5);
  record(6);
  reach(6);
  die_idle();
  go_on();
  const auto nobody_asked = elapsed(5, 6);
  ASSERT_TRUE(nobody_asked) << nobody_asked.error().message;
  EXPECT_GE(*nobody_asked, 0);
  record(7);
  reach(7);
  const auto across = elapsed(5, 7);
  ASSERT_TRUE(across) << across.error().message;
  EXPECT_GE(*across, *nobody_asked);
  EXPECT_EQ(elapsed(7, 5), -*across);
  die_idle();
  go_on();
  EXPECT_EQ(elapsed(5, 7), *across);
}

TEST_F(EventsMovedTest, AnEngineThatLivesLeavesTheDevicesTimesBehind) {
  make({5, 6, 7});
  for (const bool to_host : {false, true}) {
    for (const std::uint64_t event : {5, 6, 7}) {
      record(event);
      reach(event);
    }
    device_.set_elapsed(3000);
    leave(to_host);
    device_.set_elapsed(0);
    go_on();
    EXPECT_EQ(elapsed(5, 6), 3000);
    EXPECT_EQ(elapsed(6, 7), 3000);
    EXPECT_EQ(elapsed(5, 7), 6000);
  }
}

TEST_F(EventsMovedTest, AnEventThatWasNotReachedIsReachedInTheNextEngine) {
  make({5, 6, 7});
  record(5);
  reach(5);
  die_behind([this] { record(6); });
  reach(6);
  EXPECT_TRUE(elapsed(5, 6));
  post(CommandType::kHostGate, ipc::HostGate{4, kStream});
  record(7);
  die_idle();
  go_on();
  EXPECT_FALSE(is_reached(7)) << "it waits for the host function";
  post(CommandType::kHostDone, ipc::IdCommand{4});
  reach(7);
  const auto across = elapsed(5, 7);
  ASSERT_TRUE(across) << across.error().message;
  EXPECT_GE(*across, *elapsed(5, 6));
  EXPECT_EQ(async_error().message, "");
}

TEST_F(EventsMovedTest, AnEventThatIsRecordedAgainHasItsNewTime) {
  make({5, 6});
  record(5);
  record(6);
  reach(6);
  device_.set_elapsed(3000);
  ASSERT_EQ(elapsed(5, 6), 3000);
  device_.set_elapsed(0);
  record(5);
  reach(5);
  die_idle();
  go_on();
  const auto turned = elapsed(6, 5);
  ASSERT_TRUE(turned) << turned.error().message;
  EXPECT_GE(*turned, 0);
}

TEST_F(EventsMovedTest, EventsWithoutATimeHaveNoneInTheNextEngine) {
  make({5, 6});
  make({7}, ipc::kEventNoTiming);
  record(5);
  record(7);
  reach(7);
  die_idle();
  go_on();
  EXPECT_EQ(elapsed(5, 6).error().code, ErrorCode::kInvalidHandle) << "never recorded";
  EXPECT_EQ(elapsed(5, 7).error().code, ErrorCode::kInvalidHandle) << "not timed";
  EXPECT_EQ(elapsed(5, 8).error().code, ErrorCode::kInvalidHandle) << "no event";
  EXPECT_TRUE(elapsed(5, 5));
}

TEST_F(EventsMovedTest, TheRowOfADestroyedEventIsAnothersWithoutItsTime) {
  make({5, 6});
  record(5);
  record(6);
  reach(6);
  die_idle();
  go_on();
  post(CommandType::kEventDestroy, ipc::IdCommand{6});
  make({7});
  EXPECT_EQ(elapsed(5, 7).error().code, ErrorCode::kInvalidHandle) << "never recorded";
  die_idle();
  go_on();
  EXPECT_EQ(elapsed(5, 7).error().code, ErrorCode::kInvalidHandle);
  EXPECT_TRUE(elapsed(5, 5));
}

TEST_F(EventsMovedTest, AnEventMayBeDestroyedBeforeItIsReached) {
  make({5, 6});
  die_behind([this] {
    record(5);
    post(CommandType::kStreamWaitEvent, ipc::EventStream{5, ipc::kDefaultStream});
    post(CommandType::kEventDestroy, ipc::IdCommand{5});
    record(6);
  });
  reach(6);
  EXPECT_EQ(async_error().message, "");
}

/// The program destroys kStream while a fill is under way there, which the engine that dies has not
/// done.
class DestroyedStreamTest : public EventsMovedTest {
 protected:
  static constexpr std::uint64_t kUnordered = 4;  // id of a stream without the default one's order
  static constexpr std::uint64_t kTicket = 1, kFilled = 5, kCopied = 6;
  static constexpr std::uint32_t kValue = 0x01020304;
  static constexpr std::uint64_t kBytes = 8 << 20;

  DestroyedStreamTest() {
    post(CommandType::kStreamCreate,
         ipc::StreamCreate{kUnordered, ipc::kStreamNonBlocking, 0, ipc::kNoProgress, 0});
    make({kFilled, kCopied});
    for (std::uint64_t* const place : {&filled_, &copied_, &copied_unordered_})
      *place = *allocate(kBytes);
  }
  void fill() {
    post(CommandType::kFill,
         ipc::Fill{filled_, kBytes, kBytes, 1, kStream, kValue, sizeof(kValue)});
  }
  void copy_to(std::uint64_t to, std::uint64_t stream) {
    post(CommandType::kCopy,
         ipc::Copy{
             Place::on_device(to, kBytes), Place::on_device(filled_, kBytes), {kBytes}, stream});
  }
  /// Another stream waits for kStream by an event, and the default one by its order.
  void fill_and_destroy() {
    fill();
    record(kFilled);
    post(CommandType::kStreamDestroy, ipc::IdCommand{kStream});
    post(CommandType::kStreamWaitEvent, ipc::EventStream{kFilled, kUnordered});
    copy_to(copied_unordered_, kUnordered);
    post(CommandType::kEventRecord, ipc::EventStream{kCopied, kUnordered});
    copy_to(copied_, ipc::kDefaultStream);
  }
  /// The engine does no fills, and sees no progress.
  void lose_fills(bool loses) {
    device_.lose_fills(loses);
    device_.hide_progress(loses);
  }
  /// `next_too`: whether the next engine is no better.
  void die_of_loss(bool next_too) {
    const std::uint64_t taken = last_taken();
    engine_->session.departure().freeze();
    lose_fills(false);
    die(taken);
    lose_fills(next_too);
    go_on();
  }
  void die_with_loss(const std::function<void()>& begin) {
    lose_fills(true);
    begin();
    die_of_loss(false);
  }
  bool is_stream_in_book() {
    return kept_.open_book()->has(book_kind(CommandType::kStreamCreate), kStream);
  }
  void expect_value(std::uint64_t address) {
    std::vector<std::uint32_t> words(kBytes / sizeof(kValue));
    copy(Place::on_host(words.data()), Place::on_device(address), kBytes);
    EXPECT_EQ(words, std::vector<std::uint32_t>(words.size(), kValue));
  }
  /// Waits until all work is done. It was done in its order, and nothing is left of the stream.
  void expect_all_done() {
    EXPECT_EQ(async_error().message, "");
    finish();
    for (const std::uint64_t address : {filled_, copied_, copied_unordered_}) expect_value(address);
    EXPECT_TRUE(is_reached(kFilled));
    EXPECT_TRUE(is_reached(kCopied));
    if (HasFailure()) return;
    // The book hears of the stream's end on another thread.
    while ((is_stream_in_book() || !kept_.open_book()->open().empty()) && client().check())
      std::this_thread::yield();
    expect_gone();
    die_idle();
    go_on();
    expect_gone();
  }
  void expect_gone() {
    EXPECT_EQ(async_error().message, "");
    EXPECT_EQ(engine_->session.status().streams, 1u) << "the other one";
    fill();
    EXPECT_EQ(async_error().code, ErrorCode::kInvalidHandle);
  }

  std::uint64_t filled_ = 0, copied_ = 0, copied_unordered_ = 0;
};

TEST_F(DestroyedStreamTest, AStreamMayBeDestroyedBeforeItsWorkIsDone) {
  die_with_loss([this] { fill_and_destroy(); });
  expect_all_done();
}

TEST_F(DestroyedStreamTest, ItsWorkIsDoneAlsoIfTwoEnginesDie) {
  lose_fills(true);
  fill_and_destroy();
  die_of_loss(true);
  // Its row in the book is not that of the stream which is destroyed.
  post(CommandType::kStreamCreate, ipc::StreamCreate{7, 0, 0, ipc::kNoProgress, 0});
  EXPECT_EQ(async_error().message, "");
  die_of_loss(false);
  post(CommandType::kStreamDestroy, ipc::IdCommand{7});
  expect_all_done();
}

TEST_F(DestroyedStreamTest, ADestructionThatHasWaitedComesAgain) {
  die_with_loss([this] {
    post(CommandType::kHostGate, ipc::HostGate{kTicket, kStream});
    fill_and_destroy();
    post(CommandType::kHostDone, ipc::IdCommand{kTicket});
  });
  expect_all_done();
}

TEST_F(DestroyedStreamTest, ADestructionThatWaitsWaitsAgain) {
  die_with_loss([this] {
    post(CommandType::kHostGate, ipc::HostGate{kTicket, kStream});
    fill_and_destroy();
  });
  EXPECT_EQ(async_error().message, "");
  EXPECT_TRUE(is_stream_in_book());
  EXPECT_EQ(engine_->session.status().streams, 2u);
  post(CommandType::kHostDone, ipc::IdCommand{kTicket});
  expect_all_done();
}

TEST_F(DestroyedStreamTest, AnEngineMayDieBeforeItNotesThatTheDestructionIsDone) {
  fill_and_destroy();
  const std::uint64_t last = last_taken();
  expect_all_done();
  const ipc::IdCommand body{kStream};
  const auto bytes = ipc::bytes_of(body);
  const ipc::Command destruction{.header = {.bytes = 0,
                                            .type = CommandType::kStreamDestroy,
                                            .reply_slot = ipc::kNoReply,
                                            .reply_sequence = 0,
                                            .body_bytes = sizeof(body)},
                                 .body = {bytes.begin(), bytes.end()}};
  die_idle();
  kept_.open_book()->write(last, Book::kNoStream, destruction, false);
  go_on();
  expect_gone();
  EXPECT_TRUE(kept_.open_book()->open().empty());
}

/// Its memory is partly on the host.
class SwappedSessionTest : public SessionMovedTest {
 protected:
  static constexpr std::uint64_t kBytes = kWords * sizeof(std::uint32_t);

  SwappedSessionTest() {
    die_idle();
    kept_.swap_beyond(28 << 20);
    go_on();
    filled_ = allocate_filled();
    blank_ = *allocate(kBytes);
  }
  /// A command writes zeros into a part of it.
  void use(std::uint64_t address, std::uint64_t bytes = 4) {
    post(CommandType::kFill,
         ipc::Fill{address, bytes, bytes, 1, ipc::kDefaultStream, 0, sizeof(std::uint32_t)});
    finish();
    EXPECT_EQ(async_error().message, "");
  }
  SessionStatus status() { return engine_->session.status(); }
  /// Looks at both, one after the other.
  void expect_contents() {
    use(filled_ + kBytes - 4);  // restored by the next line
    const std::uint32_t last = 7 + kWords - 1;
    copy(Place::on_device(filled_ + kBytes - 4), Place::on_host(&last), sizeof(last));
    expect_filled(filled_);
    use(blank_);
    std::vector<std::uint32_t> words(kWords, 1);
    copy(Place::on_host(words.data()), Place::on_device(blank_), kBytes);
    EXPECT_EQ(words, std::vector<std::uint32_t>(kWords));
  }

  std::uint64_t filled_ = 0, blank_ = 0;
};

TEST_F(SwappedSessionTest, MemoryThatIsPartlyOnTheHostIsThereInTheNextEngine) {
  EXPECT_EQ(status().places.on_host, 0u) << "nothing has used the second one yet";
  use(blank_);
  const std::uint64_t on_host = status().places.on_host;
  EXPECT_GT(on_host, 0u);
  for (int engine = 0; engine < 3; ++engine) {
    const std::uint64_t before = status().places.on_host;
    die_idle();
    go_on();
    EXPECT_EQ(async_error().message, "");
    EXPECT_EQ(status().places.on_host, before);
    EXPECT_EQ(kept_.residency().counts().moved_in, 0u) << "it stays where it is until it is used";
    expect_contents();
  }
}

TEST_F(SwappedSessionTest, ItLeavesAnEngineThatLives) {
  use(blank_);
  for (int engine = 0; engine < 2; ++engine) {
    leave();
    go_on();
    EXPECT_EQ(async_error().message, "");
    expect_contents();
  }
}

TEST_F(SwappedSessionTest, MemoryThatWasNeverWrittenIsZerosInTheNextEngine) {
  die_idle();
  go_on();
  EXPECT_EQ(async_error().message, "");
  EXPECT_EQ(status().places.on_host, 0u);
  expect_contents();
}

TEST_F(SwappedSessionTest, MemoryThatHasLeftUnwrittenIsNotHeld) {
  const std::uint64_t small = *allocate(4096);
  const auto read = [&](std::uint64_t from) {
    post(CommandType::kCopy,
         ipc::Copy{Place::on_device(small, 4), Place::on_device(from, 4), {4}, 0});
    EXPECT_EQ(async_error().message, "");
  };
  for (int turn = 0; turn < 2; ++turn) {
    read(blank_);
    EXPECT_GT(status().places.on_host, 0u);
    const std::size_t held = kept_.held();
    read(filled_);
    EXPECT_EQ(status().places.on_host, 0u) << "zeros take no host memory";
    EXPECT_LT(kept_.held(), held);
  }
  die_idle();
  go_on();
  EXPECT_EQ(async_error().message, "");
  expect_contents();
}

TEST_F(SwappedSessionTest, MemoryThatWasFreedIsGoneInTheNextEngine) {
  use(blank_);
  const std::size_t held = kept_.held();
  post(CommandType::kMemoryFree, ipc::MemoryFree{filled_});
  // The memory goes once the work before has ended.
  while (kept_.held() >= held) ASSERT_EQ(async_error().message, "");
  die_idle();
  go_on();
  EXPECT_EQ(async_error().message, "");
  EXPECT_EQ(status().memory_used, kBytes);
  const auto next = allocate(kBytes);
  ASSERT_TRUE(next);
  filled_ = std::exchange(blank_, *next);
  use(filled_);
  use(blank_);
  std::vector<std::uint32_t> words(kWords, 1);
  copy(Place::on_host(words.data()), Place::on_device(blank_), kBytes);
  EXPECT_EQ(words, std::vector<std::uint32_t>(kWords)) << "nothing of what was there";
}

TEST_F(SwappedSessionTest, ASuspendedSessionComesBackWithAllOfIt) {
  use(blank_);
  const std::uint64_t before = *device_.free_memory();
  leave(true);
  EXPECT_GT(*device_.free_memory(), before);
  go_on();
  EXPECT_EQ(async_error().message, "");
  expect_contents();
}

TEST_F(SessionMovedTest, WhatWasMadeByACommandThatComesAgainIsDropped) {
  ASSERT_TRUE(allocate(4096));
  die_idle();
  const ipc::Command waits{.header = {.bytes = 0,
                                      .type = CommandType::kMemoryAllocate,
                                      .reply_slot = ipc::kNoReply,
                                      .reply_sequence = 0,
                                      .body_bytes = 0},
                           .body = {}};
  const auto book = kept_.open_book();
  const auto put_at = [&](std::uint64_t position, std::uint64_t key) {
    book->begin(position);
    book->put_value(BookKind::kBlock, key, BookBlock{512, 0});
  };
  book->write(1000, Book::kNoStream, waits, false);
  book->write(1001, Book::kNoStream, waits, false);
  book->close(1000);
  put_at(1000, 1);
  put_at(1001, 2);
  put_at(1002, 3);
  put_at(1003, 4);
  put_at(1003, 3);  // replaced by a command that comes again
  SessionBook next(device_, kept_.open_book(), {}, {});
  next.drop_unfinished(1002);
  EXPECT_TRUE(next.book().has(BookKind::kBlock, 1));
  EXPECT_FALSE(next.book().has(BookKind::kBlock, 2)) << "it is open in the journal";
  EXPECT_TRUE(next.book().has(BookKind::kBlock, 3));
  EXPECT_FALSE(next.book().has(BookKind::kBlock, 4)) << "it is in the ring";
  EXPECT_FALSE(kept_.open_book()->has(BookKind::kBlock, 4)) << "also for the engine after it";
}

}  // namespace
}  // namespace slate::daemon
