// One directory under several threads and several processes, and a disk without room.
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <functional>
#include <thread>

#include "tests/unit/injector/cache/cache_fixture.h"

namespace slate::cache {
namespace {

class SharingTest : public CacheTest {
 protected:
  static constexpr std::uint64_t kKeys = 40;

  static std::size_t size_of(std::uint64_t number) { return 500 + number * 37; }

  /// Finds and stores in an order of its own; false at the first value that is not its key's.
  static bool exercise(CompileCache& cache, std::uint64_t seed, int rounds) {
    for (int i = 0; i < rounds; ++i) {
      seed = seed * 6364136223846793005u + 1442695040888963407u;
      const std::uint64_t number = (seed >> 33) % kKeys;
      const auto expected = value_of(number, size_of(number));
      const auto found = cache.find(key_of(number));
      if (found && *found != expected) return false;
      if (!found && !cache.store(key_of(number), expected)) return false;
    }
    return cache.statistics().damaged == 0;
  }

  /// The status that a child process ends with; its body must not use assertions.
  static int in_child(const std::function<bool()>& body) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(body() ? 0 : 1);
    int status = -1;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    return status;
  }
};

TEST_F(SharingTest, ThreadsOfOneCacheFindOnlyWholeEntries) {
  const auto cache = open(20'000);  // not room enough for all
  std::vector<std::thread> threads;
  std::atomic<int> good = 0;
  for (std::uint64_t i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] { good += exercise(*cache, i, 300) ? 1 : 0; });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(good, 4);
  EXPECT_GT(cache->statistics().hits, 0u);
  EXPECT_GT(cache->statistics().evicted, 0u);
  for (const std::string& name : files()) EXPECT_TRUE(is_entry_name(name)) << name;
}

TEST_F(SharingTest, ProcessesFindOnlyWholeEntries) {
  std::vector<pid_t> children;
  for (std::uint64_t i = 0; i < 4; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      const auto cache = CompileCache::open(path_, 20'000);
      ::_exit(cache && exercise(**cache, 100 + i, 300) ? 0 : 1);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  for (const std::string& name : files()) EXPECT_TRUE(is_entry_name(name)) << name;
}

TEST_F(SharingTest, WhatOneProcessStoredAnotherFinds) {
  const auto cache = open();
  ASSERT_EQ(in_child([&] {
              const auto own = CompileCache::open(path_, kRoomy);
              return own && (*own)->store(key_of(1), value_of(1, 1000));
            }),
            0);
  EXPECT_EQ(cache->find(key_of(1)), value_of(1, 1000));
}

TEST_F(SharingTest, AProcessThatDiesWhileItStoresLeavesNoEntry) {
  const auto cache = open();
  const int status = in_child([&] {
    const rlimit limit{5000, 5000};  // the write beyond it raises SIGXFSZ, which kills
    ::setrlimit(RLIMIT_FSIZE, &limit);
    (void)cache->store(key_of(1), value_of(1, 100'000));
    return true;
  });
  EXPECT_TRUE(WIFSIGNALED(status)) << status;
  EXPECT_FALSE(cache->find(key_of(1)));
  ASSERT_EQ(files().size(), 1u);
  EXPECT_TRUE(is_temporary_name(files().front()));
  age(path_ / files().front(), 1000);
  open();
  EXPECT_TRUE(files().empty());
}

TEST_F(SharingTest, WithoutRoomOnTheDiskStoringFailsAndFindingWorks) {
  const auto cache = open();
  ASSERT_TRUE(cache->store(key_of(1), value_of(1, 1000)));
  ASSERT_EQ(in_child([&] {
              ::signal(SIGXFSZ, SIG_IGN);  // a limit of the file size stands for a full disk
              const rlimit limit{500, 500};
              ::setrlimit(RLIMIT_FSIZE, &limit);
              const auto stored = cache->store(key_of(2), value_of(2, 1000));
              return !stored && stored.error().code == ErrorCode::kIo &&
                     cache->find(key_of(1)) == value_of(1, 1000) && !cache->find(key_of(2));
            }),
            0);
  EXPECT_EQ(files(), std::vector<std::string>{entry_name(key_of(1))});
}

TEST_F(SharingTest, WhereOneMayOnlyReadStoringFailsAndFindingWorks) {
  const auto cache = open();
  ASSERT_TRUE(cache->store(key_of(1), value_of(1, 1000)));
  ASSERT_EQ(::chmod(path_.c_str(), 0555), 0);
  ASSERT_EQ(::chmod(file_of(key_of(1)).c_str(), 0444), 0);
  ASSERT_EQ(in_child([&] {
              // Root may write everywhere: let somebody else hold the open cache.
              if (::geteuid() == 0 && ::setuid(65534) != 0) return false;
              const auto stored = cache->store(key_of(2), value_of(2, 1000));
              return !stored && stored.error().code == ErrorCode::kIo &&
                     cache->find(key_of(1)) == value_of(1, 1000);
            }),
            0);
  ASSERT_EQ(::chmod(path_.c_str(), 0700), 0);
}

}  // namespace
}  // namespace slate::cache
