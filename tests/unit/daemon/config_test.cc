#include "daemon/config.h"

#include <gtest/gtest.h>

#include "daemon/options.h"

namespace slate::daemon {
namespace {

TEST(ConfigTest, AnEmptyFileIsTheDefaults) {
  const auto config = parse_config("", "f");
  ASSERT_TRUE(config);
  EXPECT_EQ(config->device, "auto");
  EXPECT_EQ(config->max_sessions, 256u);
  EXPECT_FALSE(config->kill_stuck_engine);
}

TEST(ConfigTest, EveryKeyIsRead) {
  const auto config = parse_config(R"(
device = "sim"
runtime_dir = "/r"
log_level = "debug"
memory_limit = "25%"
max_sessions = 3
kill_grace_seconds = 1.5
kill_stuck_engine = true
spare_engine = true
)",
                                   "f");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->device, "sim");
  EXPECT_EQ(config->runtime_dir, "/r");
  EXPECT_EQ(config->log_level, LogLevel::kDebug);
  EXPECT_EQ(config->memory_limit.bytes_of(1000), 250u);
  EXPECT_EQ(config->max_sessions, 3u);
  EXPECT_EQ(config->kill_grace_seconds, 1.5);
  EXPECT_TRUE(config->kill_stuck_engine);
  EXPECT_TRUE(config->spare_engine);
}

TEST(ConfigTest, AnUnknownKeyIsAnErrorWithItsLine) {
  const auto config = parse_config("device = \"sim\"\n\ndevcie = \"sim\"\n", "file");
  ASSERT_FALSE(config);
  EXPECT_NE(config.error().message.find("file:3"), std::string::npos) << config.error().message;
  EXPECT_NE(config.error().message.find("devcie"), std::string::npos);
}

TEST(ConfigTest, AWrongTypeIsAnErrorWithItsLine) {
  for (const char* text : {"device = 3", "max_sessions = \"many\"", "max_sessions = 0",
                           "kill_grace_seconds = -1", "spare_engine = 1", "memory_limit = true",
                           "log_level = \"loud\"", "device = [", "[table]\nx = 1"}) {
    const auto config = parse_config(text, "file");
    ASSERT_FALSE(config) << text;
    EXPECT_NE(config.error().message.find("file:1"), std::string::npos) << config.error().message;
  }
}

TEST(ConfigTest, AMissingFileIsAnError) {
  EXPECT_EQ(load_config("/nonexistent/slated.toml").error().code, ErrorCode::kIo);
}

TEST(MemoryLimitTest, UnitsArePowersOf1024) {
  EXPECT_EQ(parse_memory_limit("2G")->bytes_of(~0ull), 2ull << 30);
  EXPECT_EQ(parse_memory_limit("10K")->bytes_of(~0ull), 10240u);
  EXPECT_EQ(parse_memory_limit("77")->bytes_of(~0ull), 77u);
}

TEST(MemoryLimitTest, IsNeverMoreThanTheDeviceHas) {
  EXPECT_EQ(parse_memory_limit("2G")->bytes_of(1000), 1000u);
  EXPECT_EQ(parse_memory_limit("100%")->bytes_of(~0ull), ~0ull);
}

TEST(MemoryLimitTest, NonsenseIsRefused) {
  for (const char* text :
       {"", "0", "-1", "G", "2GB", "2g", "101%", "0%", "1.5G", "99999999999999T"}) {
    EXPECT_FALSE(parse_memory_limit(text)) << text;
  }
}

TEST(OptionsTest, WhatTheSupervisorPassesTheEngineUnderstands) {
  Config config;
  config.device = "sim:sms=4,memory=1G";
  config.log_level = LogLevel::kError;
  config.kill_grace_seconds = 2.5;
  config.kill_stuck_engine = true;
  const auto arguments = engine_arguments(config, 3, 77);
  std::vector<const char*> argv = {"slated"};
  for (const auto& argument : arguments) argv.push_back(argument.c_str());
  const auto options = parse_options(static_cast<int>(argv.size()), argv.data());
  ASSERT_TRUE(options);
  EXPECT_TRUE(options->is_engine);
  EXPECT_EQ(options->control_fd, 3);
  EXPECT_EQ(options->parent_pid, 77);
  EXPECT_EQ(options->config.device, config.device);
  EXPECT_EQ(options->config.log_level, LogLevel::kError);
  EXPECT_EQ(options->config.kill_grace_seconds, 2.5);
  EXPECT_TRUE(options->config.kill_stuck_engine);
}

TEST(OptionsTest, UnknownOptionsEndWithStatusTwo) {
  const char* argv[] = {"slated", "--devise", "sim"};
  EXPECT_EQ(parse_options(3, argv).error(), 2);
}

}  // namespace
}  // namespace slate::daemon
