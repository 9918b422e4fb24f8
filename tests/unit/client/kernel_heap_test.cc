// The heap of malloc in kernels, as the session makes it. What kernels do with it: tests/unit/heap.
#include <gtest/gtest.h>

#include <mutex>
#include <vector>

#include "injector/link/heap.h"
#include "tests/unit/client/fake_engine.h"

namespace slate::client {
namespace {

using ipc::CommandType;

constexpr std::uint64_t kBase = std::uint64_t{1} << 40;
constexpr std::string_view kHead = ".version 8.0\n.target sm_90\n.address_size 64\n";
constexpr std::string_view kMalloc = ".extern .func (.param .b64 r) malloc(.param .b64 n);\n";

/// Device memory: a variable of 8 bytes for each module at its beginning, then allocations.
class KernelHeapTest : public ::testing::Test {
 protected:
  KernelHeapTest() {
    engine.handle(CommandType::kMemoryAllocate, [this](const ipc::Command& command) {
      const std::lock_guard lock(mutex);
      const std::uint64_t bytes = command.as<ipc::MemoryAllocate>()->bytes;
      if (bytes > room) {
        engine.channel->reply_error(command.header.reply_slot, command.header.reply_sequence,
                                    {ErrorCode::kOutOfMemory, "the session's memory is used up"});
        return;
      }
      allocated.push_back(kBase + used);
      used += (bytes + 255) / 256 * 256;
      engine.reply(command, ipc::AddressReply{allocated.back()});
    });
    engine.handle(CommandType::kGlobalGet, [this](const ipc::Command& command) {
      std::span<const std::byte> name;
      const auto get = *command.as<ipc::GlobalGet>(&name);
      EXPECT_EQ(std::string(reinterpret_cast<const char*>(name.data()), name.size()),
                ptx::kHeapVariable);
      engine.reply(command, ipc::GlobalReply{kBase + get.module * 8, 8});
    });
    engine.handle(CommandType::kCopyInline, [this](const ipc::Command& command) {
      std::span<const std::byte> bytes;
      const auto copy = *command.as<ipc::CopyInline>(&bytes);
      const std::lock_guard lock(mutex);
      std::memcpy(&memory[copy.address - kBase], bytes.data(), bytes.size());
    });
    engine.handle(CommandType::kCopy, [this](const ipc::Command& command) {
      const auto [to, from, box, stream] = *command.as<ipc::Copy>();
      const std::lock_guard lock(mutex);
      std::memcpy(engine.channel->staging(to.part).data() + to.address,
                  &memory[from.address - kBase], box.width);
      engine.channel->finish_staging(to.part, to.object);
    });
    engine.handle(CommandType::kFill, [this](const ipc::Command& command) {
      const auto fill = *command.as<ipc::Fill>();
      const std::lock_guard lock(mutex);
      std::memset(&memory[fill.to - kBase], static_cast<int>(fill.value), fill.width * fill.height);
    });
  }

  Result<std::uint64_t> load(std::string_view body) {
    const std::string text = std::string(kHead) + std::string(body);
    Image image;
    const auto bytes = std::as_bytes(std::span(text));
    image.bytes.assign(bytes.begin(), bytes.end());
    return session.modules().load(image);
  }
  Result<std::uint64_t> load_machine_code(std::string_view text) {
    Image image;
    image.kind = ImageKind::kElf;
    const auto bytes = std::as_bytes(std::span(text));
    image.bytes.assign(bytes.begin(), bytes.end());
    return session.modules().load(image);
  }
  template <typename T>
  T at(std::uint64_t address) {
    const std::lock_guard lock(mutex);
    T value;
    std::memcpy(&value, &memory[address - kBase], sizeof(value));
    return value;
  }
  template <typename T>
  void set(std::uint64_t address, const T& value) {
    const std::lock_guard lock(mutex);
    std::memcpy(&memory[address - kBase], &value, sizeof(value));
  }
  std::vector<std::uint64_t> all_allocated() {
    const std::lock_guard lock(mutex);
    return allocated;
  }
  void set_room(std::uint64_t bytes) {
    const std::lock_guard lock(mutex);
    room = bytes;
  }
  std::uint64_t heap_of(std::uint64_t module) { return at<std::uint64_t>(kBase + module * 8); }

  std::mutex mutex;  // guards what follows
  std::vector<std::byte> memory = std::vector<std::byte>(64 << 20, std::byte{0x5a});
  std::uint64_t used = 4096, room = 32 << 20;
  std::vector<std::uint64_t> allocated;
  FakeEngine engine;
  Session& session = *engine.session;
};

TEST_F(KernelHeapTest, ItIsMadeWithTheFirstModuleThatCallsMalloc) {
  EXPECT_EQ(session.heap().bytes(), 8u << 20);
  ASSERT_TRUE(load(".visible .entry k() { ret; }\n"));
  EXPECT_TRUE(all_allocated().empty());
  const auto first = load(kMalloc);
  const auto second = load(".extern .func free(.param .b64 p);\n");
  ASSERT_TRUE(first && second);
  ASSERT_EQ(all_allocated().size(), 1u);
  const std::uint64_t heap = all_allocated()[0];
  EXPECT_EQ(heap_of(*first), heap);
  EXPECT_EQ(heap_of(*second), heap);
  const ptx::HeapLayout layout = ptx::heap_layout(8 << 20);
  EXPECT_EQ(engine.wait_for(CommandType::kMemoryAllocate).as<ipc::MemoryAllocate>()->bytes,
            layout.bytes);
  const ptx::HeapHeader wanted = layout.header_at(heap);
  const auto header = at<ptx::HeapHeader>(heap);
  EXPECT_EQ(std::memcmp(&header, &wanted, sizeof(wanted)), 0);
  EXPECT_EQ(wanted.pages, 8192u);
  EXPECT_EQ(at<std::uint32_t>(heap + ptx::kHeapLastHint), 127u);
  set(heap + ptx::kHeapLastHint, 0U);
  {
    const std::lock_guard lock(mutex);
    EXPECT_EQ(std::count(&memory[heap - kBase + sizeof(wanted)],
                         &memory[heap - kBase + layout.book_bytes], std::byte{}),
              static_cast<std::ptrdiff_t>(layout.book_bytes - sizeof(wanted)));
  }
  // The program's calls do not reach it.
  EXPECT_FALSE(session.copies().covers(Place::on_device(wanted.base), {16}));
  EXPECT_EQ(session.memory().free(heap).error().code, ErrorCode::kInvalidValue);
}

TEST_F(KernelHeapTest, ASizeThatWasSetBeforeIsTaken) {
  ASSERT_TRUE(session.heap().set_bytes(1000));
  ASSERT_TRUE(session.heap().set_bytes(20 << 20));
  EXPECT_EQ(session.heap().bytes(), 20u << 20);
  EXPECT_EQ(session.heap().set_bytes(ptx::kMostHeapBytes + 1).error().code,
            ErrorCode::kInvalidValue);
  EXPECT_TRUE(all_allocated().empty());
  ASSERT_TRUE(load(kMalloc));
  EXPECT_EQ(at<ptx::HeapHeader>(all_allocated().at(0)).pages, 20u << 10);
}

TEST_F(KernelHeapTest, TheSizeChangesUntilMallocHasGivenSomething) {
  const auto first = load(kMalloc);
  const auto gone = load(kMalloc);
  ASSERT_TRUE(first && gone);
  ASSERT_TRUE(session.modules().unload(*gone));
  ASSERT_TRUE(session.heap().set_bytes(1 << 20));
  ASSERT_EQ(all_allocated().size(), 2u);
  EXPECT_EQ(heap_of(*first), all_allocated()[1]);
  EXPECT_EQ(heap_of(*gone), all_allocated()[0]) << "of a module that is no longer there";
  EXPECT_EQ(engine.wait_for(CommandType::kMemoryFree).as<ipc::MemoryFree>()->address,
            all_allocated()[0]);
  set(all_allocated()[1] + ptx::kHeapState, std::uint64_t{1} << 24);
  EXPECT_EQ(session.heap().set_bytes(2 << 20).error().code, ErrorCode::kInvalidValue);
  EXPECT_EQ(session.heap().bytes(), 1u << 20);
  EXPECT_EQ(heap_of(*first), all_allocated()[1]);
  EXPECT_EQ(all_allocated().size(), 2u);
}

TEST_F(KernelHeapTest, WithoutMemoryForItTheModuleIsNotLoadedThisTime) {
  set_room(1 << 20);
  const auto module = load(kMalloc);
  ASSERT_FALSE(module);
  EXPECT_EQ(module.error().code, ErrorCode::kOutOfMemory);
  EXPECT_NE(module.error().message.find("heap of malloc"), std::string::npos);
  EXPECT_TRUE(engine.all(CommandType::kModuleLoad).empty());
  set_room(32 << 20);
  EXPECT_TRUE(load(kMalloc));
  // Nor does a size for which there is none take the place of what there is.
  const std::uint64_t before = all_allocated().at(0);
  EXPECT_EQ(session.heap().set_bytes(40 << 20).error().code, ErrorCode::kOutOfMemory);
  EXPECT_EQ(session.heap().bytes(), 8u << 20);
  const auto second = load(kMalloc);
  ASSERT_TRUE(second);
  EXPECT_EQ(heap_of(*second), before);
}

TEST_F(KernelHeapTest, MachineCodeThatCallsMallocHasTheDriversHeap) {
  ASSERT_TRUE(
      load_machine_code("\x7f"
                        "ELF malloc"));
  EXPECT_TRUE(engine.all(CommandType::kLimitRaise).empty()) << "nobody asked for more";
  ASSERT_TRUE(session.heap().set_bytes(64 << 20));
  ASSERT_TRUE(
      load_machine_code("\x7f"
                        "ELF vprintf"));
  EXPECT_TRUE(engine.all(CommandType::kLimitRaise).empty());
  ASSERT_TRUE(
      load_machine_code("\x7f"
                        "ELF malloc"));
  const auto raised = *engine.wait_for(CommandType::kLimitRaise).as<ipc::LimitRaise>();
  EXPECT_EQ(raised.limit, 1u);
  EXPECT_EQ(raised.value, 64u << 20);
  EXPECT_TRUE(all_allocated().empty());
}

}  // namespace
}  // namespace slate::client
