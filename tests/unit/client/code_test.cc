#include "client/session/code.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <thread>

#include "tests/unit/client/fake_engine.h"
#include "tests/unit/client/fatbin_files.h"

namespace slate::client {
namespace {

using ipc::CommandType;

/// A registered fat binary with one kernel and one variable.
class CodeTest : public ::testing::Test {
 protected:
  CodeTest() {
    container = load_fatbin("zstd");
    wrapper.data = container.data();
    binary = code.add_binary(&wrapper);
    code.add_kernel(binary, &host_function, "_Z5scalePffi");
    code.add_variable(binary, &host_variable, "counter", 64);
    engine.answer(CommandType::kFunctionGet, ipc::FunctionReply{});
    engine.answer(CommandType::kGlobalGet, ipc::GlobalReply{0x9000, 64});
  }

  FakeEngine engine;
  std::vector<std::byte> container;
  FatBinaryWrapper wrapper;
  Code code;
  FatBinary* binary = nullptr;
  char host_function = 0, host_variable = 0, stranger = 0;
};

TEST_F(CodeTest, NothingIsSentBeforeItIsUsed) {
  EXPECT_EQ(code.find_kernel(&stranger), nullptr);
  Kernel* kernel = code.find_kernel(&host_function);
  ASSERT_NE(kernel, nullptr);
  EXPECT_EQ(code.find_kernel(kernel), kernel) << "a kernel's handle is as good as its function";
  ASSERT_TRUE(engine.session->waiting().synchronize(ipc::TargetKind::kSession, 0));
  EXPECT_TRUE(engine.all(CommandType::kModuleLoad).empty());
}

TEST_F(CodeTest, AKernelLoadsItsBinaryOnceAPerSession) {
  Kernel* kernel = code.find_kernel(&host_function);
  const auto first = code.function(*engine.session, *kernel);
  ASSERT_TRUE(first) << first.error().message;
  EXPECT_EQ(*code.function(*engine.session, *kernel), *first);
  // The text that its forms are made from, and the program's own machine code.
  const auto images = engine.all(CommandType::kModuleLoad);
  ASSERT_EQ(images.size(), 2u);
  const auto source = images[0].as<ipc::ModuleLoad>(), own = images[1].as<ipc::ModuleLoad>();
  EXPECT_EQ(source->image_kind, ipc::kImageSource);
  EXPECT_EQ(images[0].header.reply_slot, ipc::kNoReply);
  EXPECT_EQ(own->image_kind, ipc::kImageElf);
  EXPECT_EQ(own->module, source->module);
  EXPECT_EQ(engine.all(CommandType::kFunctionGet).size(), 1u);
  std::span<const std::byte> name;
  const ipc::Command sent = engine.wait_for(CommandType::kFunctionGet);
  ASSERT_TRUE(sent.as<ipc::FunctionGet>(&name));
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(name.data()), name.size()), "_Z5scalePffi");

  Session second(std::move(ipc::make_channel_pair(test_device()).client), 2);
  EXPECT_FALSE(code.function(second, *kernel)) << "the old session's function is not this one's";
}

TEST_F(CodeTest, AVariableIsFoundAndItsRangeKnown) {
  const auto place = code.place(*engine.session, *code.find_variable(&host_variable));
  ASSERT_TRUE(place);
  EXPECT_EQ(place->address, 0x9000u);
  EXPECT_TRUE(engine.session->copies().covers(Place::on_device(0x9000, 64), {64, 1}));
}

TEST_F(CodeTest, ALibrarysVariableIsKnownOnceItIsFound) {
  engine.handle(CommandType::kGlobalGet, [this](const ipc::Command& command) {
    engine.channel->reply_error(command.header.reply_slot, command.header.reply_sequence,
                                {ErrorCode::kSymbolNotFound, "missing"});
  });
  FatBinary* const library = code.add_library(*choose_image(container, 90));
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 300; ++i) {
        const auto place = code.library_variable(*engine.session, *library, "counter");
        if (place || place.error().code != ErrorCode::kSymbolNotFound) ++wrong;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  engine.answer(CommandType::kGlobalGet, ipc::GlobalReply{0x9000, 64});
  ASSERT_TRUE(code.library_variable(*engine.session, *library, "counter"));
  const std::size_t asked = engine.all(CommandType::kGlobalGet).size();
  EXPECT_EQ(code.library_variable(*engine.session, *library, "counter")->address, 0x9000u);
  EXPECT_EQ(engine.all(CommandType::kGlobalGet).size(), asked);
}

TEST_F(CodeTest, VariablesOfLoadedModulesAreFoundWhenAskedForAll) {
  code.place_all(*engine.session);
  EXPECT_FALSE(engine.session->memory().table().find(0x9000)) << "the module is not loaded";
  ASSERT_TRUE(code.function(*engine.session, *code.find_kernel(&host_function)));
  code.place_all(*engine.session);
  EXPECT_TRUE(engine.session->memory().table().find(0x9000));
}

TEST_F(CodeTest, RemovingABinaryForgetsAndUnloadsIt) {
  Kernel* kernel = code.find_kernel(&host_function);
  ASSERT_TRUE(code.function(*engine.session, *kernel));
  ASSERT_TRUE(code.place(*engine.session, *code.find_variable(&host_variable)));
  code.remove_binary(binary, engine.session.get());
  EXPECT_EQ(code.find_kernel(&host_function), nullptr);
  EXPECT_EQ(code.find_kernel(kernel), nullptr);
  EXPECT_EQ(code.find_variable(&host_variable), nullptr);
  EXPECT_FALSE(engine.session->memory().table().find(0x9000));
  EXPECT_EQ(engine.wait_for(CommandType::kModuleUnload).as<ipc::IdCommand>()->id,
            engine.wait_for(CommandType::kModuleLoad).as<ipc::ModuleLoad>()->module);
  EXPECT_EQ(code.function(*engine.session, *kernel).error().code, ErrorCode::kInvalidHandle);
}

TEST_F(CodeTest, CodeThatTheDeviceRefusesIsSentOnceAPerSession) {
  engine.handle(CommandType::kModuleLoad, [&](const ipc::Command& command) {
    if (command.header.reply_slot == ipc::kNoReply) return;
    engine.channel->reply_error(command.header.reply_slot, command.header.reply_sequence,
                                {ErrorCode::kInvalidPtx, "line 3"});
  });
  Kernel* kernel = code.find_kernel(&host_function);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(code.function(*engine.session, *kernel).error().code, ErrorCode::kInvalidPtx);
  }
  EXPECT_EQ(engine.all(CommandType::kModuleLoad).size(), 2u) << "its source, and itself";
}

TEST_F(CodeTest, WantOfMemoryIsNotHeldAgainstTheCode) {
  // Shared, as the engine copies what it is given to do.
  const auto full = std::make_shared<bool>(true);
  engine.handle(CommandType::kModuleLoad, [this, full](const ipc::Command& command) {
    if (command.header.reply_slot == ipc::kNoReply) return;
    if (!std::exchange(*full, false)) return engine.reply(command);
    engine.channel->reply_error(command.header.reply_slot, command.header.reply_sequence,
                                {ErrorCode::kOutOfMemory, "full"});
  });
  Kernel* kernel = code.find_kernel(&host_function);
  EXPECT_EQ(code.function(*engine.session, *kernel).error().code, ErrorCode::kOutOfMemory);
  EXPECT_TRUE(code.function(*engine.session, *kernel));
}

TEST_F(CodeTest, ManagedVariablesArePlacedBeforeTheirModuleComes) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ThreadSanitizer has the addresses for itself that a device would name";
#endif
  constexpr std::uint64_t kFree = 0x5100'0000'0000;
  engine.give_memory_at(kFree);
  void* first = nullptr;
  void* second = nullptr;
  code.add_managed(binary, &first, "counter", 4);
  code.add_managed(binary, &second, "table", 4096);
  ASSERT_TRUE(code.load(*engine.session, *binary));
  const auto placed = engine.all(CommandType::kVariablePlace);
  ASSERT_EQ(placed.size(), 2u);
  std::span<const std::byte> name;
  const auto place = placed[1].as<ipc::VariablePlace>(&name);
  EXPECT_EQ(place->address, reinterpret_cast<std::uintptr_t>(second));
  EXPECT_EQ(std::memcmp(name.data(), "table", name.size()), 0);
  EXPECT_EQ(code.find_managed(*engine.session, place->address)->bytes, 4096u);
  static_cast<int*>(first)[0] = 42;
  code.detach_managed(engine.session.get());
  EXPECT_NE(reinterpret_cast<std::uintptr_t>(first), kFree);
  EXPECT_EQ(static_cast<int*>(first)[0], 42) << "plain memory has the contents";
}

TEST_F(CodeTest, ManagedVariablesWithoutADaemonsMemoryArePlainOnes) {
  engine.handle(CommandType::kHostAllocate, [&](const ipc::Command& command) {
    engine.channel->reply_error(command.header.reply_slot, command.header.reply_sequence,
                                {ErrorCode::kOutOfMemory, "full"});
  });
  void* variable = nullptr;
  code.add_managed(binary, &variable, "counter", 4);
  EXPECT_EQ(code.load(*engine.session, *binary).error().code, ErrorCode::kOutOfMemory);
  code.detach_managed(nullptr);
  ASSERT_NE(variable, nullptr);
  EXPECT_EQ(*static_cast<int*>(variable), 0);
}

}  // namespace
}  // namespace slate::client
