// The simulated device as its users see it: modules, launches, memory and the open_device strings.
#include <sys/mman.h>
#include <unistd.h>

#include <future>

#include "device/device.h"
#include "tests/unit/sim_device/sim_fixture.h"

namespace slate::sim {
namespace {

class SimDeviceTest : public SimFixture {
 protected:
  void SetUp() override { open("sms=4,memory=64M,threads=2"); }

  Result<device::Module> try_load(std::string_view ptx) {
    return device_->load_module(device::ImageKind::kPtx, std::as_bytes(std::span(ptx)));
  }

  ErrorCode launch_code(device::Dim3 grid, device::Dim3 block, std::uint32_t shared = 0) {
    const device::Address counter = word(0);
    device::LaunchSpec spec{
        function("count"), grid, block, shared, std::as_bytes(std::span(&counter, 1)), arena_, {}};
    const auto launched = device_->launch(spec, stream_);
    return launched ? ErrorCode::kNone : launched.error().code;
  }
};

TEST_F(SimDeviceTest, VectorAddAdds) {
  constexpr std::uint32_t kCount = 10'000;
  std::vector<float> a(kCount);
  std::vector<float> b(kCount);
  std::vector<float> sum(kCount);
  for (std::uint32_t i = 0; i < kCount; ++i) {
    a[i] = static_cast<float>(i);
    b[i] = 0.5f * static_cast<float>(i);
    sum[i] = a[i] + b[i];
  }
  write(word(0), a);
  write(word(kCount), b);
  ASSERT_TRUE(launch(stream_, "vector_add", {40, 1, 1}, {256, 1, 1}, word(0), word(kCount),
                     word(2 * kCount), kCount));
  ASSERT_TRUE(finish(stream_));
  EXPECT_EQ(read<float>(word(2 * kCount), kCount), sum);
  EXPECT_EQ(read<float>(word(3 * kCount), 1)[0], 0.0f);
}

TEST_F(SimDeviceTest, ReductionWithBarriersAndAtomicsIsRightUnderEverySchedule) {
  for (const char* settings : {"sms=4,memory=64M,threads=2", "sms=2,memory=64M,seed=1",
                               "sms=3,memory=64M,seed=2,quantum=1", "sms=1,memory=64M,quantum=3"}) {
    open(settings);
    std::vector<std::uint32_t> values(64 * 256);
    std::uint32_t sum = 0;
    for (std::uint32_t i = 0; i < values.size(); ++i) sum += values[i] = i * 7 + 1;
    write(word(16), values);
    ASSERT_TRUE(launch(stream_, "reduce", {64, 1, 1}, {256, 1, 1}, word(16), word(0)));
    ASSERT_TRUE(finish(stream_));
    EXPECT_EQ(read<std::uint32_t>(word(0), 1)[0], sum) << settings;
  }
}

TEST_F(SimDeviceTest, EveryThreadOfALargeGridRunsOnce) {
  ASSERT_TRUE(launch(stream_, "count", {5, 30, 20}, {8, 4, 3}, word(0)));
  ASSERT_TRUE(finish(stream_));
  EXPECT_EQ(read<std::uint32_t>(word(0), 1)[0], 3000u * 96u);
}

TEST_F(SimDeviceTest, StatisticsCountThreadInstructions) {
  ASSERT_TRUE(launch(stream_, "count", {10, 1, 1}, {33, 1, 1}, word(0)));
  ASSERT_TRUE(finish(stream_));
  std::lock_guard lock(statistics_mutex_);
  ASSERT_EQ(statistics_.size(), 1u);
  EXPECT_EQ(statistics_[0].function, "count");
  EXPECT_EQ(statistics_[0].blocks, 10u);
  EXPECT_EQ(statistics_[0].thread_instructions, 10u * 33u * 3u);  // ld, red, ret
}

TEST_F(SimDeviceTest, OccupancyIsWhatBlocksArePlacedBy) {
  const device::Function counting = function("count");
  for (const std::uint32_t threads : {32u, 256u, 1024u}) {
    const auto info = device_->function_info(counting);
    ASSERT_TRUE(info);
    const auto blocks = device_->max_blocks_per_sm(counting, threads, 4096);
    ASSERT_TRUE(blocks) << blocks.error().message;
    EXPECT_EQ(*blocks, block_cost(*info, threads, 4096).occupancy) << threads;
    EXPECT_GT(*blocks, 0u);
  }
  for (const std::uint32_t threads : {0u, 1025u}) {
    const auto refused = device_->max_blocks_per_sm(counting, threads, 0);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::kInvalidConfiguration);
  }
}

TEST_F(SimDeviceTest, ThereIsNothingToCompilePtxTo) {
  const auto code = device_->compile(kKernels);
  ASSERT_FALSE(code);
  EXPECT_EQ(code.error().code, ErrorCode::kNotSupported);
  const auto identity = device_->compiler_identity();
  ASSERT_FALSE(identity);
  EXPECT_EQ(identity.error().code, ErrorCode::kNotSupported);
}

TEST_F(SimDeviceTest, KernelCannotTouchTheArenaOfAnother) {
  const device::AddressRange other = make_arena();
  ASSERT_TRUE(device_->fill(other.base, 0, 7, {4, 1}, stream_));
  ASSERT_TRUE(finish(stream_));
  for (const char* name : {"store", "load"}) {
    const device::Stream stream = *device_->create_stream(0);
    const bool is_store = std::string_view(name) == "store";
    ASSERT_TRUE(is_store ? launch(stream, name, {1, 1, 1}, {1, 1, 1}, other.base, 1u)
                         : launch(stream, name, {1, 1, 1}, {1, 1, 1}, other.base, word(0)));
    EXPECT_EQ(finish(stream).error().code, ErrorCode::kIllegalAddress) << name;
  }
  EXPECT_EQ(read<std::uint32_t>(other.base, 1)[0], 0x07070707u);
  EXPECT_EQ(read<std::uint32_t>(word(0), 1)[0], 0u);
}

TEST_F(SimDeviceTest, KernelCannotTouchTheVariablesOfAnotherModule) {
  const device::AddressRange theirs = *device_->find_global(load(kKernels), "table");
  ASSERT_TRUE(launch(stream_, "store", {1, 1, 1}, {1, 1, 1}, theirs.base, 1u));
  EXPECT_EQ(finish(stream_).error().code, ErrorCode::kIllegalAddress);
}

TEST_F(SimDeviceTest, KernelCannotTouchItsArenaAfterItWasUnmapped) {
  ASSERT_TRUE(device_->unmap(arena_));
  ASSERT_TRUE(launch(stream_, "store", {1, 1, 1}, {1, 1, 1}, word(0), 1u));
  EXPECT_EQ(finish(stream_).error().code, ErrorCode::kIllegalAddress);
}

TEST_F(SimDeviceTest, VariablesHoldTheirInitialValuesAndOneAnothersAddresses) {
  ASSERT_TRUE(launch(stream_, "use_variables", {1, 1, 1}, {1, 1, 1}, word(0)));
  ASSERT_TRUE(finish(stream_));
  EXPECT_EQ(read<std::uint32_t>(word(0), 1)[0], 99u);
}

TEST_F(SimDeviceTest, HostCopiesReachVariables) {
  const auto table = device_->find_global(module_, "table");
  const auto scale = device_->find_global(module_, "scale");
  ASSERT_TRUE(table && scale);
  EXPECT_EQ(table->bytes, 16u);
  EXPECT_EQ(read<std::uint32_t>(table->base, 4), (std::vector<std::uint32_t>{11, 22, 33, 44}));
  write<std::uint32_t>(scale->base, {10});
  write<std::uint32_t>(table->base + 8, {5});
  ASSERT_TRUE(launch(stream_, "use_variables", {1, 1, 1}, {1, 1, 1}, word(0)));
  ASSERT_TRUE(finish(stream_));
  EXPECT_EQ(read<std::uint32_t>(word(0), 1)[0], 50u);
}

TEST_F(SimDeviceTest, UnloadedModuleLeavesNothingBehind) {
  const std::uint64_t before = *device_->free_memory();
  const device::Module module = load(kKernels);
  const device::Function found = *device_->find_function(module, "count");
  EXPECT_LT(*device_->free_memory(), before);
  device_->unload_module(module);
  EXPECT_EQ(*device_->free_memory(), before);
  EXPECT_EQ(device_->function_info(found).error().code, ErrorCode::kInvalidHandle);
  EXPECT_EQ(device_->find_function(module, "count").error().code, ErrorCode::kInvalidHandle);
  EXPECT_EQ(device_->find_global(module, "table").error().code, ErrorCode::kInvalidHandle);
}

TEST_F(SimDeviceTest, UnknownNamesAreSymbolsNotFound) {
  EXPECT_EQ(device_->find_function(module_, "nobody").error().code, ErrorCode::kSymbolNotFound);
  EXPECT_EQ(device_->find_global(module_, "nothing").error().code, ErrorCode::kSymbolNotFound);
}

TEST_F(SimDeviceTest, AFunctionIsTheSameForAllWhoAskAtOnce) {
  for (int round = 0; round < 20; ++round) {
    const device::Module module = load(kKernels);
    std::vector<std::future<Result<device::Function>>> found;
    for (int i = 0; i < 4; ++i) {
      found.push_back(
          std::async(std::launch::async, [&] { return device_->find_function(module, "count"); }));
    }
    const auto first = found.front().get();
    ASSERT_TRUE(first);
    for (std::size_t i = 1; i < found.size(); ++i) EXPECT_EQ(*found[i].get(), *first);
    device_->unload_module(module);
  }
}

TEST_F(SimDeviceTest, FunctionIsTheSameWhenAskedForAgain) {
  EXPECT_EQ(function("count"), function("count"));
  EXPECT_NE(function("count"), function("store"));
}

TEST_F(SimDeviceTest, FunctionTellsItsParametersAndSharedMemory) {
  const auto info = device_->function_info(function("vector_add"));
  ASSERT_TRUE(info);
  ASSERT_EQ(info->parameters.size(), 4u);
  EXPECT_EQ(info->parameters[3].offset, 24u);
  EXPECT_EQ(info->parameters[3].size, 4u);
  EXPECT_EQ(info->max_threads_per_block, 1024u);
  EXPECT_EQ(device_->function_info(function("reduce"))->static_shared_bytes, 1024u);
}

TEST_F(SimDeviceTest, MachineCodeIsRefusedWithAReason) {
  const std::string_view image =
      "\x7f"
      "ELF";
  const auto module =
      device_->load_module(device::ImageKind::kCubin, std::as_bytes(std::span(image)));
  ASSERT_FALSE(module);
  EXPECT_EQ(module.error().code, ErrorCode::kNoKernelImage);
  EXPECT_NE(module.error().message.find("PTX"), std::string::npos);
}

TEST_F(SimDeviceTest, PtxForALaterDeviceIsNoImageForThisOne) {
  const auto code = [this](const std::string& target) {
    const auto module = try_load(".version 9.0\n.target " + target + "\n.address_size 64\n");
    return module ? ErrorCode::kNone : module.error().code;
  };
  EXPECT_EQ(code("sm_75"), ErrorCode::kNone);
  EXPECT_EQ(code("sm_90"), ErrorCode::kNone);
  EXPECT_EQ(code("sm_90a"), ErrorCode::kNone);
  EXPECT_EQ(code("sm_100"), ErrorCode::kNoKernelImage);
  EXPECT_EQ(code("sm_100f"), ErrorCode::kNoKernelImage);
  open("memory=64M,cc=10.3");
  EXPECT_EQ(code("sm_90"), ErrorCode::kNone);
  EXPECT_EQ(code("sm_90a"), ErrorCode::kNoKernelImage);
  EXPECT_EQ(code("sm_100a"), ErrorCode::kNoKernelImage);
  EXPECT_EQ(code("sm_100f"), ErrorCode::kNone);
}

TEST_F(SimDeviceTest, BrokenPtxIsInvalid) {
  EXPECT_EQ(try_load("this is not PTX").error().code, ErrorCode::kInvalidPtx);
  EXPECT_EQ(try_load(".version 9.0\n.target sm_90\n.address_size 64\n"
                     ".global .u64 p = nowhere;\n")
                .error()
                .code,
            ErrorCode::kInvalidPtx);
}

TEST_F(SimDeviceTest, VariablesLargerThanTheDeviceAreOutOfMemory) {
  const std::uint64_t before = *device_->free_memory();
  EXPECT_EQ(try_load(".version 9.0\n.target sm_90\n.address_size 64\n"
                     ".global .b8 big[1000000000];\n")
                .error()
                .code,
            ErrorCode::kOutOfMemory);
  EXPECT_EQ(*device_->free_memory(), before);
}

TEST_F(SimDeviceTest, LaunchesThatCannotRunAreRefusedInCudasCategories) {
  EXPECT_EQ(launch_code({1, 1, 1}, {1024, 1, 1}), ErrorCode::kNone);
  EXPECT_EQ(launch_code({0, 1, 1}, {1, 1, 1}), ErrorCode::kInvalidConfiguration);
  EXPECT_EQ(launch_code({1, 1, 1}, {2048, 1, 1}), ErrorCode::kInvalidConfiguration);
  EXPECT_EQ(launch_code({1, 1, 1}, {1, 1, 1}, kSharedPerBlock + 1), ErrorCode::kInvalidValue);
  ASSERT_TRUE(device_->set_max_dynamic_shared(function("count"), kSharedPerBlockOptIn));
  EXPECT_EQ(launch_code({1, 1, 1}, {1, 1, 1}, kSharedPerBlockOptIn), ErrorCode::kNone);
  EXPECT_EQ(
      device_->set_max_dynamic_shared(function("count"), kSharedPerBlockOptIn + 1).error().code,
      ErrorCode::kInvalidValue);
  EXPECT_TRUE(finish(stream_));
}

TEST_F(SimDeviceTest, AttributesOfAFunctionAreKeptOrRefused) {
  const auto function = this->function("count");
  EXPECT_FALSE(device_->function_info(function)->non_portable_clusters);
  EXPECT_TRUE(device_->set_attribute(function, FunctionAttribute::kNonPortableClusters, 1));
  EXPECT_TRUE(device_->function_info(function)->non_portable_clusters);
  EXPECT_TRUE(device_->set_attribute(function, FunctionAttribute::kCarveout, 50));
  EXPECT_TRUE(device_->set_attribute(function, FunctionAttribute::kMaxDynamicShared, 50'000));
  EXPECT_EQ(device_->function_info(function)->max_dynamic_shared_bytes, 50'000u);
  for (const auto& [attribute, value] :
       {std::pair(FunctionAttribute::kMaxDynamicShared, -1),
        std::pair(FunctionAttribute::kClusterWidth, 2), std::pair(FunctionAttribute{7}, 0)}) {
    EXPECT_EQ(device_->set_attribute(function, attribute, value).error().code,
              ErrorCode::kInvalidValue);
  }
}

TEST_F(SimDeviceTest, AKernelThatRequiresAShapeOfBlocksIsLaunchedWithNoOther) {
  module_ = load(R"(.version 9.0
.target sm_90
.address_size 64
.visible .entry shaped(.param .u64 unused) .reqntid 32, 2 { ret; }
)");
  for (const device::Dim3 block : {device::Dim3{32, 2, 1}, {32, 1, 1}, {64, 1, 1}, {2, 32, 1}}) {
    const auto launched = launch(stream_, "shaped", {1, 1, 1}, block, word(0));
    const bool fits = block == device::Dim3{32, 2, 1};
    EXPECT_EQ(launched ? ErrorCode::kNone : launched.error().code,
              fits ? ErrorCode::kNone : ErrorCode::kInvalidConfiguration);
  }
  EXPECT_TRUE(device_->max_blocks_per_sm(function("shaped"), 32, 0)) << "only threads are told";
  EXPECT_TRUE(finish(stream_));
}

TEST_F(SimDeviceTest, LaunchNeedsAllItsParametersAndARealArena) {
  device::LaunchSpec spec;
  spec.function = function("count");
  spec.arena = arena_;
  const std::uint32_t half = 0;
  spec.parameters = std::as_bytes(std::span(&half, 1));
  EXPECT_EQ(device_->launch(spec, stream_).error().code, ErrorCode::kInvalidValue);
  const device::Address counter = word(0);
  spec.parameters = std::as_bytes(std::span(&counter, 1));
  EXPECT_TRUE(device_->launch(spec, stream_));
  spec.arena = {4096, 4096};
  EXPECT_EQ(device_->launch(spec, stream_).error().code, ErrorCode::kInvalidValue);
  spec.function = device::Function{12345};
  EXPECT_EQ(device_->launch(spec, stream_).error().code, ErrorCode::kInvalidHandle);
}

TEST_F(SimDeviceTest, MemoryRunsOutAndComesBack) {
  const std::uint64_t bytes = *device_->free_memory();
  const device::AddressRange range{*device_->reserve(bytes + kChunkBytes), bytes + kChunkBytes};
  EXPECT_EQ(device_->map(range).error().code, ErrorCode::kOutOfMemory);
  ASSERT_TRUE(device_->map({range.base, bytes}));
  EXPECT_EQ(*device_->free_memory(), 0u);
  device_->unreserve(range);
  EXPECT_EQ(*device_->free_memory(), bytes);
}

TEST_F(SimDeviceTest, CopiesBeyondMappedMemoryAreRefused) {
  std::vector<char> host(64);
  const device::Address end = arena_.base + arena_.bytes;
  const auto code = [](const Result<void>& result) {
    return result ? ErrorCode::kNone : result.error().code;
  };
  EXPECT_EQ(code(device_->copy(Place::on_device(end - 63), Place::on_host(host.data()), {64, 1},
                               stream_)),
            ErrorCode::kInvalidValue);
  EXPECT_EQ(code(device_->copy(Place::on_host(host.data()), Place::on_device(end - 63), {64, 1},
                               stream_)),
            ErrorCode::kInvalidValue);
  EXPECT_EQ(
      code(device_->copy(Place::on_device(end - 64), Place::on_device(end), {64, 1}, stream_)),
      ErrorCode::kInvalidValue);
  EXPECT_EQ(
      code(device_->copy(Place::on_device(end), Place::on_device(end - 64), {64, 1}, stream_)),
      ErrorCode::kInvalidValue);
  EXPECT_EQ(code(device_->fill(0, 0, 1, {64, 1}, stream_)), ErrorCode::kInvalidValue);
  EXPECT_EQ(code(device_->fill(arena_.base, 1 << 20, 1, {4, 1000}, stream_)),
            ErrorCode::kInvalidValue);
  EXPECT_EQ(
      code(device_->copy(Place::on_device(word(0)), Place::on_host(nullptr), {64, 1}, stream_)),
      ErrorCode::kInvalidValue);
  EXPECT_TRUE(finish(stream_));
}

TEST_F(SimDeviceTest, MemoryUnmappedBeforeItsCopyFaultsTheStream) {
  const device::AddressRange other = make_arena();
  ASSERT_TRUE(launch(stream_, "meet", {1, 1, 1}, {1, 1, 1}, word(0), word(1)));
  ASSERT_TRUE(device_->fill(other.base, 0, 1, {4, 1}, stream_));
  ASSERT_TRUE(device_->unmap(other));
  const device::Stream opener = *device_->create_stream(0);
  ASSERT_TRUE(device_->fill(word(1), 0, 1, {4, 1}, opener));
  EXPECT_EQ(finish(stream_).error().code, ErrorCode::kIllegalAddress);
}

TEST_F(SimDeviceTest, OthersAreToldOfTheCallsThatStallAGpu) {
  int begun = 0;
  int ended = 0;
  device_->set_stall_hooks({[&] { ++begun; }, [&] { ++ended; }});
  const auto stalls = [&](const auto& call) {
    begun = ended = 0;
    call();
    EXPECT_EQ(begun, ended);
    return begun;
  };
  device::Array array{};
  device::Address shared = 0;
  const int fd = memfd_create("shared", 0);
  ASSERT_EQ(ftruncate(fd, 4096), 0);
  EXPECT_EQ(stalls([&] { make_arena(); }), 1);
  EXPECT_EQ(stalls([&] {
              array = *device_->create_array({{ChannelKind::kFloat, 32, 1, 0}, {8, 8, 0}, 0, 0});
            }),
            1);
  EXPECT_EQ(stalls([&] { device_->destroy_array(array); }), 0);
  EXPECT_EQ(stalls([&] { shared = *device_->map_host(fd, 4096, 0); }), 0);
  EXPECT_EQ(stalls([&] { device_->unmap_host({shared, 4096}); }), 1);
  device_->set_stall_hooks({});
  close(fd);
}

TEST_F(SimDeviceTest, HostMemoryIsRegisteredOnce) {
  std::vector<char> host(64);
  EXPECT_TRUE(device_->register_host(host.data(), host.size()));
  EXPECT_FALSE(device_->register_host(host.data(), host.size()));
  device_->unregister_host(host.data());
  EXPECT_TRUE(device_->register_host(host.data(), host.size()));
  EXPECT_FALSE(device_->register_host(nullptr, 1));
}

TEST_F(SimDeviceTest, KernelsReachTheHostMemoryThatTheirLaunchNamesAndNoOther) {
  const int fd = ::memfd_create("slate-test", MFD_CLOEXEC);
  ASSERT_EQ(::ftruncate(fd, 8192), 0);
  const auto address = device_->map_host(fd, 8192, 0);
  ASSERT_TRUE(address) << address.error().message;
  const std::uint64_t before = *device_->free_memory();
  const auto store = [&](std::uint64_t to, bool named) {
    const std::uint32_t value = 77;
    std::byte parameters[12];
    std::memcpy(parameters, &to, 8);
    std::memcpy(parameters + 8, &value, 4);
    device::LaunchSpec spec;
    spec.function = function("store");
    spec.parameters = parameters;
    spec.arena = arena_;
    if (named)
      spec.host = std::make_shared<std::vector<device::AddressRange>>(
          std::vector<device::AddressRange>{{*address, 8192}});
    const device::Stream stream = *device_->create_stream(0);
    EXPECT_TRUE(device_->launch(spec, stream));
    const auto done = finish(stream);
    device_->destroy_stream(stream);
    return done;
  };
  EXPECT_TRUE(store(*address + 8188, true));
  std::uint32_t seen = 0;
  ASSERT_EQ(::pread(fd, &seen, 4, 8188), 4);
  EXPECT_EQ(seen, 77u);
  EXPECT_EQ(store(*address + 8192, true).error().code, ErrorCode::kIllegalAddress);
  EXPECT_EQ(store(*address, false).error().code, ErrorCode::kIllegalAddress);
  // The host's half of a copy may be there.
  const std::uint32_t back = 5;
  ASSERT_EQ(::pwrite(fd, &back, 4, 0), 4);
  ASSERT_TRUE(device_->copy(Place::on_device(word(0), 4),
                            Place::on_host(reinterpret_cast<void*>(*address), 4), {4, 1}, stream_));
  ASSERT_TRUE(finish(stream_));
  EXPECT_EQ(read<std::uint32_t>(word(0), 1)[0], 5u);
  // And so may the device's half, and a fill.
  ASSERT_TRUE(device_->fill(*address + 8, 4, 6, {4, 1}, stream_));
  ASSERT_TRUE(device_->copy(Place::on_device(word(0), 4), Place::on_device(*address + 8, 4), {4, 1},
                            stream_));
  ASSERT_TRUE(finish(stream_));
  EXPECT_EQ(read<std::uint32_t>(word(0), 1)[0], 0x06060606u);
  EXPECT_EQ(*device_->free_memory(), before) << "host memory is not the device's";
  const auto further = device_->map_host(fd, 4096, *address + (64 << 20));
  ASSERT_TRUE(further);
  EXPECT_GE(*further, *address + (64 << 20));
  device_->unmap_host({*further, 4096});
  device_->unmap_host({*address, 8192});
  ::close(fd);
}

TEST(OpenDeviceTest, SimStringsCarrySettings) {
  const auto device = device::open_device("sim:sms=3,memory=32M");
  ASSERT_TRUE(device) << device.error().message;
  EXPECT_STREQ((*device)->info().name, "slate sim (3 SMs)");
  EXPECT_EQ(*(*device)->free_memory(), 32u << 20);
}

TEST(OpenDeviceTest, OtherStringsAreRefusedWithTheirText) {
  for (const char* text : {"", "gpu", "simulator", "cuda:x", "cuda:-1", "sim:speed=9"}) {
    const auto device = device::open_device(text);
    ASSERT_FALSE(device) << text;
    EXPECT_EQ(device.error().code, ErrorCode::kInvalidValue) << text;
  }
}

TEST_F(SimDeviceTest, CodeOutOfProportionToItsTextIsRefused) {
  std::string text = ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry k()\n{\n";
  while (text.size() < 1 << 20) text += "x;";
  const auto module = try_load(text + "}\n");
  ASSERT_FALSE(module);
  EXPECT_EQ(module.error().code, ErrorCode::kLimit) << module.error().message;
  EXPECT_TRUE(module.error().message.starts_with("line ")) << module.error().message;
}

TEST_F(SimDeviceTest, AModulesRoomGrowsWithTheKernelsThatWereFound) {
  const std::uint64_t before = device_->host_bytes(module_);
  EXPECT_GT(before, std::string_view(kKernels).size());
  function("count");
  const std::uint64_t after = device_->host_bytes(module_);
  EXPECT_GT(after, before);
  function("count");
  EXPECT_EQ(device_->host_bytes(module_), after);
}

TEST_F(SimDeviceTest, ATableOfBranchesIsNotRepeatedWithoutEnd) {
  std::string text =
      ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry k()\n{\n.reg .b32 r;\n"
      "mov.b32 r, 0;\nl: ret;\nt: .branchtargets l";
  for (int i = 0; i < 40'000; ++i) text += ",l";
  text += ";\n";
  for (int i = 0; i < 20'000; ++i) text += "brx.idx r, t;\n";
  const auto found = device_->find_function(load(text + "}\n"), "k");
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, ErrorCode::kLimit) << found.error().message;
}

}  // namespace
}  // namespace slate::sim
