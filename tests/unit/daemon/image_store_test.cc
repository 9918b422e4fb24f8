// Code images that sessions share: who finds what, how long it stays, and what is loaded once.
#include "daemon/engine/image_store.h"

#include <gtest/gtest.h>

#include "tests/unit/daemon/session_fixture.h"

namespace slate::daemon {
namespace {

using ipc::CommandType;

std::vector<std::byte> image_of(char first, std::size_t bytes = ipc::kLeastOffered) {
  return std::vector<std::byte>(bytes, std::byte(first));
}

class ImageStoreTest : public testing::Test {
 protected:
  static ImageStore::Image add(ImageStore& store, char first, uid_t uid = 7) {
    const auto bytes = image_of(first, 100);
    return store.add(uid, ipc::kImageElf, digest_of(bytes), bytes);
  }
  static ImageStore::Image find(ImageStore& store, char first, uid_t uid = 7,
                                std::uint32_t kind = ipc::kImageElf) {
    return store.find(uid, kind, digest_of(image_of(first, 100)));
  }
};

TEST_F(ImageStoreTest, AnotherUsersImageIsNotThere) {
  ImageStore store(1000);
  const auto image = add(store, 'a');
  EXPECT_EQ(find(store, 'a'), image);
  EXPECT_EQ(add(store, 'a'), image) << "not a second time";
  EXPECT_EQ(find(store, 'a', 8), nullptr);
  EXPECT_EQ(find(store, 'a', 7, ipc::kImagePtx), nullptr);
  EXPECT_EQ(find(store, 'b'), nullptr);
}

TEST_F(ImageStoreTest, TheOnesUsedLastStayAndTheOthersAsLongAsTheyAreUsed) {
  ImageStore store(250);
  add(store, 'a');
  const auto used = add(store, 'b');
  EXPECT_NE(find(store, 'a'), nullptr);
  add(store, 'c');
  EXPECT_NE(find(store, 'a'), nullptr);
  add(store, 'd');
  EXPECT_EQ(find(store, 'c'), nullptr);
  EXPECT_EQ(find(store, 'b'), used) << "a session has it";
  ImageStore nothing(0);
  auto held = add(nothing, 'a');
  EXPECT_EQ(find(nothing, 'a'), held);
  held = nullptr;
  EXPECT_EQ(find(nothing, 'a'), nullptr);
}

class SharedImagesTest : public SessionTest {
 protected:
  std::unique_ptr<TestSession> session(std::uint64_t id, std::uint32_t uid = 7) {
    return std::make_unique<TestSession>(device_, completer_, 64 << 20, std::chrono::seconds(60),
                                         SessionHooks{}, nullptr, nullptr, id, uid, images_);
  }
  static Result<bool> offer(TestSession& by, std::uint64_t module, char first,
                            std::uint32_t kind = ipc::kImageElf) {
    ipc::ModuleOffer offered{module, kind, 0, {}};
    const DigestBytes digest = digest_of(image_of(first));
    std::copy(digest.begin(), digest.end(), offered.digest);
    const auto reply = by.call<ipc::OfferReply>(CommandType::kModuleOffer, offered);
    if (!reply) return std::unexpected(reply.error());
    return reply->known != 0;
  }
  static Result<void> send(TestSession& by, std::uint64_t module, char first,
                           std::uint32_t kind = ipc::kImageElf) {
    const auto bytes = image_of(first);
    const std::size_t half = bytes.size() / 2;
    const auto chunk = [&](std::size_t from, std::size_t to) {
      return std::span(bytes).subspan(from, to - from);
    };
    EXPECT_TRUE(by.post(CommandType::kModuleLoad, ipc::ModuleLoad{module, bytes.size(), 0, kind, 0},
                        chunk(0, half)));
    return by.call(CommandType::kModuleLoad, ipc::ModuleLoad{module, bytes.size(), half, kind, 0},
                   chunk(half, bytes.size()));
  }
  static ipc::FunctionReply find(TestSession& by, std::uint64_t module, std::uint64_t id) {
    const auto found = by.call<ipc::FunctionReply>(
        CommandType::kFunctionGet, ipc::FunctionGet{module, id}, TestSession::text("write"));
    EXPECT_TRUE(found) << found.error().message;
    return found.value_or(ipc::FunctionReply{});
  }
  static void unload(TestSession& by, std::uint64_t module) {
    EXPECT_TRUE(by.post(CommandType::kModuleUnload, ipc::IdCommand{module}));
    EXPECT_TRUE(by.synchronize());
  }

  const std::shared_ptr<ImageStore> images_ = std::make_shared<ImageStore>(1 << 20);
};

TEST_F(SharedImagesTest, MachineCodeIsSentAndLoadedOnce) {
  auto a = session(1), b = session(2);
  EXPECT_FALSE(offer(*a, 1, 'x').value());
  ASSERT_TRUE(send(*a, 1, 'x'));
  EXPECT_TRUE(offer(*b, 5, 'x').value());
  EXPECT_TRUE(offer(*b, 6, 'x').value()) << "nor is it by one program";
  EXPECT_EQ(device_.loaded().size(), 1u);
  EXPECT_EQ(b->session->status().modules, 2u);
  find(*b, 5, 9);
  find(*b, 6, 1);
  const auto address = *b->allocate(64);
  unload(*b, 5);
  a->leave();
  ASSERT_TRUE(b->launch(address));
  EXPECT_EQ(*b->read_int(address), 42) << "of the module that is left";
  b->leave();
  EXPECT_TRUE(device_.holds_nothing());
  EXPECT_TRUE(offer(*session(3), 1, 'x').value()) << "the image stays for a while";
  EXPECT_EQ(device_.loaded().size(), 2u);
}

TEST_F(SharedImagesTest, WhatOneProgramMaySetAnotherDoesNotSee) {
  auto a = session(1), b = session(2);
  ASSERT_TRUE(send(*a, 1, 'x'));
  ASSERT_TRUE(offer(*b, 1, 'x').value());
  const auto before = find(*a, 1, 1);
  const auto set = [](TestSession& by, int bytes) {
    EXPECT_TRUE(by.call(CommandType::kFunctionSet,
                        ipc::FunctionSet{1, FunctionAttribute::kMaxDynamicShared, bytes}));
  };
  set(*a, 2000);
  EXPECT_EQ(find(*b, 1, 1).max_dynamic_shared_bytes, before.max_dynamic_shared_bytes);
  set(*b, 1000);
  EXPECT_EQ(device_.attributes(), std::vector<std::string>{"write 8=2000"})
      << "the other program's launches need it";
}

TEST_F(SharedImagesTest, PtxIsSentOnceAndLoadedByEachSession) {
  auto a = session(1), b = session(2);
  ASSERT_TRUE(send(*a, 1, 'x', ipc::kImagePtx));
  EXPECT_FALSE(offer(*b, 1, 'x').value()) << "of another kind";
  EXPECT_TRUE(offer(*b, 1, 'x', ipc::kImagePtx).value());
  EXPECT_EQ(device_.loaded().size(), 2u);
}

TEST_F(SharedImagesTest, OfAnotherUserNothingIsKnown) {
  auto a = session(1, 7), other = session(2, 8);
  ASSERT_TRUE(send(*a, 1, 'x'));
  EXPECT_FALSE(offer(*other, 1, 'x').value());
  ASSERT_TRUE(send(*other, 1, 'x'));
  EXPECT_EQ(device_.loaded().size(), 2u);
}

TEST_F(SharedImagesTest, AnOfferNamesANewModule) {
  auto a = session(1);
  ASSERT_TRUE(send(*a, 1, 'x'));
  EXPECT_EQ(offer(*a, 2, 'x', 9).error().code, ErrorCode::kProtocol);
  auto b = session(2);
  ASSERT_TRUE(offer(*b, 1, 'x').value());
  EXPECT_EQ(offer(*b, 1, 'x').error().code, ErrorCode::kProtocol) << "loaded already";
  auto c = session(3);
  ASSERT_TRUE(c->post(CommandType::kModuleLoad, ipc::ModuleLoad{1, 6, 0, ipc::kImageElf, 0},
                      TestSession::text("abc")));
  EXPECT_EQ(offer(*c, 1, 'x').error().code, ErrorCode::kProtocol) << "half sent";
}

TEST_F(SharedImagesTest, AnImageThatTheDeviceRefusesIsTriedAgainByTheNext) {
  auto a = session(1), b = session(2);
  device_.refuse_code();
  EXPECT_EQ(send(*a, 1, 'x').error().code, ErrorCode::kNoKernelImage);
  device_.refuse_code();
  EXPECT_EQ(offer(*a, 2, 'x').error().code, ErrorCode::kNoKernelImage);
  EXPECT_TRUE(offer(*b, 1, 'x').value());
  EXPECT_EQ(a->session->status().modules, 0u);
}

}  // namespace
}  // namespace slate::daemon
