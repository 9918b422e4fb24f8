#include "ipc/rendezvous.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <random>
#include <thread>

#include "base/clock.h"
#include "ipc/mapping_guard.h"
#include "ipc/segment.h"
#include "tests/unit/ipc/small_shared_memory.h"

namespace slate::ipc {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

class RendezvousTest : public testing::Test {
 protected:
  RendezvousTest() {
    std::string pattern = (fs::temp_directory_path() / "slate-rendezvous-XXXXXX").string();
    root_ = ::mkdtemp(pattern.data());
    directory_ = root_ + "/run";
  }
  ~RendezvousTest() override { fs::remove_all(root_); }

  Hello hello_for(const std::string& name) {
    Hello hello;
    std::strncpy(hello.directory, name.c_str(), sizeof(hello.directory) - 1);
    hello.checksum = hello_checksum(hello);
    return hello;
  }
  void make_session(const std::string& name, mode_t mode = 0700) {
    const std::string path = sessions_path(directory_) + "/" + name;
    ::mkdir(path.c_str(), 0700);
    ::mkfifo((path + "/to_daemon").c_str(), 0600);
    ::mkfifo((path + "/to_client").c_str(), 0600);
    ::chmod(path.c_str(), mode);
    reader_.reset(::open((path + "/to_client").c_str(), O_RDONLY | O_NONBLOCK));
  }

  std::string root_, directory_;
  UniqueFd reader_;
};

TEST_F(RendezvousTest, NothingIsLeftAfterTheDaemonWent) {
  {
    auto point = RendezvousPoint::create(directory_);
    ASSERT_TRUE(point) << point.error().message;
    EXPECT_TRUE(fs::exists(rendezvous_path(directory_)));
    make_session("1-abc");
  }
  EXPECT_FALSE(fs::exists(directory_));
}

TEST_F(RendezvousTest, OtherUsersMakeSessionsButDoNotListThem) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root serves other users";
  auto point = RendezvousPoint::create(directory_);
  ASSERT_TRUE(point);
  struct stat info {};
  ASSERT_EQ(::stat(sessions_path(directory_).c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 01733u);
}

TEST_F(RendezvousTest, SecondDaemonIsToldAboutTheFirst) {
  auto first = RendezvousPoint::create(directory_);
  auto second = RendezvousPoint::create(directory_);
  ASSERT_FALSE(second);
  EXPECT_NE(second.error().message.find(std::to_string(::getpid())), std::string::npos);
}

TEST_F(RendezvousTest, ClientAndDaemonMeet) {
  auto point = RendezvousPoint::create(directory_);
  ASSERT_TRUE(point);
  Result<Connection> connection = fail(ErrorCode::kInternal, "");
  std::thread client(
      [&] { connection = connect_to_daemon(directory_, HelloKind::kSession, milliseconds(5000)); });
  std::vector<Hello> hellos;
  while (hellos.empty()) {
    hellos = point->receive();
    std::this_thread::yield();
  }
  auto fifos = open_session_fifos(directory_, hellos[0]);
  ASSERT_TRUE(fifos) << fifos.error().message;
  EXPECT_EQ(fifos->owner, ::geteuid());
  Welcome welcome;
  welcome.session = 77;
  ASSERT_TRUE(send_welcome(fifos->to_client.get(), welcome));
  client.join();
  ASSERT_TRUE(connection) << connection.error().message;
  EXPECT_EQ(connection->welcome.session, 77u);
  EXPECT_EQ(hellos[0].pid, static_cast<std::uint32_t>(::getpid()));
  EXPECT_TRUE(fs::is_empty(sessions_path(directory_))) << "the directory is only needed to meet";
}

TEST_F(RendezvousTest, RefusalArrivesWithItsReason) {
  auto point = RendezvousPoint::create(directory_);
  Result<Connection> connection = fail(ErrorCode::kInternal, "");
  std::thread client(
      [&] { connection = connect_to_daemon(directory_, HelloKind::kSession, milliseconds(5000)); });
  std::vector<Hello> hellos;
  while (hellos.empty()) hellos = point->receive();
  auto fifos = open_session_fifos(directory_, hellos[0]);
  ASSERT_TRUE(fifos);
  Welcome welcome;
  welcome.status = static_cast<std::uint32_t>(ErrorCode::kLimit);
  std::strcpy(welcome.message, "64 sessions are open");
  ASSERT_TRUE(send_welcome(fifos->to_client.get(), welcome));
  client.join();
  ASSERT_FALSE(connection);
  EXPECT_EQ(connection.error().code, ErrorCode::kLimit);
  EXPECT_NE(connection.error().message.find("64 sessions"), std::string::npos);
}

TEST_F(RendezvousTest, WithoutADaemonTheAnswerComesAtOnce) {
  const auto start = now_ns();
  auto connection = connect_to_daemon(directory_, HelloKind::kSession, milliseconds(5000));
  ASSERT_FALSE(connection);
  EXPECT_EQ(connection.error().code, ErrorCode::kInitialization);
  EXPECT_NE(connection.error().message.find("slated --runtime-dir"), std::string::npos);
  EXPECT_LT(now_ns() - start, 1'000'000'000);
}

TEST_F(RendezvousTest, AnotherUsersDirectoryIsNotUsed) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  auto point = RendezvousPoint::create(directory_);
  ASSERT_TRUE(point) << point.error().message;
  constexpr uid_t kStranger = 12345;
  const std::string fifo = rendezvous_path(directory_), link = root_ + "/link";
  const auto refused = [&](const std::string& directory) {
    const auto connection = connect_to_daemon(directory, HelloKind::kSession, milliseconds(10));
    return !connection && connection.error().message.find("12345") != std::string::npos;
  };
  EXPECT_FALSE(refused(directory_));
  ASSERT_EQ(::chown(directory_.c_str(), kStranger, -1), 0);
  EXPECT_TRUE(refused(directory_));
  ASSERT_EQ(::chown(directory_.c_str(), 0, -1), 0);
  ASSERT_EQ(::chown(fifo.c_str(), kStranger, -1), 0);
  EXPECT_TRUE(refused(directory_));
  ASSERT_EQ(::chown(fifo.c_str(), 0, -1), 0);
  ASSERT_EQ(::symlink(directory_.c_str(), link.c_str()), 0);
  EXPECT_FALSE(refused(link));
  ASSERT_EQ(::lchown(link.c_str(), kStranger, -1), 0);
  EXPECT_TRUE(refused(link)) << "it may lead elsewhere by the next call";
  EXPECT_EQ(point->receive().size(), 2u) << "nobody else has said hello";
}

TEST_F(RendezvousTest, SilentDaemonTimesOutAndLeavesNoDirectory) {
  auto point = RendezvousPoint::create(directory_);
  auto connection = connect_to_daemon(directory_, HelloKind::kSession, milliseconds(100));
  ASSERT_FALSE(connection);
  EXPECT_EQ(connection.error().code, ErrorCode::kInitialization);
  EXPECT_TRUE(fs::is_empty(sessions_path(directory_)));
}

TEST_F(RendezvousTest, DirectoryOpenToOthersIsRefused) {
  auto point = RendezvousPoint::create(directory_);
  make_session("1-abc", 0755);
  auto fifos = open_session_fifos(directory_, hello_for("1-abc"));
  ASSERT_FALSE(fifos);
  EXPECT_EQ(fifos.error().code, ErrorCode::kPermission);
}

TEST_F(RendezvousTest, SymbolicLinksAreRefused) {
  auto point = RendezvousPoint::create(directory_);
  make_session("1-abc");
  fs::create_directory_symlink(sessions_path(directory_) + "/1-abc",
                               sessions_path(directory_) + "/1-link");
  EXPECT_FALSE(open_session_fifos(directory_, hello_for("1-link")));
  const std::string path = sessions_path(directory_) + "/1-abc";
  fs::rename(path + "/to_daemon", root_ + "/elsewhere");
  fs::create_symlink(root_ + "/elsewhere", path + "/to_daemon");
  EXPECT_FALSE(open_session_fifos(directory_, hello_for("1-abc")));
}

TEST_F(RendezvousTest, NamesThatClimbAreRefused) {
  auto point = RendezvousPoint::create(directory_);
  for (const char* name : {"..", "../x", "a/b", "", ".", "a b"}) {
    auto fifos = open_session_fifos(directory_, hello_for(name));
    ASSERT_FALSE(fifos) << name;
    EXPECT_EQ(fifos.error().code, ErrorCode::kProtocol) << name;
  }
}

TEST_F(RendezvousTest, PlainFilesAreNotFifos) {
  auto point = RendezvousPoint::create(directory_);
  make_session("1-abc");
  const std::string fifo = sessions_path(directory_) + "/1-abc/to_daemon";
  ::unlink(fifo.c_str());
  UniqueFd file(::open(fifo.c_str(), O_CREAT | O_WRONLY, 0600));
  EXPECT_EQ(open_session_fifos(directory_, hello_for("1-abc")).error().code,
            ErrorCode::kPermission);
}

TEST(HelloScannerTest, HelloIsFoundBetweenGarbage) {
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    Hello hello;
    hello.pid = static_cast<std::uint32_t>(round);
    hello.checksum = hello_checksum(hello);
    std::string bytes;
    for (std::size_t i = random() % 600; i > 0; --i) bytes += static_cast<char>(random());
    if (round % 3 == 0) bytes.append(reinterpret_cast<const char*>(&kMagic), sizeof(kMagic));
    bytes.append(reinterpret_cast<const char*>(&hello), sizeof(hello));
    for (std::size_t i = random() % 600; i > 0; --i) bytes += static_cast<char>(random());
    // Arriving in pieces must make no difference.
    std::string pending;
    std::vector<Hello> found;
    for (std::size_t at = 0; at < bytes.size();) {
      const std::size_t n = std::min<std::size_t>(bytes.size() - at, 1 + random() % 100);
      pending.append(bytes, at, n);
      at += n;
      for (const Hello& h : HelloScanner::scan(pending)) found.push_back(h);
    }
    ASSERT_EQ(found.size(), 1u) << round;
    EXPECT_EQ(found[0].pid, static_cast<std::uint32_t>(round));
    EXPECT_LE(pending.size(), sizeof(Hello)) << "garbage is not hoarded";
  }
}

TEST(HelloScannerTest, DamagedHelloIsSkipped) {
  Hello hello;
  hello.checksum = hello_checksum(hello);
  hello.pid = 1;  // after the checksum was taken
  std::string bytes(reinterpret_cast<const char*>(&hello), sizeof(hello));
  EXPECT_TRUE(HelloScanner::scan(bytes).empty());
}

TEST(SegmentTest, StaleSegmentsOfThePrefixAreRemoved) {
  const std::string prefix = "/slate-test-stale-" + std::to_string(::getpid()) + "-";
  {
    auto a = Segment::create(prefix + "1", ::geteuid(), {}, 0);
    auto b = Segment::create(prefix + "2", ::geteuid(), {}, 0);
    ASSERT_TRUE(a && b);
  }
  EXPECT_EQ(Segment::remove_stale(prefix), 2);
  EXPECT_FALSE(Segment::open(prefix + "1", sizeof(SegmentLayout)));
}

TEST(SegmentTest, WithoutRoomForItThereIsNone) {
  const auto code = with_small_shared_memory(128 << 10, [] {
    const auto made = Segment::create("/slate-test-full", ::geteuid(), {}, 0);
    const bool left = ::access("/dev/shm/slate-test-full", F_OK) == 0;
    return !made && made.error().code == ErrorCode::kOutOfMemory && !left ? 0 : 1;
  });
  if (!code) GTEST_SKIP() << "needs a mount of its own";
  EXPECT_EQ(*code, 0);
}

TEST(SegmentTest, AllButItsStagingHasItsPagesFromTheStart) {
  const auto code = with_small_shared_memory(512 << 10, [] {
    const auto made = Segment::create("/slate-test-first", ::geteuid(), {}, 0);
    const auto clients = Segment::open("/slate-test-first", sizeof(SegmentLayout));
    if (!made || !clients) return 1;
    // Whoever comes next takes all that is left.
    const UniqueFd rest(::open("/dev/shm/rest", O_CREAT | O_RDWR, 0600));
    const std::string bytes(4096, 'x');
    while (::write(rest.get(), bytes.data(), bytes.size()) > 0) {
    }
    std::memset((*clients)->ring, 1, sizeof((*clients)->ring));
    return 0;
  });
  if (!code) GTEST_SKIP() << "needs a mount of its own";
  EXPECT_EQ(*code, 0);
}

TEST(SegmentTest, WithoutAGuardForItThereIsNone) {
  static std::byte page[4096];
  std::vector<MappingGuard> guards;
  while (true) {
    auto guard = MappingGuard::make(page, sizeof(page));
    if (!guard) break;
    guards.push_back(std::move(*guard));
  }
  EXPECT_LE(guards.size(), MappingGuard::kMost);
  const std::string name = "/slate-test-guards-" + std::to_string(::getpid());
  EXPECT_EQ(Segment::create(name, ::geteuid(), {}, 0).error().code, ErrorCode::kLimit);
  guards.clear();
  EXPECT_TRUE(Segment::create(name, ::geteuid(), {}, 0)) << "and nothing was left of the other";
  Segment::remove(name);
}

TEST(SegmentTest, WrongSizeIsAVersionMismatch) {
  auto segment = Segment::open("/slate-test-none", 4096);
  ASSERT_FALSE(segment);
  EXPECT_EQ(segment.error().code, ErrorCode::kProtocol);
}

}  // namespace
}  // namespace slate::ipc
