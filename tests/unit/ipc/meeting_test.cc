#include "ipc/meeting.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>

#include "base/clock.h"
#include "ipc/packets.h"
#include "ipc/shared_memory.h"

namespace slate::ipc {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using Guests = MeetingPoint::Guests;

class MeetingTest : public testing::Test {
 protected:
  MeetingTest() {
    std::string pattern = (fs::temp_directory_path() / "slate-meeting-XXXXXX").string();
    root_ = ::mkdtemp(pattern.data());
    directory_ = root_ + "/run";
  }
  ~MeetingTest() override { fs::remove_all(root_); }

  static void await(int fd) {
    pollfd poller{fd, POLLIN, 0};
    ::poll(&poller, 1, 10'000);
  }
  static Visitor next(MeetingPoint& point) {
    while (true) {
      await(point.fd());
      auto visitor = point.accept();
      EXPECT_TRUE(visitor);
      if (visitor && *visitor) return std::move(**visitor);
    }
  }
  static Result<Hello> hello_of(const Visitor& visitor) {
    while (true) {
      const auto hello = receive_hello(visitor);
      if (!hello) return std::unexpected(hello.error());
      if (*hello) return **hello;
      await(visitor.socket.get());
    }
  }
  /// What a client gets whom `receive` serves.
  Result<Connection> meet(MeetingPoint& point, const std::function<void(Visitor)>& receive,
                          const Wishes& wishes = {}) {
    Result<Connection> connection = fail(ErrorCode::kInternal, "");
    std::thread client([&] {
      connection = connect_to_daemon(directory_, HelloKind::kSession, milliseconds(5000), wishes);
    });
    receive(next(point));
    client.join();
    return connection;
  }
  /// A socket to the daemon, without a word.
  UniqueFd connect() const {
    UniqueFd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    meeting_path(directory_).copy(address.sun_path, sizeof(address.sun_path) - 1);
    const auto* const its = reinterpret_cast<const sockaddr*>(&address);
    EXPECT_EQ(::connect(socket.get(), its, sizeof(address)), 0);
    return socket;
  }

  std::string root_, directory_;
};

TEST_F(MeetingTest, NothingIsLeftAfterTheDaemonWent) {
  {
    auto point = MeetingPoint::create(directory_, Guests::kOwnUser);
    ASSERT_TRUE(point) << point.error().message;
    EXPECT_TRUE(fs::exists(meeting_path(directory_)));
  }
  EXPECT_FALSE(fs::exists(directory_));
}

TEST_F(MeetingTest, TheSocketIsForThoseWhoAreMeant) {
  for (const Guests guests : {Guests::kOwnUser, Guests::kEverybody}) {
    const auto point = MeetingPoint::create(directory_, guests);
    ASSERT_TRUE(point);
    const bool all = guests == Guests::kEverybody;
    struct stat info {};
    ASSERT_EQ(::stat(directory_.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 07777, all ? 0755u : 0700u);
    ASSERT_EQ(::stat(meeting_path(directory_).c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 07777, all ? 0666u : 0600u);
  }
}

TEST_F(MeetingTest, ASecondDaemonIsToldAboutTheFirst) {
  auto first = MeetingPoint::create(directory_, Guests::kOwnUser);
  auto second = MeetingPoint::create(directory_, Guests::kOwnUser);
  ASSERT_FALSE(second);
  EXPECT_NE(second.error().message.find(std::to_string(::getpid())), std::string::npos);
}

TEST_F(MeetingTest, WhatAKilledDaemonLeftIsNoObstacle) {
  ASSERT_EQ(::mkdir(directory_.c_str(), 0700), 0);
  const UniqueFd left(::open(meeting_path(directory_).c_str(), O_CREAT | O_RDWR, 0600));
  auto point = MeetingPoint::create(directory_, Guests::kOwnUser);
  ASSERT_TRUE(point) << point.error().message;
  connect();
}

TEST_F(MeetingTest, AServiceManagersSocketIsUsedAndLeft) {
  UniqueFd given;
  {
    auto own = MeetingPoint::create(directory_, Guests::kOwnUser);
    ASSERT_TRUE(own);
    given.reset(::dup(own->fd()));
    fs::rename(meeting_path(directory_), root_ + "/kept");
  }
  ASSERT_EQ(::mkdir(directory_.c_str(), 0700), 0);
  fs::rename(root_ + "/kept", meeting_path(directory_));
  {
    auto point = MeetingPoint::create(directory_, Guests::kEverybody, std::move(given));
    ASSERT_TRUE(point) << point.error().message;
    const UniqueFd client = connect();
    EXPECT_EQ(next(*point).uid, ::geteuid());
  }
  EXPECT_TRUE(fs::exists(meeting_path(directory_)));
  int pipes[2];
  ASSERT_EQ(::pipe(pipes), 0);
  const UniqueFd other(pipes[1]);
  EXPECT_EQ(MeetingPoint::create(directory_, Guests::kEverybody, UniqueFd(pipes[0])).error().code,
            ErrorCode::kInvalidValue);
}

TEST_F(MeetingTest, ClientAndDaemonMeet) {
  auto point = MeetingPoint::create(directory_, Guests::kOwnUser);
  ASSERT_TRUE(point);
  Visitor visitor;
  Result<NewSession> made = fail(ErrorCode::kInternal, "");
  const auto connection = meet(*point,
                               [&](Visitor come) {
                                 visitor = std::move(come);
                                 const auto hello = hello_of(visitor);
                                 ASSERT_TRUE(hello) << hello.error().message;
                                 EXPECT_EQ(hello->weight, 2.5);
                                 EXPECT_EQ(hello->memory, 3u << 20);
                                 EXPECT_EQ(hello->wishes, kHasWeight | kHasMemoryLimit);
                                 made = NewSession::make(directory_, {}, 1 << 20);
                                 ASSERT_TRUE(made) << made.error().message;
                                 Welcome welcome;
                                 welcome.session = 77;
                                 ASSERT_TRUE(send_welcome(visitor.socket.get(), welcome, &*made));
                               },
                               {.weight = 2.5, .priority = {}, .memory = 3 << 20});
  ASSERT_TRUE(connection) << connection.error().message;
  EXPECT_EQ(visitor.uid, ::geteuid());
  EXPECT_EQ(visitor.pid, ::getpid()) << "the kernel's word, not the client's";
  EXPECT_EQ(connection->welcome.session, 77u);
  EXPECT_TRUE(connection->segment);
  ASSERT_EQ(::write(connection->to_daemon.get(), "a", 1), 1);
  ASSERT_EQ(::write(made->daemon.to_client.get(), "b", 1), 1);
  char byte = 0;
  ASSERT_EQ(::read(made->daemon.from_client.get(), &byte, 1), 1);
  EXPECT_EQ(byte, 'a');
  ASSERT_EQ(::read(connection->from_daemon.get(), &byte, 1), 1);
  EXPECT_EQ(byte, 'b');
  int names = 0;
  for (const auto& entry : fs::directory_iterator(directory_))
    names += entry.path().extension() == ".sock" || entry.path().extension() == ".lock" ? 0 : 1;
  EXPECT_EQ(names, 0) << "nothing of the session has a name";
}

TEST_F(MeetingTest, ARefusalArrivesWithItsReason) {
  auto point = MeetingPoint::create(directory_, Guests::kOwnUser);
  const auto connection = meet(*point, [&](const Visitor& visitor) {
    ASSERT_TRUE(hello_of(visitor));
    Welcome welcome;
    welcome.status = static_cast<std::uint32_t>(ErrorCode::kLimit);
    std::strcpy(welcome.message, "64 sessions are open");
    ASSERT_TRUE(send_welcome(visitor.socket.get(), welcome));
  });
  ASSERT_FALSE(connection);
  EXPECT_EQ(connection.error().code, ErrorCode::kLimit);
  EXPECT_NE(connection.error().message.find("64 sessions"), std::string::npos);
}

TEST_F(MeetingTest, WhoShallComeAgainComesAgain) {
  auto point = MeetingPoint::create(directory_, Guests::kOwnUser);
  int visits = 0;
  const auto connection = meet(*point, [&](Visitor visitor) {
    for (;; visitor = next(*point)) {
      ASSERT_TRUE(hello_of(visitor));
      Welcome welcome;
      if (++visits == 4) return (void)send_welcome(visitor.socket.get(), welcome);
      // One is sent away, and one hung up on.
      welcome.status = static_cast<std::uint32_t>(ErrorCode::kLimit);
      welcome.come_again = 1;
      if (visits != 2) (void)send_welcome(visitor.socket.get(), welcome);
      visitor.socket.reset();
    }
  });
  EXPECT_TRUE(connection) << connection.error().message;
  EXPECT_EQ(visits, 4);
}

TEST_F(MeetingTest, WhoIsSentAwayUntilTheEndIsToldWhy) {
  auto point = MeetingPoint::create(directory_, Guests::kOwnUser);
  std::thread daemon([&] {
    const std::int64_t end = now_ns() + 400'000'000;
    while (now_ns() < end) {
      auto visitor = point->accept();
      if (!visitor || !*visitor) continue;
      Welcome welcome;
      welcome.status = static_cast<std::uint32_t>(ErrorCode::kLimit);
      welcome.come_again = 1;
      std::strcpy(welcome.message, "too many come");
      (void)hello_of(**visitor);
      (void)send_welcome((*visitor)->socket.get(), welcome);
    }
  });
  const auto connection = connect_to_daemon(directory_, HelloKind::kSession, milliseconds(200));
  daemon.join();
  ASSERT_FALSE(connection);
  EXPECT_EQ(connection.error().code, ErrorCode::kInitialization);
  EXPECT_NE(connection.error().message.find("too many come"), std::string::npos)
      << connection.error().message;
}

TEST_F(MeetingTest, WithoutADaemonTheAnswerComesAtOnce) {
  const auto start = now_ns();
  for (int i = 0; i < 2; ++i) {
    auto connection = connect_to_daemon(directory_, HelloKind::kSession, milliseconds(5000));
    ASSERT_FALSE(connection);
    EXPECT_EQ(connection.error().code, ErrorCode::kInitialization);
    EXPECT_NE(connection.error().message.find("slated --runtime-dir"), std::string::npos);
    ::mkdir(directory_.c_str(), 0700);
  }
  EXPECT_LT(now_ns() - start, 1'000'000'000);
}

TEST_F(MeetingTest, ASilentDaemonTimesOut) {
  auto point = MeetingPoint::create(directory_, Guests::kOwnUser);
  auto connection = connect_to_daemon(directory_, HelloKind::kSession, milliseconds(100));
  ASSERT_FALSE(connection);
  EXPECT_EQ(connection.error().code, ErrorCode::kInitialization);
}

TEST_F(MeetingTest, AProgramIsToldOnceThatItsWaitTakesLong) {
  auto point = MeetingPoint::create(directory_, Guests::kOwnUser);
  std::atomic<int> told = 0;
  const Patience patience(milliseconds(5000), milliseconds(20), [&told] { ++told; });
  Result<Connection> connection = fail(ErrorCode::kInternal, "");
  std::thread client(
      [&] { connection = connect_to_daemon(directory_, HelloKind::kControl, patience); });
  const Visitor visitor = next(*point);
  while (told == 0) std::this_thread::sleep_for(milliseconds(1));
  std::this_thread::sleep_for(milliseconds(50));
  EXPECT_TRUE(hello_of(visitor));
  EXPECT_TRUE(send_welcome(visitor.socket.get(), Welcome{}));
  client.join();
  EXPECT_TRUE(connection) << "it waits on: " << connection.error().message;
  EXPECT_EQ(told, 1);
}

TEST_F(MeetingTest, AnAnswerThatComesSoonTellsNothing) {
  auto point = MeetingPoint::create(directory_, Guests::kOwnUser);
  const Patience patience(milliseconds(5000), milliseconds(5000), [] { ADD_FAILURE(); });
  Result<Connection> connection = fail(ErrorCode::kInternal, "");
  std::thread client(
      [&] { connection = connect_to_daemon(directory_, HelloKind::kControl, patience); });
  const Visitor visitor = next(*point);
  EXPECT_TRUE(hello_of(visitor));
  EXPECT_TRUE(send_welcome(visitor.socket.get(), Welcome{}));
  client.join();
  EXPECT_TRUE(connection);
}

TEST_F(MeetingTest, AStrangersDirectoryIsNotUsedWhereAnybodyCanMakeOne) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  auto point = MeetingPoint::create(directory_, Guests::kOwnUser);
  ASSERT_TRUE(point) << point.error().message;
  constexpr uid_t kStranger = 12345;
  const std::string link = root_ + "/link";
  const auto refused = [&](const std::string& directory) {
    const auto connection = connect_to_daemon(directory, HelloKind::kSession, milliseconds(10));
    return !connection && connection.error().message.find("12345") != std::string::npos;
  };
  ASSERT_EQ(::chmod(root_.c_str(), 01777), 0);
  EXPECT_FALSE(refused(directory_));
  ASSERT_EQ(::chown(directory_.c_str(), kStranger, -1), 0);
  EXPECT_TRUE(refused(directory_));
  ASSERT_EQ(::chmod(root_.c_str(), 0755), 0);
  EXPECT_FALSE(refused(directory_)) << "only root can have made it here, as /run/slate";
  ASSERT_EQ(::chmod(root_.c_str(), 01777), 0);
  ASSERT_EQ(::chown(directory_.c_str(), 0, -1), 0);
  ASSERT_EQ(::symlink(directory_.c_str(), link.c_str()), 0);
  EXPECT_FALSE(refused(link));
  ASSERT_EQ(::lchown(link.c_str(), kStranger, -1), 0);
  EXPECT_TRUE(refused(link)) << "it may lead elsewhere by the next call";
}

/// What a process says that is another user, in a user namespace with no number but its own.
std::string said_in_a_namespace(uid_t user, const std::function<std::string()>& speak) {
  int ends[2];
  if (::pipe(ends) != 0) return {};
  const pid_t child = ::fork();
  if (child == 0) {
    std::string said = "no user namespaces here";
    // Who has changed his number cannot write the map otherwise.
    if (::setresuid(user, user, user) == 0 && ::prctl(PR_SET_DUMPABLE, 1) == 0 &&
        ::unshare(CLONE_NEWUSER) == 0 &&
        (std::ofstream("/proc/self/uid_map") << user << " " << user << " 1").flush()) {
      said = speak();
    }
    (void)!::write(ends[1], said.data(), said.size());
    ::_exit(0);
  }
  ::close(ends[1]);
  std::string said(4096, '\0');
  said.resize(
      static_cast<std::size_t>(std::max<ssize_t>(::read(ends[0], said.data(), said.size()), 0)));
  ::close(ends[0]);
  ::waitpid(child, nullptr, 0);
  return said;
}

TEST_F(MeetingTest, WhereRootHasNoNumberHisFoldersAreKnownAllTheSame) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  const auto point = MeetingPoint::create(directory_, Guests::kEverybody);
  ASSERT_TRUE(point) << point.error().message;
  const auto speak = [&] {
    return connect_to_daemon(directory_, HelloKind::kSession, milliseconds(10)).error().message;
  };
  ASSERT_EQ(::chmod(root_.c_str(), 0755), 0);
  const std::string said = said_in_a_namespace(12345, speak);
  if (said == "no user namespaces here") GTEST_SKIP() << said;
  EXPECT_EQ(said.find("is not used"), said.npos) << said;
  ASSERT_EQ(::chmod(root_.c_str(), 01777), 0);
  EXPECT_NE(said_in_a_namespace(12345, speak).find("is not used"), said.npos);
}

TEST_F(MeetingTest, WhatIsNoHelloIsRefusedInWords) {
  auto point = MeetingPoint::create(directory_, Guests::kOwnUser);
  ASSERT_TRUE(point);
  const auto answer_to = [&](const void* bytes, std::size_t size) {
    const UniqueFd client = connect();
    const iovec piece{const_cast<void*>(bytes), size};
    EXPECT_TRUE(send_packet(client.get(), {&piece, 1}));
    return hello_of(next(*point)).error();
  };
  EXPECT_EQ(answer_to("hello", 5).code, ErrorCode::kProtocol);
  const std::string much(100'000, 'x');
  EXPECT_EQ(answer_to(much.data(), much.size()).code, ErrorCode::kProtocol);
  Hello hello;
  EXPECT_EQ(answer_to(&hello, sizeof(hello) - 1).code, ErrorCode::kProtocol);
  // A later version's, which is longer.
  struct {
    Hello hello;
    char more[200] = {};
  } later;
  later.hello.protocol = kProtocolVersion + 1;
  std::strcpy(later.hello.build, "9.9");
  const Error refusal = answer_to(&later, sizeof(later));
  EXPECT_NE(refusal.message.find("9.9"), std::string::npos) << refusal.message;
  // Whoever says nothing and goes.
  connect();
  EXPECT_EQ(hello_of(next(*point)).error().code, ErrorCode::kUnavailable);
}

TEST(SharedMemoryTest, ItsSizeIsForEver) {
  const auto made = make_shared_memory("test", 8192);
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_NE(::ftruncate(made->get(), 0), 0);
  EXPECT_NE(::ftruncate(made->get(), 16384), 0);
  EXPECT_NE(::fcntl(made->get(), F_GETFD) & FD_CLOEXEC, 0);
}

TEST(SegmentTest, BothSidesSeeTheSame) {
  const auto made = Segment::create({}, 123);
  ASSERT_TRUE(made) << made.error().message;
  const auto other = Segment::from_fd(UniqueFd(::dup(made->fd())));
  ASSERT_TRUE(other) << other.error().message;
  EXPECT_EQ((*other).status().memory_limit, 123u);
  EXPECT_NE(::ftruncate(made->fd(), 0), 0) << "nobody cuts it off";
}

TEST(SegmentTest, AllButItsStagingHasItsPagesFromTheStart) {
  const auto made = Segment::create({}, 0);
  ASSERT_TRUE(made);
  struct stat info {};
  ASSERT_EQ(::fstat(made->fd(), &info), 0);
  EXPECT_GE(static_cast<std::uint64_t>(info.st_blocks) * 512, offsetof(SegmentLayout, staging));
  EXPECT_LT(static_cast<std::uint64_t>(info.st_blocks) * 512,
            offsetof(SegmentLayout, staging) + kStagingSlotBytes);
}

TEST(SegmentTest, AnotherSizeOrVersionIsRefused) {
  auto small = make_shared_memory("test", 4096);
  EXPECT_EQ(Segment::from_fd(std::move(*small)).error().code, ErrorCode::kProtocol);
  auto blank = make_shared_memory("test", sizeof(SegmentLayout));
  EXPECT_EQ(Segment::from_fd(std::move(*blank)).error().code, ErrorCode::kProtocol);
}

}  // namespace
}  // namespace slate::ipc
