#include "device/sim/settings.h"

#include <gtest/gtest.h>

#include "device/sim/device_info.h"

namespace slate::sim {
namespace {

TEST(SettingsTest, EmptyTextGivesTheDefaults) {
  const auto settings = parse_settings("");
  ASSERT_TRUE(settings);
  EXPECT_EQ(settings->sms, 16u);
  EXPECT_EQ(settings->unit, 1u);
  EXPECT_EQ(settings->memory, 2ull << 30);
  EXPECT_FALSE(settings->seed);
  EXPECT_EQ(settings->cc_major, 9u);
  EXPECT_EQ(settings->max_kernel_seconds, 0);
}

TEST(SettingsTest, EveryKeyIsRead) {
  const auto settings = parse_settings(
      "sms=3,memory=64M,threads=2,seed=7,cc=10.3,max_kernel_seconds=1.5,quantum=9,strict=1,unit=4");
  ASSERT_TRUE(settings) << settings.error().message;
  EXPECT_EQ(settings->sms, 3u);
  EXPECT_EQ(settings->unit, 4u);
  EXPECT_EQ(settings->memory, 64ull << 20);
  EXPECT_EQ(settings->threads, 2u);
  EXPECT_EQ(settings->seed, 7u);
  EXPECT_EQ(settings->cc_major, 10u);
  EXPECT_EQ(settings->cc_minor, 3u);
  EXPECT_EQ(settings->max_kernel_seconds, 1.5);
  EXPECT_EQ(settings->quantum, 9u);
  EXPECT_TRUE(settings->strict);
}

TEST(SettingsTest, MemoryTakesSuffixes) {
  EXPECT_EQ(parse_settings("memory=4096K")->memory, 4ull << 20);
  EXPECT_EQ(parse_settings("memory=3G")->memory, 3ull << 30);
  EXPECT_EQ(parse_settings("memory=1T")->memory, 1ull << 40);
  EXPECT_EQ(parse_settings("memory=2097152")->memory, 2ull << 20);
}

TEST(SettingsTest, BadPairIsRefusedByName) {
  for (const char* text : {"sms=0",
                           "sms=1025",
                           "sms=x",
                           "sms=",
                           "sms",
                           "unit=0",
                           "unit=1025",
                           "memory=1M",
                           "memory=3",
                           "memory=2T",
                           "memory=G",
                           "threads=0",
                           "seed=-1",
                           "cc=9",
                           "cc=9.",
                           "cc=4.0",
                           "max_kernel_seconds=-1",
                           "max_kernel_seconds=nan",
                           "quantum=0",
                           "strict=2",
                           "speed=1",
                           "=",
                           ","}) {
    const auto settings = parse_settings(text);
    ASSERT_FALSE(settings) << text;
    EXPECT_EQ(settings.error().code, ErrorCode::kInvalidValue);
    const std::string pair(text == std::string(",") ? "" : text);
    EXPECT_NE(settings.error().message.find(pair.substr(0, pair.find('='))), std::string::npos)
        << settings.error().message;
  }
}

TEST(SettingsTest, SeedMeansOneHostThread) {
  EXPECT_EQ(host_threads(*parse_settings("threads=8,seed=1")), 1u);
  EXPECT_EQ(host_threads(*parse_settings("threads=8")), 8u);
  EXPECT_EQ(host_threads(*parse_settings("threads=8,sms=2")), 2u);
  EXPECT_GE(host_threads(*parse_settings("")), 1u);
}

TEST(DeviceInfoTest, TellsTheSettings) {
  const DeviceInfo info = make_device_info(*parse_settings("sms=5,memory=64M,cc=8.6"));
  EXPECT_STREQ(info.name, "slate sim (5 SMs)");
  EXPECT_EQ(info.total_memory, 64ull << 20);
  EXPECT_EQ(info.is_simulated, 1);
  EXPECT_EQ(sm_count(info), 5);
  EXPECT_EQ(info.attributes[16], 5);  // multiprocessors
  EXPECT_EQ(info.attributes[75], 8);  // compute capability
  EXPECT_EQ(info.attributes[76], 6);
}

TEST(DeviceInfoTest, LimitsAreThoseOfAnH200) {
  const DeviceInfo info = make_device_info(Settings{});
  EXPECT_EQ(info.attributes[1], 1024);        // threads a block
  EXPECT_EQ(info.attributes[4], 64);          // block z
  EXPECT_EQ(info.attributes[5], 2147483647);  // grid x
  EXPECT_EQ(info.attributes[8], 49152);       // shared bytes a block
  EXPECT_EQ(info.attributes[10], 32);         // warp
  EXPECT_EQ(info.attributes[39], 2048);       // threads an SM
  EXPECT_EQ(info.attributes[81], 233472);     // shared bytes an SM
  EXPECT_EQ(info.attributes[97], 232448);     // shared bytes a block, opted in
  EXPECT_EQ(info.attributes[106], 32);        // blocks an SM
}

}  // namespace
}  // namespace slate::sim
