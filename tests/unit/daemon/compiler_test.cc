// From PTX to a module by way of the compile cache, on a FakeDevice that counts compilations.
#include "daemon/engine/compiler.h"

#include <thread>

#include "tests/unit/daemon/session_fixture.h"
#include "tests/unit/daemon/temporary_directory.h"

namespace slate::daemon {
namespace {

class CompilerTest : public testing::Test {
 protected:
  CompilerTest() { device_.set_compiler("fake 1"); }
  ~CompilerTest() override {
    for (const device::Module module : modules_) device_.unload_module(module);
  }

  std::unique_ptr<Compiler> open(std::uint64_t most_bytes = 1 << 20) {
    return std::make_unique<Compiler>(device_, open_cache(device_, directory_.path(), most_bytes));
  }
  ErrorCode load(Compiler& compiler, std::string_view ptx) {
    const auto module = compiler.load(std::as_bytes(std::span(ptx)));
    if (!module) return module.error().code;
    modules_.push_back(module->module);
    return ErrorCode::kNone;
  }
  std::vector<std::filesystem::path> entries() const {
    std::vector<std::filesystem::path> paths;
    for (const auto& each : std::filesystem::directory_iterator(directory_.path())) {
      paths.push_back(each.path());
    }
    return paths;
  }

  TemporaryDirectory directory_;
  FakeDevice device_;
  std::vector<device::Module> modules_;
};

TEST_F(CompilerTest, TheSameTextIsCompiledOnce) {
  const auto compiler = open();
  EXPECT_EQ(load(*compiler, "text"), ErrorCode::kNone);
  EXPECT_EQ(load(*compiler, "text"), ErrorCode::kNone);
  EXPECT_EQ(device_.compilations(), 1u);
  EXPECT_EQ(device_.loaded(), (std::vector<std::string>{"cubin:code:text", "cubin:code:text"}));
  EXPECT_EQ(compiler->cache_statistics()->hits, 1u);
  EXPECT_EQ(load(*compiler, "other text"), ErrorCode::kNone);
  EXPECT_EQ(device_.compilations(), 2u);
}

TEST_F(CompilerTest, WithoutMemoryForACompilationAllWhoWaitForItAreToldSo) {
  const auto compiler = open();
  device_.hold_compiler(true);
  std::vector<std::thread> threads;
  std::atomic<int> refused = 0;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&] {
      const std::string_view text = "#text";
      const auto loaded = compiler->load(std::as_bytes(std::span(text)));
      if (!loaded && loaded.error().code == ErrorCode::kOutOfMemory) ++refused;
    });
  }
  while (device_.compilations() == 0) std::this_thread::yield();
  device_.hold_compiler(false);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(refused, 2);
}

TEST_F(CompilerTest, TheNextEngineFindsIt) {
  EXPECT_EQ(load(*open(), "text"), ErrorCode::kNone);
  const auto next = open();
  EXPECT_EQ(load(*next, "text"), ErrorCode::kNone);
  EXPECT_EQ(device_.compilations(), 1u);
  EXPECT_EQ(next->cache_statistics()->hits, 1u);
}

TEST_F(CompilerTest, AnotherCompilersCodeIsNotTaken) {
  EXPECT_EQ(load(*open(), "text"), ErrorCode::kNone);
  device_.set_compiler("fake 2");
  EXPECT_EQ(load(*open(), "text"), ErrorCode::kNone);
  EXPECT_EQ(device_.compilations(), 2u);
}

TEST_F(CompilerTest, ADamagedEntryIsCompiledAgain) {
  const auto compiler = open();
  EXPECT_EQ(load(*compiler, "text"), ErrorCode::kNone);
  ASSERT_EQ(entries().size(), 1u);
  ASSERT_EQ(::truncate(entries().front().c_str(), 50), 0);
  EXPECT_EQ(load(*compiler, "text"), ErrorCode::kNone);
  EXPECT_EQ(device_.compilations(), 2u);
  EXPECT_EQ(compiler->cache_statistics()->damaged, 1u);
  EXPECT_EQ(load(*compiler, "text"), ErrorCode::kNone);
  EXPECT_EQ(device_.compilations(), 2u);
}

TEST_F(CompilerTest, AnEntryThatTheDeviceRefusesIsCompiledAgain) {
  const auto compiler = open();
  EXPECT_EQ(load(*compiler, "text"), ErrorCode::kNone);
  device_.refuse_code();
  EXPECT_EQ(load(*compiler, "text"), ErrorCode::kNone);
  EXPECT_EQ(device_.compilations(), 2u);
  EXPECT_EQ(compiler->cache_statistics()->stores, 2u);
}

TEST_F(CompilerTest, WhoseFreshCodeIsRefusedIsNotAskedAgain) {
  const auto compiler = open();
  device_.refuse_code();
  EXPECT_EQ(load(*compiler, "text"), ErrorCode::kNone);
  EXPECT_EQ(load(*compiler, "other text"), ErrorCode::kNone);
  EXPECT_EQ(device_.compilations(), 1u);
  EXPECT_EQ(device_.loaded(),
            (std::vector<std::string>{"cubin:code:text", "ptx:text", "ptx:other text"}));
}

TEST_F(CompilerTest, TextThatOnlyTheDeviceCompilesIsLoadedAsText) {
  const auto compiler = open();
  EXPECT_EQ(load(*compiler, "?newer text"), ErrorCode::kNone);
  EXPECT_EQ(load(*compiler, "text"), ErrorCode::kNone);
  EXPECT_EQ(device_.loaded(), (std::vector<std::string>{"ptx:?newer text", "cubin:code:text"}));
  EXPECT_EQ(entries().size(), 1u);
}

TEST_F(CompilerTest, ALargeTextThatTheCompilerRefusesIsNotTheDevices) {
  const auto compiler = open();
  const std::string most(std::size_t{4} << 20, '?');
  EXPECT_EQ(load(*compiler, most), ErrorCode::kNone);
  EXPECT_EQ(load(*compiler, most + '?'), ErrorCode::kInvalidPtx);
  EXPECT_EQ(device_.loaded().size(), 1u);
}

TEST_F(CompilerTest, BadTextThatIsRefusedTwiceDoesNotEndTheUseOfTheCompiler) {
  const auto compiler = open();
  EXPECT_EQ(load(*compiler, "!text"), ErrorCode::kInvalidPtx);
  EXPECT_EQ(load(*compiler, "text"), ErrorCode::kNone);
  EXPECT_EQ(device_.loaded().back(), "cubin:code:text");
}

TEST_F(CompilerTest, TextThatDoesNotCompileIsToldAndNotKept) {
  const auto compiler = open();
  EXPECT_EQ(load(*compiler, "!text"), ErrorCode::kInvalidPtx);
  EXPECT_EQ(load(*compiler, "!text"), ErrorCode::kInvalidPtx);
  EXPECT_EQ(device_.compilations(), 2u);
  EXPECT_TRUE(entries().empty());
}

TEST_F(CompilerTest, TextAskedForByTwoAtOnceIsCompiledOnce) {
  const auto compiler = open();
  device_.hold_compiler(true);
  std::vector<Compiler::Loaded> all(4);
  std::vector<std::thread> threads;
  for (Compiler::Loaded& loaded : all) {
    threads.emplace_back(
        [&] { loaded = compiler->load(TestSession::text("text")).value_or(Compiler::Loaded{}); });
  }
  while (device_.compilations() == 0) std::this_thread::yield();
  device_.hold_compiler(false);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(device_.compilations(), 1u);
  for (const Compiler::Loaded& loaded : all) {
    EXPECT_NE(loaded.module, device::Module{});
    EXPECT_NE(loaded.code, nullptr);
    modules_.push_back(loaded.module);
  }
}

TEST_F(CompilerTest, OneSlowTextDoesNotHoldUpAnother) {
  const auto compiler = open();
  EXPECT_EQ(load(*compiler, "known"), ErrorCode::kNone);
  device_.hold_compiler(true);
  std::thread slow([&] { EXPECT_EQ(load(*compiler, "slow"), ErrorCode::kNone); });
  while (device_.compilations() < 2) std::this_thread::yield();
  const auto known = compiler->load(TestSession::text("known"));
  device_.hold_compiler(false);
  slow.join();
  ASSERT_TRUE(known);
  modules_.push_back(known->module);
}

TEST_F(CompilerTest, WithoutACacheTheDeviceGetsTheText) {
  const auto compiler = open(0);
  EXPECT_EQ(load(*compiler, "text"), ErrorCode::kNone);
  EXPECT_EQ(device_.loaded(), std::vector<std::string>{"ptx:text"});
  EXPECT_FALSE(compiler->cache_statistics());
}

TEST_F(CompilerTest, ADeviceWithoutMachineCodeGetsTheTextAndOpensNoCache) {
  device_.set_compiler("");
  const auto place = directory_.path() / "cache";
  Compiler compiler(device_, open_cache(device_, place, 1 << 20));
  EXPECT_EQ(load(compiler, "text"), ErrorCode::kNone);
  EXPECT_EQ(device_.loaded(), std::vector<std::string>{"ptx:text"});
  EXPECT_FALSE(std::filesystem::exists(place));
}

TEST_F(CompilerTest, ADirectoryThatCannotBeUsedIsNoReasonNotToWork) {
  Compiler compiler(device_, open_cache(device_, "/proc/no-such-thing/cache", 1 << 20));
  EXPECT_EQ(load(compiler, "text"), ErrorCode::kNone);
  EXPECT_FALSE(compiler.cache_statistics());
}

TEST_F(CompilerTest, CodeThatCannotBeKeptIsLoadedAllTheSame) {
  const auto compiler = open(100);  // less than any entry takes
  EXPECT_EQ(load(*compiler, "a text of some length"), ErrorCode::kNone);
  EXPECT_EQ(device_.loaded().size(), 1u);
  EXPECT_EQ(compiler->cache_statistics()->stores, 0u);
}

TEST_F(CompilerTest, SessionsShareWhatOneOfThemHadCompiled) {
  const auto compiler = open();
  Completer completer(device_);
  for (int i = 0; i < 2; ++i) {
    TestSession session(device_, completer, 64 << 20, std::chrono::seconds(60), {}, compiler.get());
    ASSERT_TRUE(session.load("noop"));
    ASSERT_TRUE(session.launch(0));
    ASSERT_TRUE(session.synchronize());
  }
  EXPECT_EQ(device_.compilations(), 1u);
  EXPECT_EQ(compiler->cache_statistics()->hits, 1u);
}

}  // namespace
}  // namespace slate::daemon
