#include "tools/status_command.h"

#include <gtest/gtest.h>

namespace slate::tools {
namespace {

TEST(StatusTableTest, EverySessionIsALine) {
  const auto table = status_table(R"({"version":"1.2","pid":7,"uptime_s":60,
    "device":{"name":"Fast One","simulated":true,"memory_total":2147483648,"memory_free":1073741824,
      "peak_gflops":66908.16,"peak_gbytes":4916.7},
    "engine":{"pid":8,"restarts":1,"last_fault":"IllegalAddress: at 0x10"},
    "sessions":[{"id":3,"pid":99,"uid":1000,"program":"train","since_s":5,"state":"serving",
      "memory_used":1048576,"memory_limit":2147483648,"launches":12,"launches_running":1}],
    "totals":{"sessions_served":3,"launches":40,"faults":1}})");
  ASSERT_TRUE(table);
  for (const char* part : {"slated 1.2 (pid 7)", "Fast One, 1.0 GiB free of 2.0 GiB",
                           "peaks     66908 GFLOP/s, 4917 GB/s", "replaced 1 times",
                           "IllegalAddress", "train", "1.0 MiB / 2.0 GiB", "serving", " 12 "}) {
    EXPECT_NE(table->find(part), std::string::npos) << part << " in\n" << *table;
  }
}

TEST(StatusTableTest, WhatRunsHasALineOfItsOwn) {
  const auto table = status_table(R"({"policy":"adaptive","arrangement":"2 placed",
    "sessions":[{"id":3,"program":"train","weight":2.5,"priority":-1,"kernel":"_Z5scalePfi",
      "form":"worker","sms":48,"blocks_done":250,"blocks":1000},
      {"id":4,"program":"idle","weight":1,"priority":0,"kernel":null}]})");
  ASSERT_TRUE(table);
  for (const char* part :
       {"policy    adaptive, 2 placed", " 2.5   -1 ", "scale", "worker", "250 of 1000 (25 %)"}) {
    EXPECT_NE(table->find(part), std::string::npos) << part << " in\n" << *table;
  }
  EXPECT_EQ(table->find("BLOCKS DONE"), table->rfind("BLOCKS DONE"));
}

TEST(StatusTableTest, ASpareEngineAndItsMemoryAreShown) {
  const auto line = [](const std::string& engine) {
    const auto table = status_table(R"({"engine":)" + engine + R"(,"sessions":[]})");
    EXPECT_TRUE(table);
    const std::size_t begin = table->find("engine ");
    return table->substr(begin, table->find('\n', begin) - begin);
  };
  EXPECT_EQ(line(R"({"pid":8,"restarts":0,"spares":[],"spare_bytes":null})"),
            "engine    pid 8, replaced 0 times");
  EXPECT_EQ(line(R"({"pid":8,"restarts":0,"spares":[9],"spare_bytes":null})"),
            "engine    pid 8, replaced 0 times, spare pid 9");
  EXPECT_EQ(line(R"({"pid":8,"restarts":0,"spares":[9],"spare_bytes":554696704,"last_fault":"X"})"),
            "engine    pid 8, replaced 0 times, spare pid 9 with 529.0 MiB, last fault X");
  EXPECT_EQ(line(R"({"pid":8,"restarts":1,"spares":[9,10],"spare_bytes":null})"),
            "engine    pid 8, replaced 1 times, spare pid 9 and 10");
}

TEST(StatusTableTest, DispatchByTheDeviceIsShown) {
  const auto by_device =
      status_table(R"({"forms":{"dispatch":"device","dispatched":3,"worker":5},"sessions":[]})");
  ASSERT_TRUE(by_device);
  EXPECT_NE(by_device->find("dispatch  device, 3 of 5 launches as workers"), std::string::npos)
      << *by_device;
  const auto by_host =
      status_table(R"({"forms":{"dispatch":"host","dispatched":0,"worker":5},"sessions":[]})");
  ASSERT_TRUE(by_host);
  EXPECT_EQ(by_host->find("dispatch"), std::string::npos);
}

TEST(StatusTableTest, MemoryBeyondTheDeviceIsShown) {
  const auto table = status_table(R"({"swap":{"capacity":68719476736,"used":67645734912,
      "host_bytes":34359738368,"host_used":17179869184,"moved_out":1099511627776,
      "moved_in":1048576},
    "sessions":[
      {"id":3,"program":"train","resident":42949672960,"swapped":8589934592,
        "waits_for_memory":true,"moves":"in","waits_for":[5,6]},
      {"id":4,"program":"waits","resident":0,"swapped":0,"waits_for_memory":true},
      {"id":5,"program":"idle","resident":1024,"swapped":2048,"waits_for_memory":false},
      {"id":6,"program":"whole","resident":4096,"swapped":0,"waits_for_memory":false}]})");
  ASSERT_TRUE(table);
  for (const char* part :
       {"swap      63.0 GiB of 64.0 GiB on the device, 16.0 GiB of 32.0 GiB on the host, "
        "moved 1.0 TiB out, 1.0 MiB in\n",
        "ID PROGRAM                 ON DEVICE      ON HOST MOVES WAITS FOR\n",
        "     3 train                    40.0 GiB      8.0 GiB    in       5,6\n",
        "     4 waits                         0 B          0 B     -       yes\n",
        "     5 idle                      1.0 KiB      2.0 KiB     -        no\n"}) {
    EXPECT_NE(table->find(part), std::string::npos) << part << " in\n" << *table;
  }
  EXPECT_EQ(table->find("4.0 KiB"), std::string::npos) << "all of it is on the device";
}

TEST(StatusTableTest, WithoutASwapNothingIsSaidOfIt) {
  const auto table =
      status_table(R"({"swap":null,"sessions":[{"id":4,"resident":4096,"swapped":0}]})");
  ASSERT_TRUE(table);
  EXPECT_EQ(table->find("swap"), std::string::npos) << *table;
  EXPECT_EQ(table->find("ON HOST"), std::string::npos) << *table;
}

TEST(StatusTableTest, WhereNothingRunsThereIsNoTableOfIt) {
  const auto table = status_table(R"({"sessions":[{"id":4,"program":"idle"}]})");
  ASSERT_TRUE(table);
  EXPECT_EQ(table->find("BLOCKS DONE"), std::string::npos);
  EXPECT_EQ(table->find("policy"), std::string::npos);
}

TEST(StatusTableTest, FunctionsThatProgramsMissedAreNamed) {
  const auto table =
      status_table(R"({"unsupported":{"cudaIpcGetMemHandle":2,"cudaGraphicsMapResources":1}})");
  ASSERT_TRUE(table);
  EXPECT_NE(table->find("cudaIpcGetMemHandle (2 calls)"), std::string::npos) << *table;
  EXPECT_NE(table->find("cudaGraphicsMapResources (1 calls)"), std::string::npos) << *table;
}

TEST(StatusTableTest, MissingPartsAreSurvived) {
  for (const char* text : {"{}", R"({"unsupported":[1]})", R"({"device":null,"sessions":[]})",
                           R"({"sessions":[{}]})", R"({"swap":{},"sessions":[{"swapped":1}]})",
                           R"({"swap":[1],"sessions":[{"waits_for_memory":7}]})"}) {
    EXPECT_TRUE(status_table(text)) << text;
  }
}

TEST(StatusTableTest, WhatIsNotJsonIsRefused) {
  EXPECT_EQ(status_table("not json").error().code, ErrorCode::kProtocol);
  EXPECT_EQ(status_table("[1]").error().code, ErrorCode::kProtocol);
}

}  // namespace
}  // namespace slate::tools
