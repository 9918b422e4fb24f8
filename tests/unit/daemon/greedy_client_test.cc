// A client that asks for more than its share of what all sessions have: it is refused, and the
// others notice nothing.
#include <elf.h>
#include <gtest/gtest.h>

#include <new>
#include <stdexcept>

#include "daemon/engine/local_memory.h"
#include "tests/unit/daemon/executor_fixture.h"
#include "tests/unit/daemon/session_fixture.h"

namespace slate::daemon {
namespace {

using ipc::CommandType;
using namespace std::chrono_literals;

constexpr std::string_view kGreedyHead = ".version 8.8\n.target sm_90\n.address_size 64\n";

/// About so many bytes of a kernel that takes a hundred times as much when it is parsed.
std::string bomb(std::size_t bytes) {
  std::string text = std::string(kGreedyHead) + ".visible .entry k()\n{\n";
  while (text.size() < bytes) text += "x;";
  return text + "ret;\n}\n";
}

class GreedyClientTest : public SessionTest {
 protected:
  static Result<void> load(TestSession& session, std::uint64_t id, std::string_view text) {
    return session.call(CommandType::kModuleLoad,
                        ipc::ModuleLoad{id, text.size(), 0, ipc::kImagePtx, 0},
                        TestSession::text(text));
  }
};

TEST_F(GreedyClientTest, WithoutMemoryForItAModuleIsRefused) {
  TestSession session(device_, completer_);
  EXPECT_EQ(load(session, 1, "#").error().code, ErrorCode::kOutOfMemory);
  EXPECT_TRUE(session.load("noop")) << "the session goes on";
  EXPECT_TRUE(session.synchronize());
}

TEST_F(GreedyClientTest, WithoutMemoryForAnyOtherCommandItsSessionFails) {
  TestSession session(device_, completer_), other(device_, completer_);
  ASSERT_TRUE(session.load("noop"));
  ASSERT_TRUE(other.load("noop"));
  device_.before_launch([](const std::string&) { throw std::bad_alloc(); });
  ASSERT_TRUE(session.launch(0));
  EXPECT_EQ(session.synchronize().error().code, ErrorCode::kOutOfMemory);
  device_.before_launch([](const std::string&) { throw std::length_error("too long"); });
  ASSERT_TRUE(other.launch(0));
  EXPECT_EQ(other.synchronize().error().code, ErrorCode::kOutOfMemory);
  device_.before_launch({});
  TestSession next(device_, completer_);
  ASSERT_TRUE(next.load("noop"));
  EXPECT_TRUE(next.launch(0));
  EXPECT_TRUE(next.synchronize());
}

TEST_F(GreedyClientTest, SoMuchCodeMayASessionKeepInTheEngine) {
  TestSession session(device_, completer_), other(device_, completer_);
  device_.pretend_host_bytes(LoadedModules::kMostHostBytes / 2);
  ASSERT_TRUE(load(session, 1, "a"));
  ASSERT_TRUE(load(session, 2, "b"));
  EXPECT_EQ(load(session, 3, "c").error().code, ErrorCode::kLimit);
  EXPECT_TRUE(load(other, 1, "d"));
  ASSERT_TRUE(session.post(CommandType::kModuleUnload, ipc::IdCommand{1}));
  ASSERT_TRUE(session.synchronize());
  EXPECT_TRUE(load(session, 3, "c"));
}

TEST_F(GreedyClientTest, WhatASessionsFunctionsTakeCountsToo) {
  TestSession session(device_, completer_);
  ASSERT_TRUE(session.load("noop"));
  device_.pretend_host_bytes(LoadedModules::kMostHostBytes + 1);
  const auto second = session.add_function(2, "write");
  EXPECT_EQ(second.error().code, ErrorCode::kLimit);
}

/// A session of user `uid` in these ledgers.
class UsersSession : public TestSession {
 public:
  UsersSession(device::Device& device, Completer& completer, uid_t uid,
               const std::function<void(SessionSpec&)>& adapt)
      : TestSession(device, completer, 64 << 20, std::chrono::seconds(60), {}, nullptr, nullptr, 1,
                    uid, nullptr, adapt) {}
};

TEST_F(GreedyClientTest, SoMuchCodeMayAUserKeepInTheEngine) {
  MemoryLedger ledger(4000, 0);
  const auto in_ledger = [&](uid_t uid) {
    return [&ledger, uid](SessionSpec& spec) {
      spec.code = std::make_shared<MemoryLedger::Account>(ledger, uid);
    };
  };
  UsersSession first(device_, completer_, 1, in_ledger(1)),
      second(device_, completer_, 1, in_ledger(1)), other(device_, completer_, 2, in_ledger(2));
  device_.pretend_host_bytes(1500);
  ASSERT_TRUE(load(first, 1, "a"));
  ASSERT_TRUE(load(second, 1, "b"));
  EXPECT_EQ(load(first, 2, "c").error().code, ErrorCode::kLimit) << "both have 3000 of 4000";
  EXPECT_EQ(first.session->status().code_memory, 1500u);
  second.leave();
  EXPECT_TRUE(load(other, 1, "d"));
  EXPECT_EQ(ledger.used(), (std::map<uid_t, std::uint64_t>{{1, 1500}, {2, 1500}}));
}

TEST_F(GreedyClientTest, ARequestWaitsForMemoryThatOthersHaveWhereThatIsConfigured) {
  constexpr std::uint64_t kPart = 40 << 20;
  MemoryLedger ledger(64 << 20, 0);
  const auto in_ledger = [&](uid_t uid, std::chrono::milliseconds wait) {
    return [&ledger, uid, wait](SessionSpec& spec) {
      spec.account = std::make_unique<MemoryLedger::Account>(ledger, uid, ~0ull);
      spec.memory_wait = wait;
    };
  };
  UsersSession first(device_, completer_, 1, in_ledger(1, 0ms)),
      patient(device_, completer_, 2, in_ledger(2, 10min)),
      other(device_, completer_, 3, in_ledger(3, 0ms));
  const auto held = first.allocate(kPart);
  ASSERT_TRUE(held);
  EXPECT_EQ(other.allocate(kPart).error().code, ErrorCode::kOutOfMemory) << "at once";
  std::thread end([&] {
    std::this_thread::sleep_for(30ms);
    (void)first.post(CommandType::kMemoryFree, ipc::MemoryFree{*held});
    (void)first.synchronize();
  });
  EXPECT_TRUE(patient.allocate(kPart)) << "as soon as the first one has freed it";
  end.join();
  EXPECT_EQ(patient.allocate(std::uint64_t{1} << 30).error().code, ErrorCode::kOutOfMemory)
      << "its own limit is no reason to wait";
}

TEST_F(GreedyClientTest, LocalMemoryOfThreadsIsChargedAndGoesBack) {
  device_.add_kernel("deep", {.local_bytes = 4096});
  device_.add_kernel("deeper", {.local_bytes = 65536});
  const auto local = std::make_shared<LocalMemory>(device_);
  const auto shared = [&](SessionSpec& spec) { spec.local = local; };
  const std::uint64_t cost = (4096 - LocalMemory::kBase) * resident_threads(device_.info());
  {
    UsersSession session(device_, completer_, 1, shared);
    ASSERT_TRUE(session.load("deep"));
    EXPECT_EQ(session.session->status().memory_used, 0u) << "nothing was launched";
    ASSERT_TRUE(session.launch(0));
    ASSERT_TRUE(session.synchronize());
    EXPECT_EQ(session.session->status().memory_used, cost);
    ASSERT_TRUE(session.launch(0));
    ASSERT_TRUE(session.synchronize());
    EXPECT_EQ(device_.local_sizes(), std::vector<std::uint64_t>{4096});
  }
  UsersSession greedy(device_, completer_, 2, shared);
  EXPECT_EQ(device_.local_sizes().back(), LocalMemory::kBase) << "nothing else ran";
  ASSERT_TRUE(greedy.load("deeper"));
  const int before = device_.launches();
  ASSERT_TRUE(greedy.launch(0));
  ASSERT_TRUE(greedy.synchronize());
  EXPECT_EQ(greedy.async_error(), ErrorCode::kOutOfMemory);
  EXPECT_EQ(device_.launches(), before);
  EXPECT_EQ(device_.local_sizes().back(), LocalMemory::kBase);
}

/// A module with variables of so many bytes.
std::string variables(std::uint64_t bytes) {
  return std::string(kGreedyHead) + ".visible .global .align 8 .b8 big[" + std::to_string(bytes) +
         "];\n.visible .entry k()\n{\nret;\n}\n";
}

TEST_F(GreedyClientTest, ModulesVariablesAreChargedToTheSession) {
  constexpr std::uint64_t kPart = 24 << 20;  // of 64 MiB
  TestSession session(device_, completer_), other(device_, completer_);
  const std::uint64_t charged = kPart + device_.granularity();  // no variable is at its beginning
  const auto free_bytes = [&] {
    return session.call<ipc::MemoryInfoReply>(CommandType::kMemoryInfo, char{})->free_bytes;
  };
  const std::uint64_t before = free_bytes();
  ASSERT_TRUE(load(session, 1, variables(kPart)));
  EXPECT_EQ(free_bytes(), before - charged);
  EXPECT_EQ(session.session->status().memory_used, charged);
  ASSERT_TRUE(load(session, 2, variables(kPart)));
  const auto refused = load(session, 3, variables(kPart));
  EXPECT_EQ(refused.error().code, ErrorCode::kOutOfMemory);
  EXPECT_EQ(device_.loaded().size(), 2u) << "before the device has given it any";
  EXPECT_EQ(session.allocate(kPart).error().code, ErrorCode::kOutOfMemory);
  EXPECT_TRUE(load(other, 1, variables(kPart)));
  ASSERT_TRUE(session.post(CommandType::kModuleUnload, ipc::IdCommand{1}));
  EXPECT_TRUE(load(session, 3, variables(kPart)));
  EXPECT_EQ(session.session->status().memory_used, 2 * charged);
}

TEST_F(GreedyClientTest, AModuleThatIsNotLoadedIsNotCharged) {
  TestSession session(device_, completer_);
  EXPECT_FALSE(load(session, 1, "!" + variables(1 << 20)));
  EXPECT_FALSE(load(session, 2, "#" + variables(1 << 20)));
  EXPECT_FALSE(load(session, 3, variables(std::uint64_t{1} << 40)));
  EXPECT_TRUE(load(session, 4, "what only the device can read"));
  EXPECT_EQ(session.session->status().memory_used, 0u);
}

TEST_F(GreedyClientTest, ALoadWaitsForTheMemoryOfAModuleThatRunningWorkStillUses) {
  constexpr std::uint64_t kMost = 40 << 20;  // of 64 MiB
  TestSession session(device_, completer_);
  ASSERT_TRUE(load(session, 2, variables(kMost)));
  ASSERT_TRUE(session.load("spin"));
  ASSERT_TRUE(session.launch(0));
  ASSERT_TRUE(session.post(CommandType::kModuleUnload, ipc::IdCommand{2}));
  EXPECT_EQ(session.async_error(), ErrorCode::kNone);
  std::thread end([&] {
    std::this_thread::sleep_for(30ms);
    device_.release_spinning();
  });
  EXPECT_TRUE(load(session, 3, variables(kMost)));
  end.join();
}

/// With an executor that all share.
class GreedyUserTest : public ExecutorTest {};

/// On the store by itself, with forms.
class GreedyModuleTest : public testing::Test {
 protected:
  GreedyModuleTest() {
    store_.loaded().charge_to(*memory_,
                              [this](std::uint64_t bytes) { return memory_->charge(bytes); });
  }
  ~GreedyModuleTest() override {
    store_.release();
    EXPECT_EQ(memory_->charged(), 0u);
    memory_->release();
  }
  Result<void> load(std::uint64_t id, std::string_view text) {
    return store_.add_chunk({id, text.size(), 0, ipc::kImagePtx, 0}, TestSession::text(text));
  }

  static constexpr std::uint64_t kLimit = 64 << 20;

  FakeDevice device_;
  Compiler compiler_{device_, nullptr};
  std::unique_ptr<MemoryManager> memory_ = *MemoryManager::make(device_, kLimit);
  FormMaker maker_{compiler_, {.profiles = false, .at_once = true}};
  ModuleStore store_{device_, compiler_, &maker_};
};

TEST_F(GreedyModuleTest, VariablesOfAModuleWithFormsAreChargedOnce) {
  EXPECT_TRUE(load(1, variables(40 << 20)));
  EXPECT_EQ(memory_->charged(), 40u << 20);
  EXPECT_EQ(load(2, variables(40 << 20)).error().code, ErrorCode::kOutOfMemory);
  EXPECT_EQ(device_.loaded().size(), 1u);
  EXPECT_EQ(memory_->charged(), 40u << 20);
  const auto modules = store_.forget(1);
  ASSERT_TRUE(modules);
  ASSERT_EQ(modules->modules.size(), 1u);
  store_.loaded().unload_now(modules->modules.front());
  EXPECT_EQ(memory_->charged(), 0u);
}

TEST_F(GreedyModuleTest, VariablesOfMachineCodeAreCharged) {
  // Sections: none, their names, global variables, constants, a kernel's parameters.
  using namespace std::string_literals;
  const std::string names = "\0.shstrtab\0.nv.global\0.nv.constant3\0.nv.constant0.k\0"s;
  std::vector<Elf64_Shdr> sections(5);
  sections[1].sh_name = 1;
  sections[1].sh_offset = sizeof(Elf64_Ehdr);
  sections[2].sh_name = 11;
  sections[3].sh_name = 22;
  sections[3].sh_size = 300;
  sections[4].sh_name = 36;
  sections[4].sh_size = 7;
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_shoff = sizeof(header) + names.size();
  header.e_shnum = 5;
  header.e_shstrndx = 1;
  std::string image(sizeof(header) + names.size() + sizeof(Elf64_Shdr) * sections.size(), '\0');
  const auto write = [&] {
    std::memcpy(image.data(), &header, sizeof(header));
    std::memcpy(image.data() + sizeof(header), names.data(), names.size());
    std::memcpy(image.data() + sizeof(header) + names.size(), sections.data(),
                sizeof(Elf64_Shdr) * sections.size());
    return store_.add_chunk({1, image.size(), 0, ipc::kImageElf, 0}, TestSession::text(image));
  };
  sections[2].sh_size = kLimit;
  EXPECT_EQ(write().error().code, ErrorCode::kOutOfMemory);
  sections[2].sh_size = ~std::uint64_t{0};
  EXPECT_EQ(write().error().code, ErrorCode::kOutOfMemory);
  sections[2].sh_size = 1000;
  EXPECT_TRUE(write());
  EXPECT_EQ(memory_->charged(), 1300u);
}

TEST_F(GreedyModuleTest, WhatIsTooLargeToBeRewrittenIsLoadedAsItIs) {
  device_.add_kernel("k", {});
  const std::string text = bomb(1 << 20);
  ASSERT_TRUE(load(1, text));
  ASSERT_EQ(device_.loaded().size(), 1u);
  EXPECT_TRUE(device_.loaded()[0] == "ptx:" + text);
  ASSERT_TRUE(store_.add_function(1, 1, "k"));
  FunctionRecord& kernel = **store_.find_function(1);
  store_.attend(kernel);
  EXPECT_EQ(kernel.form_progress, FormProgress::kSettled);
  EXPECT_EQ(kernel.form_module, device::Module{});
  EXPECT_EQ(device_.loaded().size(), 1u);
}

TEST_F(GreedyModuleTest, AnImageForWhichNoMemoryIsLeftIsForgotten) {
  EXPECT_EQ(load(1, "#").error().code, ErrorCode::kOutOfMemory);
  EXPECT_EQ(store_.loaded().count(), 0u);
  EXPECT_TRUE(load(1, "a")) << "its id is free";
}

TEST_F(GreedyUserTest, AUserMakesNoMoreProfilesThanAreLeftForOthers) {
  start(std::make_unique<FakeDevice>(), policy_maker("fifo", {}));
  const auto rows_of = [this](std::uint32_t user) {
    std::size_t count = 0;
    executor_->with_profiles([&](scheduler::ProfileTable& profiles) {
      for (scheduler::KernelId id = 0; id < profiles.size(); ++id)
        count += profiles.kernel(id).owner == user ? 1 : 0;
    });
    return count;
  };
  constexpr std::size_t kLeft = 400;
  executor_->with_profiles([](scheduler::ProfileTable& profiles) {
    for (std::size_t i = kLeft; i < Executor::kMostRows; ++i)
      profiles.find_or_add({.name = std::to_string(i)});
  });
  const auto make_rows = [this](std::uint32_t user) {
    auto client = connect(user);
    client->SessionClient::load("not read", "noop");
    for (std::uint32_t x = 1; x <= 300; ++x)
      client->launch(0, {1, 1, 1}, {x, user, 1}, std::uint64_t{0});
    client->synchronize();
  };
  make_rows(1);
  make_rows(1);  // another session, of other kernels as far as is known
  EXPECT_EQ(rows_of(1), kLeft / 2);
  make_rows(2);
  EXPECT_NEAR(static_cast<double>(rows_of(2)), kLeft / 4.0, 1);
  make_rows(3);
  EXPECT_NEAR(static_cast<double>(rows_of(3)), kLeft / 8.0, 1);
}

}  // namespace
}  // namespace slate::daemon
