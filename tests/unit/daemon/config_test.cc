#include "daemon/config.h"

#include <gtest/gtest.h>

#include "daemon/options.h"
#include "daemon/scheduler_config.h"

namespace slate::daemon {
namespace {

TEST(ConfigTest, AnEmptyFileIsTheDefaults) {
  const auto config = parse_config("", "f");
  ASSERT_TRUE(config);
  EXPECT_EQ(config->device, "auto");
  EXPECT_EQ(config->max_sessions, 256u);
  EXPECT_FALSE(config->kill_stuck_engine);
  EXPECT_EQ(config->cache_dir, "");
  EXPECT_EQ(config->cache_size, 1u << 30);
  EXPECT_EQ(config->ptxas, "");
  EXPECT_EQ(config->policy, "adaptive");
  EXPECT_EQ(config->max_weight, 4);
  EXPECT_EQ(config->state_dir, "");
  EXPECT_EQ(config->trace_events, 65536u);
  EXPECT_EQ(config->settings_of("anything"), SessionSettings{});
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
cache_dir = "/c"
cache_size = "3M"
ptxas = "/p"
policy = "table"
max_weight = 2.5
state_dir = "/s"
trace_events = 77
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
  EXPECT_EQ(config->cache_dir, "/c");
  EXPECT_EQ(config->cache_size, 3u << 20);
  EXPECT_EQ(config->ptxas, "/p");
  EXPECT_EQ(config->policy, "table");
  EXPECT_EQ(config->max_weight, 2.5);
  EXPECT_EQ(config->state_dir, "/s");
  EXPECT_EQ(config->trace_events, 77u);
}

TEST(ConfigTest, ProgramsHaveSettingsByName) {
  const auto config = parse_config(R"(
[[program]]
name = "train"
weight = 3
priority = -2
[[program]]
name = "serve"
priority = 10
)",
                                   "f");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->settings_of("train"), (SessionSettings{3, -2}));
  EXPECT_EQ(config->settings_of("serve"), (SessionSettings{1, 10}));
  EXPECT_EQ(config->settings_of("other"), SessionSettings{});
}

TEST(ConfigTest, TheSchedulersKnobsAreRead) {
  const auto config = parse_config(R"(
[scheduler]
quantum_ms = 2.5
linger_ms = 0
ahead_launches = 9
floor = 0.25
[scheduler.table]
high_memory = 0.9
[scheduler.table.beside]
high_memory = ["solo", "solo", "solo", "solo", "corun"]
)",
                                   "f");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->scheduler.quantum.count(), 2.5);
  EXPECT_EQ(config->scheduler.linger.count(), 0);
  EXPECT_EQ(config->scheduler.ahead_launches, 9u);
  EXPECT_EQ(config->scheduler.floor, 0.25);
  EXPECT_EQ(config->scheduler.high_memory, 0.9);
  EXPECT_EQ(config->scheduler.table[4], (std::array{false, false, false, false, true}));
  EXPECT_EQ(config->scheduler.table[0], scheduler::Settings{}.table[0]);
}

TEST(ConfigTest, EveryKnobSurvivesTheWayToTheEngine) {
  scheduler::Settings settings;
  settings.ahead = scheduler::Milliseconds(0.1);
  settings.floor = 0.3333333333333333;
  settings.group = 3;
  settings.saturation = 0.5;
  settings.intensities = false;
  settings.peak_gflops = 123.5;
  settings.table[2][3] = !settings.table[2][3];
  const auto parsed = parse_config(scheduler_text(settings), "f");
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(parsed->scheduler.ahead, settings.ahead);
  EXPECT_EQ(parsed->scheduler.floor, settings.floor);
  EXPECT_EQ(parsed->scheduler.group, 3u);
  EXPECT_EQ(parsed->scheduler.saturation, 0.5);
  EXPECT_FALSE(parsed->scheduler.intensities);
  EXPECT_EQ(parsed->scheduler.peak_gflops, 123.5);
  EXPECT_EQ(parsed->scheduler.table, settings.table);
  EXPECT_EQ(scheduler_text(parsed->scheduler), scheduler_text(settings));
}

TEST(ConfigTest, MistakesInsideTablesNameTheirOwnLine) {
  for (const char* text :
       {"[scheduler]\n\nquantum = 1", "[scheduler]\n\nquantum_ms = \"1\"",
        "[scheduler]\n\nquantum_ms = -1", "[scheduler]\n\nfloor = 1.5",
        "[scheduler]\n\nintensities = 1", "[scheduler]\n\ngroup = 2.0", "[scheduler]\n\ngroup = 9",
        "[scheduler.table]\n\nhigh_memory = true",
        "[scheduler.table.beside]\n\nhigh_memory = [\"corun\"]",
        "[scheduler.table.beside]\n\nlow = [\"solo\",\"solo\",\"solo\",\"solo\",\"solo\"]",
        "[scheduler.table.beside]\n\nlow_compute = [\"solo\",\"solo\",\"solo\",\"solo\",1]",
        "[[program]]\nname = \"a\"\nweight = 0", "[[program]]\nname = \"a\"\nweight = 101",
        "[[program]]\nname = \"a\"\npriority = 11", "[[program]]\nname = \"a\"\nprio = 1",
        "[[program]]\nname = \"a\"\npriority = 1.5"}) {
    const auto config = parse_config(text, "file");
    ASSERT_FALSE(config) << text;
    EXPECT_TRUE(config.error().message.starts_with("file:3: ")) << config.error().message;
  }
}

TEST(ConfigTest, ThresholdsOutOfOrderAreRefused) {
  EXPECT_FALSE(parse_config("[scheduler.table]\nmedium_memory = 0.9\nhigh_memory = 0.5", "f"));
}

TEST(ConfigTest, AnUnknownKeyIsAnErrorWithItsLine) {
  const auto config = parse_config("device = \"sim\"\n\ndevcie = \"sim\"\n", "file");
  ASSERT_FALSE(config);
  EXPECT_NE(config.error().message.find("file:3"), std::string::npos) << config.error().message;
  EXPECT_NE(config.error().message.find("devcie"), std::string::npos);
}

TEST(ConfigTest, AWrongTypeIsAnErrorWithItsLine) {
  for (const char* text : {"device = 3",
                           "max_sessions = \"many\"",
                           "max_sessions = 0",
                           "kill_grace_seconds = -1",
                           "spare_engine = 1",
                           "memory_limit = true",
                           "log_level = \"loud\"",
                           "cache_size = \"10%\"",
                           "cache_size = -1",
                           "cache_dir = 1",
                           "ptxas = 1",
                           "device = [",
                           "policy = 1",
                           "policy = \"best\"",
                           "max_weight = 0",
                           "state_dir = 1",
                           "trace_events = -1",
                           "scheduler = 1",
                           "program = 1",
                           "[[program]]\nweight = 1",
                           "[table]\nx = 1"}) {
    const auto config = parse_config(text, "file");
    ASSERT_FALSE(config) << text;
    EXPECT_NE(config.error().message.find("file:1"), std::string::npos) << config.error().message;
  }
}

TEST(ConfigTest, ThePackagedFileSaysTheDefaults) {
  const auto packaged = load_config(PACKAGED_CONFIG);
  ASSERT_TRUE(packaged) << packaged.error().message;
  const Config defaults;
  EXPECT_EQ(scheduler_text(packaged->scheduler), scheduler_text(defaults.scheduler));
  EXPECT_EQ(engine_arguments(*packaged, 3, 4), engine_arguments(defaults, 3, 4));
  EXPECT_EQ(packaged->max_weight, defaults.max_weight);
  EXPECT_EQ(packaged->max_sessions, defaults.max_sessions);
  EXPECT_TRUE(packaged->programs.empty());
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

TEST(SizeTest, MayBeZeroAndHaveAUnit) {
  EXPECT_EQ(parse_size("0").value(), 0u);
  EXPECT_EQ(parse_size("77").value(), 77u);
  EXPECT_EQ(parse_size("2T").value(), 2ull << 40);
  for (const char* text : {"", "-1", "G", "10%", "1.5G", "1GB", "99999999999999T"}) {
    EXPECT_FALSE(parse_size(text)) << text;
  }
}

TEST(OptionsTest, WhatTheSupervisorPassesTheEngineUnderstands) {
  Config config;
  config.device = "sim:sms=4,memory=1G";
  config.log_level = LogLevel::kError;
  config.kill_grace_seconds = 2.5;
  config.kill_stuck_engine = true;
  config.cache_dir = "/a cache";
  config.cache_size = 12345;
  config.ptxas = "/an assembler";
  config.policy = "fifo";
  config.scheduler.quantum = scheduler::Milliseconds(7);
  config.state_dir = "/a state";
  config.trace_events = 5;
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
  EXPECT_EQ(options->config.cache_dir, "/a cache");
  EXPECT_EQ(options->config.cache_size, 12345u);
  EXPECT_EQ(options->config.ptxas, "/an assembler");
  EXPECT_EQ(options->config.policy, "fifo");
  EXPECT_EQ(options->config.scheduler.quantum.count(), 7);
  EXPECT_EQ(options->config.state_dir, "/a state");
  EXPECT_EQ(options->config.trace_events, 5u);
}

TEST(OptionsTest, AnUnknownPolicyEndsWithStatusTwo) {
  const char* argv[] = {"slated", "--policy", "best"};
  EXPECT_EQ(parse_options(3, argv).error(), 2);
}

TEST(OptionsTest, UnknownOptionsEndWithStatusTwo) {
  const char* argv[] = {"slated", "--devise", "sim"};
  EXPECT_EQ(parse_options(3, argv).error(), 2);
}

}  // namespace
}  // namespace slate::daemon
