// Arrays, textures and surfaces of a session: what they are charged with, what outlives what, and
// what a hostile client gets for them.
#include <gtest/gtest.h>

#include "tests/unit/daemon/session_fixture.h"

namespace slate::daemon {
namespace {

using ipc::CommandType;

constexpr ArrayFormat kWord{ChannelKind::kUnsigned, 32, 1, 0};

class ObjectTest : public SessionTest {
 protected:
  ObjectTest() : session_(std::make_unique<TestSession>(device_, completer_)) {}
  ~ObjectTest() override { session_.reset(); }

  static ArraySpec flat(std::uint64_t width, std::uint64_t height, std::uint32_t flags = 0) {
    return {kWord, {width, height, 0}, flags, 0};
  }
  Result<void> create(std::uint64_t id, const ArraySpec& spec) {
    return session_->call(CommandType::kArrayCreate, ipc::ArrayCreate{id, spec});
  }
  Result<std::uint64_t> texture(const TextureSpec& spec) {
    const auto made =
        session_->call<ipc::HandleReply>(CommandType::kTextureCreate, ipc::TextureCreate{spec});
    if (!made) return std::unexpected(made.error());
    return made->handle;
  }
  Result<std::uint64_t> texture_of(std::uint64_t array) {
    TextureSpec spec;
    spec.resource.array = array;
    return texture(spec);
  }
  Result<std::uint64_t> texture_of_memory(std::uint64_t address, std::uint64_t bytes) {
    TextureSpec spec;
    spec.resource.kind = ResourceKind::kLinear;
    spec.resource.address = address;
    spec.resource.bytes = bytes;
    spec.resource.format = kWord;
    return texture(spec);
  }
  std::uint64_t used() const { return session_->session->status().memory_used; }
  ErrorCode error_of(Result<void> posted) {
    EXPECT_TRUE(posted);
    return session_->async_error();
  }
  /// Writes words to an array through a staging slot, or reads them.
  ErrorCode stage(const Place& array, const Box& box, bool to_device,
                  std::vector<std::uint32_t>& words) {
    auto staging = *session_->client->acquire_staging();
    std::memcpy(staging.memory.data(), words.data(), words.size() * 4);
    const Place slot = Place::in_slot(staging.slot, staging.sequence);
    const ipc::Copy copy =
        to_device ? ipc::Copy{array, slot, box, 0} : ipc::Copy{slot, array, box, 0};
    EXPECT_TRUE(session_->post(CommandType::kCopy, copy));
    const auto done = session_->client->wait_staging(staging);
    EXPECT_TRUE(done);
    std::memcpy(words.data(), staging.memory.data(), words.size() * 4);
    session_->client->release_staging(staging, true);
    return session_->async_error();
  }

  std::unique_ptr<TestSession> session_;
};

TEST_F(ObjectTest, AnArrayIsChargedUntilItIsGone) {
  ASSERT_TRUE(create(1, flat(1024, 1024)));
  EXPECT_EQ(used(), array_bytes(flat(1024, 1024)));
  ASSERT_TRUE(session_->post(CommandType::kArrayDestroy, ipc::IdCommand{1}));
  ASSERT_TRUE(session_->synchronize());
  EXPECT_EQ(used(), 0u);
}

TEST_F(ObjectTest, ArraysCountToTheLimitWithMemory) {
  ASSERT_TRUE(session_->allocate(40 << 20));
  const auto refused = create(1, flat(4096, 2048));  // 32 MiB of the 24 that are left
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kOutOfMemory);
  ASSERT_TRUE(create(1, flat(4096, 1024)));
  EXPECT_EQ(session_->allocate(16 << 20).error().code, ErrorCode::kOutOfMemory);
}

TEST_F(ObjectTest, AnArrayLivesAsLongAsItsTexture) {
  ASSERT_TRUE(create(1, flat(64, 64)));
  const auto handle = texture_of(1);
  ASSERT_TRUE(handle);
  ASSERT_TRUE(session_->post(CommandType::kArrayDestroy, ipc::IdCommand{1}));
  ASSERT_TRUE(session_->synchronize());
  EXPECT_GT(used(), 0u);  // FakeDevice aborts when the array goes first
  ASSERT_TRUE(session_->post(CommandType::kTextureDestroy, ipc::IdCommand{*handle}));
  ASSERT_TRUE(session_->synchronize());
  EXPECT_EQ(session_->async_error(), ErrorCode::kNone);
  EXPECT_EQ(used(), 0u);
}

TEST_F(ObjectTest, FreedMemoryStaysMappedAsLongAsATextureReadsIt) {
  const auto address = *session_->allocate(20 << 20);
  const auto handle = texture_of_memory(address, 4096);
  ASSERT_TRUE(handle) << handle.error().message;
  ASSERT_TRUE(session_->post(CommandType::kMemoryFree, ipc::MemoryFree{address}));
  ASSERT_TRUE(session_->synchronize());
  EXPECT_EQ(device_.mapped_bytes(), (20u << 20) + FakeDevice::kGranularity) << "and slack";
  // Nobody waits for what only the client can let go.
  EXPECT_EQ(session_->allocate(60 << 20).error().code, ErrorCode::kOutOfMemory);
  ASSERT_TRUE(session_->post(CommandType::kTextureDestroy, ipc::IdCommand{*handle}));
  ASSERT_TRUE(session_->synchronize());
  EXPECT_EQ(device_.mapped_bytes(), FakeDevice::kGranularity);
}

TEST_F(ObjectTest, ClientDeathDestroysArraysTexturesAndSurfaces) {
  ASSERT_TRUE(create(1, flat(64, 64, kArraySurface)));
  ASSERT_TRUE(create(2, flat(64, 64)));
  ASSERT_TRUE(texture_of(1));
  ASSERT_TRUE(texture_of_memory(*session_->allocate(4096), 4096));
  ASSERT_TRUE(
      session_->call<ipc::HandleReply>(CommandType::kSurfaceCreate, ipc::SurfaceCreate{1, 0, 0}));
  ASSERT_TRUE(session_->post(CommandType::kArrayDestroy, ipc::IdCommand{1}));
  session_->leave();
  EXPECT_TRUE(device_.holds_nothing());
}

TEST_F(ObjectTest, BoxesGoThroughStagingAndBetweenArrays) {
  ASSERT_TRUE(create(1, flat(8, 4)));
  ASSERT_TRUE(create(2, flat(8, 4)));
  std::vector<std::uint32_t> words{1, 2, 3, 4};
  EXPECT_EQ(stage(Place::in_array(1, 0, 8, 1), {8, 2}, true, words), ErrorCode::kNone);
  const ipc::Copy across{Place::in_array(2), Place::in_array(1, 0, 0, 1), {32, 2}, 0};
  EXPECT_EQ(error_of(session_->post(CommandType::kCopy, across)), ErrorCode::kNone);
  std::vector<std::uint32_t> row(8, 77);
  EXPECT_EQ(stage(Place::in_array(2), {32}, false, row), ErrorCode::kNone);
  EXPECT_EQ(row, (std::vector<std::uint32_t>{0, 0, 1, 2, 0, 0, 0, 0}));
}

TEST_F(ObjectTest, ArraysThatNoneCanBeAreRefused) {
  ArraySpec spec = flat(8, 8);
  spec.format.channels = 3;
  EXPECT_EQ(create(1, spec).error().code, ErrorCode::kInvalidValue);
  spec = flat(1ull << 40, 8);
  EXPECT_EQ(create(1, spec).error().code, ErrorCode::kInvalidValue);
  spec = flat(8, 8);
  spec.levels = 5;
  EXPECT_EQ(create(1, spec).error().code, ErrorCode::kInvalidValue);
  spec.levels = 0;
  spec.flags = 0x40;
  EXPECT_EQ(create(1, spec).error().code, ErrorCode::kInvalidValue);
}

TEST_F(ObjectTest, AnIdThatIsTakenEndsTheSession) {
  ASSERT_TRUE(create(1, flat(8, 8)));
  EXPECT_FALSE(create(1, flat(8, 8)));
  session_->join();
  EXPECT_TRUE(device_.holds_nothing());
}

TEST_F(ObjectTest, TexturesOfWhatIsNotTheSessionsAreRefused) {
  TestSession other(device_, completer_);
  const auto theirs = *other.allocate(4096);
  EXPECT_EQ(texture_of_memory(theirs, 4096).error().code, ErrorCode::kInvalidValue);
  const auto own = *session_->allocate(4096);
  EXPECT_EQ(texture_of_memory(own, std::uint64_t{1} << 30).error().code, ErrorCode::kInvalidValue)
      << "more elements than a texture has";
  EXPECT_TRUE(texture_of_memory(own, 1 << 20)) << "beyond the allocation, but in the arena";
  EXPECT_EQ(texture_of_memory(own + (1 << 20), 4096).error().code, ErrorCode::kInvalidValue);
  EXPECT_EQ(texture_of_memory(own + 4, 64).error().code, ErrorCode::kInvalidValue);
  EXPECT_EQ(texture_of(9).error().code, ErrorCode::kInvalidHandle);
  TextureSpec spec;
  spec.sampler.filter = static_cast<FilterMode>(7);
  EXPECT_EQ(texture(spec).error().code, ErrorCode::kInvalidValue);
  spec = {};
  spec.resource.kind = static_cast<ResourceKind>(9);
  EXPECT_EQ(texture(spec).error().code, ErrorCode::kInvalidValue);
}

TEST_F(ObjectTest, HandlesThatAreNotThereAreErrors) {
  for (const auto type :
       {CommandType::kArrayDestroy, CommandType::kTextureDestroy, CommandType::kSurfaceDestroy}) {
    EXPECT_EQ(error_of(session_->post(type, ipc::IdCommand{77})), ErrorCode::kInvalidHandle);
  }
}

TEST_F(ObjectTest, CopiesBeyondTheirPlacesAreErrors) {
  ASSERT_TRUE(create(1, flat(8, 4)));
  const auto address = *session_->allocate(4096);
  const ipc::Copy good{Place::in_array(1), Place::on_device(address, 32, 128), {32, 4}, 0};
  EXPECT_EQ(error_of(session_->post(CommandType::kCopy, good)), ErrorCode::kNone);
  const auto broken = [&](auto change) {
    ipc::Copy copy = good;
    change(copy);
    return error_of(session_->post(CommandType::kCopy, copy));
  };
  EXPECT_EQ(broken([](auto& c) { c.to.x = 4; }), ErrorCode::kInvalidValue);
  EXPECT_EQ(broken([](auto& c) { c.to.y = ~0ull; }), ErrorCode::kInvalidValue);
  EXPECT_EQ(broken([](auto& c) { c.to.part = 1; }), ErrorCode::kInvalidValue);
  EXPECT_EQ(broken([](auto& c) { c.to.object = 2; }), ErrorCode::kInvalidHandle);
  EXPECT_EQ(broken([](auto& c) { c.box.width = 30; }), ErrorCode::kNone) << "elements may be cut";
  EXPECT_EQ(broken([](auto& c) { c.box.width = 33; }), ErrorCode::kInvalidValue);
  EXPECT_EQ(broken([](auto& c) { c.to.x = 3, c.box.width = 30; }), ErrorCode::kInvalidValue);
  EXPECT_EQ(broken([](auto& c) { c.box.depth = ~0ull; }), ErrorCode::kInvalidValue);
  EXPECT_EQ(broken([](auto& c) { c.from.address += 4000; }), ErrorCode::kInvalidValue);
  EXPECT_EQ(broken([](auto& c) { c.from.pitch = 16; }), ErrorCode::kInvalidValue);
  EXPECT_EQ(broken([](auto& c) { c.from.pitch = ~0ull / 2; }), ErrorCode::kInvalidValue);
  EXPECT_EQ(broken([](auto& c) { c.from.kind = PlaceKind::kBlock; }), ErrorCode::kInvalidValue);
  EXPECT_EQ(broken([](auto& c) { c.stream = 99; }), ErrorCode::kInvalidHandle);
}

TEST_F(ObjectTest, ABoxLargerThanItsSlotEndsTheSession) {
  ASSERT_TRUE(create(1, flat(8, 4)));
  ASSERT_TRUE(session_->post(
      CommandType::kCopy,
      ipc::Copy{Place::in_array(1), Place::in_slot(0, 1), {1ull << 40, 1ull << 40}, 0}));
  session_->join();
  EXPECT_EQ(session_->client->check().error().code, ErrorCode::kProtocol);
}

TEST_F(ObjectTest, ACopyWithoutASideOnTheDeviceEndsTheSession) {
  ASSERT_TRUE(session_->post(CommandType::kCopy,
                             ipc::Copy{Place::in_block(1, 0), Place::in_block(2, 0), {4}, 0}));
  session_->join();
  EXPECT_EQ(session_->client->check().error().code, ErrorCode::kProtocol);
}

TEST_F(ObjectTest, ACopyOfAPlaceThatThereIsNotEndsTheSession) {
  const auto address = *session_->allocate(4096);
  ASSERT_TRUE(session_->post(
      CommandType::kCopy, ipc::Copy{Place::on_device(address), Place::on_host(nullptr), {4}, 0}));
  session_->join();
  EXPECT_EQ(session_->client->check().error().code, ErrorCode::kProtocol);
}

}  // namespace
}  // namespace slate::daemon
