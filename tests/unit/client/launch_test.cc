#include <gtest/gtest.h>
#include <unistd.h>

#include "base/digest.h"
#include "client/session/session.h"
#include "tests/unit/client/fake_engine.h"

namespace slate::client {
namespace {

TEST(GatherTest, ParametersGoToTheirOffsetsAndGapsAreZero) {
  Function function;
  function.parameters = {{0, 1}, {8, 8}, {16, 4}};
  function.info.parameter_bytes = 20;
  const char a = 7;
  const std::uint64_t b = 0x1122334455667788;
  const std::int32_t c = -2;
  const void* const arguments[] = {&a, &b, &c};
  std::vector<std::byte> block(20, std::byte{0xaa});
  gather_parameters(function, arguments, block);
  std::vector<std::byte> expected(20, std::byte{0});
  expected[0] = std::byte{7};
  std::memcpy(expected.data() + 8, &b, sizeof(b));
  std::memcpy(expected.data() + 16, &c, sizeof(c));
  EXPECT_EQ(block, expected);
}

class CheckLaunchTest : public ::testing::Test {
 protected:
  CheckLaunchTest() {
    function.info.max_threads_per_block = 1024;
    function.info.registers = 32;
    function.max_dynamic_shared = 48 << 10;
  }
  ErrorCode code() const {
    const auto outcome = check_launch(device, function, config);
    return outcome ? ErrorCode::kNone : outcome.error().code;
  }
  const DeviceInfo device = test_device();
  Function function;
  LaunchConfig config;
};

TEST_F(CheckLaunchTest, WhatTheDeviceCanRunPasses) {
  EXPECT_EQ(code(), ErrorCode::kNone);
  config = {{2147483647, 65535, 65535}, {1024, 1, 1}, 48 << 10, 0};
  EXPECT_EQ(code(), ErrorCode::kNone);
}

TEST_F(CheckLaunchTest, GridAndBlockHaveLimits) {
  for (const LaunchConfig& bad :
       {LaunchConfig{{1, 1, 1}, {2000, 1, 1}, 0, 0}, LaunchConfig{{1, 1, 1}, {32, 32, 2}, 0, 0},
        LaunchConfig{{1, 1, 1}, {1, 1, 65}, 0, 0}, LaunchConfig{{1, 1, 1}, {0, 1, 1}, 0, 0},
        LaunchConfig{{0, 1, 1}, {1, 1, 1}, 0, 0}, LaunchConfig{{1, 65536, 1}, {1, 1, 1}, 0, 0},
        LaunchConfig{{0x80000000u, 1, 1}, {1, 1, 1}, 0, 0}}) {
    config = bad;
    EXPECT_EQ(code(), ErrorCode::kInvalidValue)
        << bad.grid[0] << " " << bad.grid[1] << " / " << bad.block[0] << " " << bad.block[2];
  }
}

TEST_F(CheckLaunchTest, SharedMemoryBeyondTheAllowanceIsAnInvalidValue) {
  config.dynamic_shared_bytes = (48 << 10) + 1;
  EXPECT_EQ(code(), ErrorCode::kInvalidValue);
  config.dynamic_shared_bytes = std::uint64_t{1} << 32;
  EXPECT_EQ(code(), ErrorCode::kInvalidValue) << "must not be cut to 32 bits";
}

TEST_F(CheckLaunchTest, TooFewRegistersIsNotTheSameAsLaunchBounds) {
  function.info.max_threads_per_block = 256;
  config.block = {512, 1, 1};
  EXPECT_EQ(code(), ErrorCode::kInvalidValue);
  function.info.registers = 255;
  EXPECT_EQ(code(), ErrorCode::kOutOfResources);
}

TEST_F(CheckLaunchTest, ClustersHaveAtMostEightBlocksUnlessMoreAreAllowed) {
  config.grid = {16, 16, 1};
  config.cluster = {4, 2, 1};
  EXPECT_EQ(code(), ErrorCode::kNone);
  config.cluster = {16, 1, 1};
  EXPECT_EQ(code(), ErrorCode::kInvalidClusterSize);
  function.non_portable_clusters = 1;
  EXPECT_EQ(code(), ErrorCode::kNone);
  config.cluster = {16, 2, 1};
  EXPECT_EQ(code(), ErrorCode::kInvalidClusterSize);
  config.cluster = {3, 1, 1};
  EXPECT_EQ(code(), ErrorCode::kInvalidConfiguration) << "the grid is not of whole clusters";
  config.cluster = {2, 0, 1};
  EXPECT_EQ(code(), ErrorCode::kInvalidClusterSize);
}

TEST_F(CheckLaunchTest, AKernelThatNeedsClustersIsNotLaunchedWithoutTheirSize) {
  config.grid = {16, 16, 1};
  function.info.needs_cluster = 1;
  EXPECT_EQ(code(), ErrorCode::kInvalidClusterSize);
  function.cluster[0] = 2;
  EXPECT_EQ(code(), ErrorCode::kInvalidClusterSize) << "all three, or none";
  function.cluster[1] = function.cluster[2] = 1;
  EXPECT_EQ(code(), ErrorCode::kNone);
  EXPECT_EQ(cluster_of(function, config), (std::array<std::uint32_t, 3>{2, 1, 1}));
  config.cluster = {4, 1, 1};
  EXPECT_EQ(code(), ErrorCode::kInvalidClusterSize) << "not the one that was set";
  function.cluster[0] = function.cluster[1] = function.cluster[2] = 0;
  EXPECT_EQ(code(), ErrorCode::kNone);
  config.cluster = {};
  function.info.cluster[0] = function.info.cluster[1] = function.info.cluster[2] = 1;
  EXPECT_EQ(code(), ErrorCode::kNone) << "as it was compiled";
}

class LaunchTest : public ::testing::Test {
 protected:
  FakeEngine engine;
};

TEST_F(LaunchTest, TheWireCarriesWhatTheCallSaid) {
  engine.answer(ipc::CommandType::kFunctionGet, ipc::FunctionReply{.max_threads_per_block = 1024,
                                                                   .static_shared_bytes = 0,
                                                                   .max_dynamic_shared_bytes = 4096,
                                                                   .constant_bytes = 0,
                                                                   .local_bytes = 0,
                                                                   .registers = 16,
                                                                   .ptx_version = 90,
                                                                   .binary_version = 90,
                                                                   .parameter_count = 2,
                                                                   .parameter_bytes = 12});
  ipc::ParameterReply parameters{};
  parameters.count = 2;
  parameters.parameters[0] = {0, 8};
  parameters.parameters[1] = {8, 4};
  engine.answer(ipc::CommandType::kFunctionParameters, parameters);
  const auto function = engine.session->kernels().find(5, "kernel");
  ASSERT_TRUE(function) << function.error().message;
  const std::uint64_t pointer = 0x700000001000;
  const int count = 42;
  const void* const arguments[] = {&pointer, &count};
  ASSERT_TRUE(
      engine.session->kernels().launch(**function, {{3, 2, 1}, {64, 2, 1}, 128, 9}, arguments));

  const auto sent = engine.wait_for(ipc::CommandType::kLaunch);
  EXPECT_EQ(sent.header.reply_slot, ipc::kNoReply);
  std::span<const std::byte> rest;
  const auto launch = sent.as<ipc::Launch>(&rest);
  ASSERT_TRUE(launch);
  EXPECT_EQ(launch->function, (*function)->id);
  EXPECT_EQ(launch->stream, 9u);
  EXPECT_EQ(launch->grid[0], 3u);
  EXPECT_EQ(launch->block[1], 2u);
  EXPECT_EQ(launch->dynamic_shared_bytes, 128u);
  EXPECT_EQ(launch->parameter_bytes, 12u);
  ASSERT_EQ(rest.size(), 12u);
  EXPECT_EQ(std::memcmp(rest.data(), &pointer, 8), 0);
  EXPECT_EQ(std::memcmp(rest.data() + 8, &count, 4), 0);
}

TEST_F(LaunchTest, ParametersInOneBufferAreSentAsTheyAre) {
  ipc::FunctionReply info{};
  info.max_threads_per_block = 1024;
  info.parameter_count = 2;
  info.parameter_bytes = 12;
  engine.answer(ipc::CommandType::kFunctionGet, info);
  ipc::ParameterReply layout{};
  layout.count = 2;
  layout.parameters[0] = {0, 8};
  layout.parameters[1] = {8, 4};
  engine.answer(ipc::CommandType::kFunctionParameters, layout);
  const auto function = engine.session->kernels().find(5, "kernel");
  ASSERT_TRUE(function) << function.error().message;
  Kernels& kernels = engine.session->kernels();
  std::array<std::byte, 16> buffer;
  for (std::size_t i = 0; i < buffer.size(); ++i) buffer[i] = std::byte(i + 1);
  const std::span<const std::byte> all(buffer);
  EXPECT_EQ(kernels.launch_packed(**function, {{1, 1, 1}, {2000, 1, 1}}, all).error().code,
            ErrorCode::kInvalidValue);
  EXPECT_EQ(kernels.launch_packed(**function, {}, all).error().code, ErrorCode::kOutOfResources)
      << "padding behind the last one";
  ASSERT_TRUE(kernels.launch_packed(**function, {{2, 1, 1}, {32, 1, 1}}, all.first(12)));
  ASSERT_TRUE(kernels.launch_packed(**function, {}, all.first(12)));
  ASSERT_TRUE(kernels.launch_packed(**function, {}, all.first(8))) << "the others are zeros";
  engine.answer(ipc::CommandType::kMemoryInfo, ipc::MemoryInfoReply{});
  ASSERT_TRUE(engine.session->memory().info());  // an answer comes behind all before it
  const auto sent = engine.all(ipc::CommandType::kLaunch);
  ASSERT_EQ(sent.size(), 3u);
  for (std::size_t i = 0; i < sent.size(); ++i) {
    std::span<const std::byte> tail;
    ASSERT_TRUE(sent[i].as<ipc::Launch>(&tail));
    ASSERT_EQ(tail.size(), 12u);
    if (i == 2) std::fill(buffer.begin() + 8, buffer.end(), std::byte{0});
    EXPECT_EQ(std::memcmp(tail.data(), buffer.data(), 12), 0);
  }
}

TEST_F(LaunchTest, AttributesThatAreSetReachTheDaemonAndStay) {
  ipc::FunctionReply info{};
  info.static_shared_bytes = 1024;
  info.cluster_scheduling = 1;
  engine.answer(ipc::CommandType::kFunctionGet, info);
  Kernels& kernels = engine.session->kernels();
  const auto found = kernels.find(5, "kernel");
  ASSERT_TRUE(found) << found.error().message;
  Function& function = **found;
  EXPECT_EQ(function.cluster_scheduling, 1);
  using enum FunctionAttribute;
  EXPECT_TRUE(kernels.set_attribute(function, kMaxDynamicShared, 232448 - 1024));
  EXPECT_EQ(function.max_dynamic_shared, 232448u - 1024);
  EXPECT_TRUE(kernels.set_attribute(function, kNonPortableClusters, 7));
  EXPECT_EQ(function.non_portable_clusters, 1);
  EXPECT_TRUE(kernels.set_attribute(function, kCarveout, 100));
  EXPECT_TRUE(kernels.set_attribute(function, kClusterScheduling, 2));
  EXPECT_EQ(engine.all(ipc::CommandType::kFunctionSet).size(), 4u);
  EXPECT_TRUE(kernels.set_attribute(function, kClusterHeight, 2));
  EXPECT_EQ(function.cluster[1], 2u);
  for (const auto& [attribute, value] :
       {std::pair(kMaxDynamicShared, 232448 - 1023), std::pair(kMaxDynamicShared, -1),
        std::pair(kCarveout, 101), std::pair(kClusterScheduling, 3), std::pair(kClusterWidth, -1),
        std::pair(FunctionAttribute{10}, 1)}) {
    EXPECT_EQ(kernels.set_attribute(function, attribute, value).error().code,
              ErrorCode::kInvalidValue);
  }
  EXPECT_EQ(engine.all(ipc::CommandType::kFunctionSet).size(), 4u);
  function.info.cluster[0] = 2;
  EXPECT_EQ(kernels.set_attribute(function, kClusterWidth, 2).error().code, ErrorCode::kPermission);
}

/// Whether a system call may read from there: it fails on memory that is closed.
bool can_be_written_out(std::uint64_t address) {
  int ends[2];
  EXPECT_EQ(::pipe(ends), 0);
  const bool can =
      ::write(ends[1], reinterpret_cast<void*>(static_cast<std::uintptr_t>(address)), 4) == 4;
  ::close(ends[0]);
  ::close(ends[1]);
  return can;
}

TEST_F(LaunchTest, ManagedMemoryIsClosedWhileAKernelHasAtomicsOfSystemScope) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ThreadSanitizer has the addresses for itself that a device would name";
#endif
  engine.give_memory_at(0x5200'0000'0000);
  ipc::FunctionReply info{};
  info.max_threads_per_block = 1024;
  engine.answer(ipc::CommandType::kFunctionGet, info);
  Session& session = *engine.session;
  const auto managed = session.host_memory().allocate_managed(64, kTagManaged, 0);
  ASSERT_TRUE(managed) << managed.error().message;
  const auto launch = [&](std::string_view text) {
    const auto bytes = std::as_bytes(std::span(text));
    const auto module = session.modules().load({ImageKind::kPtx, 90, {bytes.begin(), bytes.end()}});
    const auto function = session.kernels().find(module.value_or(0), "kernel");
    ASSERT_TRUE(function);
    engine.publishes = false;
    EXPECT_TRUE(session.kernels().launch(**function, {}, nullptr));
  };
  launch("red.global.add.u32 [%rd1], 1; membar.sys;");
  EXPECT_TRUE(can_be_written_out(*managed));
  launch("atom.add.sys.global.u32 %r1, [%rd1], 1;");
  EXPECT_FALSE(can_be_written_out(*managed));
  EXPECT_TRUE(session.check());
  EXPECT_FALSE(can_be_written_out(*managed)) << "the kernel is still under way";
  engine.publishes = true;
  EXPECT_TRUE(session.waiting().synchronize(ipc::TargetKind::kSession, 0));
  EXPECT_TRUE(can_be_written_out(*managed));
}

TEST_F(LaunchTest, ManyParametersComeInPages) {
  constexpr std::uint32_t kCount = ipc::ParameterReply::kMost + 5;
  ipc::FunctionReply info{};
  info.parameter_count = kCount;
  info.parameter_bytes = kCount * 4;
  engine.answer(ipc::CommandType::kFunctionGet, info);
  engine.handle(ipc::CommandType::kFunctionParameters, [&](const ipc::Command& command) {
    const auto first = command.as<ipc::FunctionParameters>()->first;
    ipc::ParameterReply page{};
    page.count = std::min(kCount - first, ipc::ParameterReply::kMost);
    for (std::uint32_t i = 0; i < page.count; ++i) page.parameters[i] = {(first + i) * 4, 4};
    engine.reply(command, page);
  });
  const auto function = engine.session->kernels().find(5, "kernel");
  ASSERT_TRUE(function) << function.error().message;
  ASSERT_EQ((*function)->parameters.size(), kCount);
  EXPECT_EQ((*function)->parameters.back().first, (kCount - 1) * 4);
}

TEST_F(LaunchTest, ALayoutThatLeavesItsBlockIsRefused) {
  ipc::FunctionReply info{};
  info.parameter_count = 1;
  info.parameter_bytes = 8;
  engine.answer(ipc::CommandType::kFunctionGet, info);
  ipc::ParameterReply page{};
  page.count = 1;
  page.parameters[0] = {4, 8};
  engine.answer(ipc::CommandType::kFunctionParameters, page);
  const auto function = engine.session->kernels().find(5, "kernel");
  ASSERT_FALSE(function);
  EXPECT_EQ(function.error().code, ErrorCode::kProtocol);
}

TEST_F(LaunchTest, ABigModuleComesInChunksWithoutGaps) {
  Image image{ImageKind::kPtx, 90, std::vector<std::byte>(200'000)};
  for (std::size_t i = 0; i < image.bytes.size(); ++i) image.bytes[i] = std::byte(i % 251);
  std::vector<std::byte> arrived;
  engine.handle(ipc::CommandType::kModuleLoad, [&](const ipc::Command& command) {
    std::span<const std::byte> chunk;
    const auto load = command.as<ipc::ModuleLoad>(&chunk);
    EXPECT_EQ(load->offset, arrived.size());
    EXPECT_EQ(load->total_bytes, image.bytes.size());
    EXPECT_EQ(load->image_kind, ipc::kImagePtx);
    arrived.insert(arrived.end(), chunk.begin(), chunk.end());
    const bool last = arrived.size() == image.bytes.size();
    EXPECT_EQ(command.header.reply_slot != ipc::kNoReply, last);
    if (last) engine.reply(command);
  });
  const auto module = engine.session->modules().load(image);
  ASSERT_TRUE(module) << module.error().message;
  EXPECT_NE(*module, 0u);
  EXPECT_EQ(arrived, image.bytes);
}

TEST_F(LaunchTest, AModuleIsSentAgainWhereTheEngineHasLostAPartOfIt) {
  const Image image{ImageKind::kElf, 90, std::vector<std::byte>(50'000)};
  int answers = 0;
  std::vector<ipc::ModuleLoad> chunks;
  engine.handle(ipc::CommandType::kModuleLoad, [&](const ipc::Command& command) {
    chunks.push_back(*command.as<ipc::ModuleLoad>());
    if (command.header.reply_slot == ipc::kNoReply) return;
    if (++answers < 3) return engine.reply(command, ipc::OfferReply{0, 0});
    engine.reply(command);
  });
  const auto module = engine.session->modules().load(image);
  ASSERT_TRUE(module) << module.error().message;
  ASSERT_EQ(chunks.size(), 6u);
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    EXPECT_EQ(chunks[i].module, *module);
    EXPECT_EQ(chunks[i].offset == 0, i % 2 == 0);
  }
}

TEST_F(LaunchTest, ATensorMapComesFromTheDaemon) {
  engine.handle(ipc::CommandType::kTensorMapEncode, [&](const ipc::Command& command) {
    TensorMap map;
    map.bytes[127] = std::byte(command.as<TensorMapSpec>()->box[4]);
    engine.reply(command, map);
  });
  TensorMapSpec spec;
  spec.rank = 5;
  spec.box[4] = 8;
  const auto map = engine.session->kernels().encode_tensor_map(spec);
  ASSERT_TRUE(map);
  EXPECT_EQ(map->bytes[127], std::byte{8});
  spec.rank = 6;
  EXPECT_EQ(engine.session->kernels().encode_tensor_map(spec).error().code,
            ErrorCode::kInvalidValue);
}

TEST_F(LaunchTest, ABigImageIsOfferedAndSentOnlyIfItIsNotKnown) {
  Image image{ImageKind::kElf, 90, std::vector<std::byte>(ipc::kLeastOffered, std::byte{1})};
  Session& session = *engine.session;
  ASSERT_TRUE(session.modules().load(image));
  EXPECT_EQ(engine.all(ipc::CommandType::kModuleLoad).size(), 2u);
  const auto offered = engine.wait_for(ipc::CommandType::kModuleOffer).as<ipc::ModuleOffer>();
  EXPECT_EQ(offered->image_kind, ipc::kImageElf);
  EXPECT_EQ(std::memcmp(offered->digest, digest_of(image.bytes).data(), 32), 0);
  engine.answer(ipc::CommandType::kModuleOffer, ipc::OfferReply{1, 0});
  const auto module = session.modules().load(image);
  ASSERT_TRUE(module);
  EXPECT_EQ(engine.all(ipc::CommandType::kModuleOffer)[1].as<ipc::ModuleOffer>()->module, *module);
  EXPECT_EQ(engine.all(ipc::CommandType::kModuleLoad).size(), 2u) << "no byte of it";
  image.bytes.pop_back();
  ASSERT_TRUE(session.modules().load(image));
  EXPECT_EQ(engine.all(ipc::CommandType::kModuleOffer).size(), 2u) << "a small one is just sent";
}

}  // namespace
}  // namespace slate::client
