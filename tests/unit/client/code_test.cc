#include "client/session/code.h"

#include <gtest/gtest.h>

#include "tests/unit/client/fake_engine.h"
#include "tests/unit/client/fatbin_files.h"

namespace slate::client {
namespace {

using ipc::CommandType;

struct Wrapper {
  std::uint32_t magic = 0x466243b1;
  std::uint32_t version = 1;
  const void* data = nullptr;
  const void* const* containers = nullptr;
};

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
  Wrapper wrapper;
  Code code;
  FatBinary* binary = nullptr;
  char host_function = 0, host_variable = 0, stranger = 0;
};

TEST_F(CodeTest, NothingIsSentBeforeItIsUsed) {
  EXPECT_EQ(code.find_kernel(&stranger), nullptr);
  Kernel* kernel = code.find_kernel(&host_function);
  ASSERT_NE(kernel, nullptr);
  EXPECT_EQ(code.find_kernel(kernel), kernel) << "a kernel's handle is as good as its function";
  ASSERT_TRUE(engine.session->synchronize(ipc::TargetKind::kSession, 0));
  EXPECT_TRUE(engine.all(CommandType::kModuleLoad).empty());
}

TEST_F(CodeTest, AKernelLoadsItsBinaryOnceAPerSession) {
  Kernel* kernel = code.find_kernel(&host_function);
  const auto first = code.function(*engine.session, *kernel);
  ASSERT_TRUE(first) << first.error().message;
  EXPECT_EQ(*code.function(*engine.session, *kernel), *first);
  EXPECT_EQ(engine.all(CommandType::kModuleLoad).size(), 1u);
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
  EXPECT_TRUE(engine.session->covers({0x9000, 64}, {64, 1}));
}

TEST_F(CodeTest, VariablesOfLoadedModulesAreFoundWhenAskedForAll) {
  code.place_all(*engine.session);
  EXPECT_FALSE(engine.session->memory().find(0x9000)) << "the module is not loaded";
  ASSERT_TRUE(code.function(*engine.session, *code.find_kernel(&host_function)));
  code.place_all(*engine.session);
  EXPECT_TRUE(engine.session->memory().find(0x9000));
}

TEST_F(CodeTest, RemovingABinaryForgetsAndUnloadsIt) {
  Kernel* kernel = code.find_kernel(&host_function);
  ASSERT_TRUE(code.function(*engine.session, *kernel));
  ASSERT_TRUE(code.place(*engine.session, *code.find_variable(&host_variable)));
  code.remove_binary(binary, engine.session.get());
  EXPECT_EQ(code.find_kernel(&host_function), nullptr);
  EXPECT_EQ(code.find_kernel(kernel), nullptr);
  EXPECT_EQ(code.find_variable(&host_variable), nullptr);
  EXPECT_FALSE(engine.session->memory().find(0x9000));
  EXPECT_EQ(engine.wait_for(CommandType::kModuleUnload).as<ipc::IdCommand>()->id,
            engine.wait_for(CommandType::kModuleLoad).as<ipc::ModuleLoad>()->module);
  EXPECT_EQ(code.function(*engine.session, *kernel).error().code, ErrorCode::kInvalidHandle);
}

TEST_F(CodeTest, CodeThatTheDeviceRefusesIsSentOnceAPerSession) {
  engine.handle(CommandType::kModuleLoad, [&](const ipc::Command& command) {
    engine.channel->reply_error(command.header.reply_slot, command.header.reply_sequence,
                                {ErrorCode::kInvalidPtx, "line 3"});
  });
  Kernel* kernel = code.find_kernel(&host_function);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(code.function(*engine.session, *kernel).error().code, ErrorCode::kInvalidPtx);
  }
  EXPECT_EQ(engine.all(CommandType::kModuleLoad).size(), 1u);
}

TEST_F(CodeTest, WantOfMemoryIsNotHeldAgainstTheCode) {
  // Shared, as the engine copies what it is given to do.
  const auto full = std::make_shared<bool>(true);
  engine.handle(CommandType::kModuleLoad, [this, full](const ipc::Command& command) {
    if (!std::exchange(*full, false)) return engine.reply(command);
    engine.channel->reply_error(command.header.reply_slot, command.header.reply_sequence,
                                {ErrorCode::kOutOfMemory, "full"});
  });
  Kernel* kernel = code.find_kernel(&host_function);
  EXPECT_EQ(code.function(*engine.session, *kernel).error().code, ErrorCode::kOutOfMemory);
  EXPECT_TRUE(code.function(*engine.session, *kernel));
}

TEST_F(CodeTest, ABinaryWithManagedVariablesIsRefusedByName) {
  code.add_managed(binary, "shared_state");
  const auto function = code.function(*engine.session, *code.find_kernel(&host_function));
  ASSERT_FALSE(function);
  EXPECT_EQ(function.error().code, ErrorCode::kNotSupported);
  EXPECT_NE(function.error().message.find("shared_state"), std::string::npos);
}

}  // namespace
}  // namespace slate::client
