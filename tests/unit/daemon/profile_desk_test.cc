#include "daemon/profile/profile_desk.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace slate::daemon {
namespace {

using nlohmann::json;
using Kind = ProfileRequest::Kind;
using scheduler::Machine;

constexpr Machine kMachine{
    .sm_count = 132, .units = 17, .sms_per_unit = 8, .peak_gflops = 1000, .peak_gbytes = 100};

class ProfileDeskTest : public testing::Test {
 protected:
  ProfileDeskTest() {
    for (const char* name : {"_Z5scalePfi", "copy"}) {
      const auto id = table_.find_or_add({.code = 1, .name = name, .block = {128, 1, 1}});
      table_.kernel(id).alone[0] = {.ms = 1, .samples = 4};
    }
    table_.kernel(0).flops = 1e7;  // in 1 ms: 10 GFLOP/s, a hundredth of the peak
    table_.kernel(0).bytes = 9e7;  // in 1 ms: 90 GB/s
    table_.kernel(0).placed[1][{.first = 0, .count = 17}] = {.ms = 2, .samples = 1};
    table_.set_group({.kernels = {0, 1},
                      .sharing = scheduler::Sharing::kPlaced,
                      .forms = {scheduler::Form::kNative, scheduler::Form::kWorker},
                      .placements = {{.first = 0, .count = 10}, {.first = 10, .count = 7}},
                      .makespan = 0.7,
                      .samples = 3});
  }
  Result<std::string> ask(const ProfileRequest& request) {
    const auto parsed = parse_profile_request(profile_request_text(request));
    if (!parsed) return std::unexpected(parsed.error());
    scheduler::Settings settings;
    settings.medium_memory = 0.35;
    settings.high_memory = 0.85;
    return answer_profile_request(*parsed, table_, kMachine, settings);
  }
  static ProfileRequest request(Kind kind, const std::string& kernel) {
    ProfileRequest made;
    made.kind = kind;
    made.kernel = kernel;
    return made;
  }

  scheduler::ProfileTable table_;
};

TEST_F(ProfileDeskTest, TheTableShowsRowsAndGroups) {
  const json shown = json::parse(*ask(request(Kind::kShow, "")));
  ASSERT_EQ(shown["kernels"].size(), 2u);
  const json& row = shown["kernels"][0];
  EXPECT_EQ(row["name"], "_Z5scalePfi");
  EXPECT_EQ(row["alone"]["native"]["ms"], 1.0);
  EXPECT_FALSE(row["alone"].contains("worker"));
  EXPECT_EQ(row["placed"][0]["sms"], 132);
  EXPECT_EQ(row["placed"][0]["form"], "worker");
  EXPECT_NEAR(row["compute"].get<double>(), 0.01, 1e-9);
  EXPECT_EQ(row["class"], "H_M");
  EXPECT_EQ(row["samples"], 5);
  EXPECT_TRUE(shown["kernels"][1]["class"].is_null());
  ASSERT_EQ(shown["groups"].size(), 1u);
  EXPECT_EQ(shown["groups"][0]["kernels"][1]["first_sm"], 80);
  EXPECT_EQ(shown["groups"][0]["kernels"][1]["sms"], 52);
  EXPECT_EQ(shown["groups"][0]["kernels"][1]["form"], "worker");
}

TEST_F(ProfileDeskTest, AKernelIsFoundByItsPlainName) {
  const json shown = json::parse(*ask(request(Kind::kShow, "scale")));
  ASSERT_EQ(shown["kernels"].size(), 1u);
  EXPECT_EQ(shown["groups"].size(), 1u);
  EXPECT_EQ(shown["group_kernels"]["1"], "copy");
  EXPECT_EQ(ask(request(Kind::kShow, "nothing")).error().code, ErrorCode::kInvalidValue);
}

TEST_F(ProfileDeskTest, AnOverrideReplacesTheMeasuredIntensityUntilItIsTakenBack) {
  ProfileRequest set = request(Kind::kSet, "scale");
  set.memory = 0.5;
  ASSERT_TRUE(ask(set));
  EXPECT_EQ(table_.kernel(0).memory_override, 0.5);
  EXPECT_FALSE(table_.kernel(0).compute_override);
  EXPECT_EQ(json::parse(*ask(request(Kind::kShow, "scale")))["kernels"][0]["class"], "M_M");
  set.memory = -1;
  ASSERT_TRUE(ask(set));
  EXPECT_FALSE(table_.kernel(0).memory_override);
}

TEST_F(ProfileDeskTest, ValuesOutOfRangeAreRefused) {
  ProfileRequest set = request(Kind::kSet, "scale");
  set.memory = 1.5;
  EXPECT_EQ(ask(set).error().code, ErrorCode::kInvalidValue);
  set.memory.reset();
  set.form = 2;
  EXPECT_EQ(ask(set).error().code, ErrorCode::kInvalidValue);
  EXPECT_EQ(ask(request(Kind::kSet, "")).error().code, ErrorCode::kInvalidValue);
  EXPECT_FALSE(table_.kernel(0).memory_override);
}

TEST_F(ProfileDeskTest, ForgettingTakesOneKernelOrAll) {
  EXPECT_EQ(json::parse(*ask(request(Kind::kForget, "copy")))["changed"], 1);
  EXPECT_FALSE(table_.kernel(1).alone[0].known());
  EXPECT_TRUE(table_.kernel(0).alone[0].known());
  EXPECT_TRUE(table_.groups().empty());
  EXPECT_EQ(json::parse(*ask(request(Kind::kForget, "")))["changed"], 2);
  EXPECT_FALSE(table_.kernel(0).alone[0].known());
}

ProfileRequest group(std::string_view text) {
  const auto parsed = parse_group_request(text);
  EXPECT_TRUE(parsed) << parsed.error().message;
  return parsed.value_or(ProfileRequest{});
}

TEST_F(ProfileDeskTest, AGroupIsPinnedToSmsAndForms) {
  const auto before = table_.edits();
  ASSERT_TRUE(ask(group(
      R"({"kernels":["copy","#0"],"sharing":"placed","sms":[48,84],"forms":["worker","native"]})")));
  const scheduler::GroupProfile* pinned = table_.group({0, 1});
  ASSERT_NE(pinned, nullptr);
  EXPECT_TRUE(pinned->pinned);
  EXPECT_EQ(pinned->sharing, scheduler::Sharing::kPlaced);
  EXPECT_EQ(pinned->placements[1], (scheduler::Placement{.first = 0, .count = 6}));
  EXPECT_EQ(pinned->placements[0], (scheduler::Placement{.first = 6, .count = 11}));
  EXPECT_EQ(pinned->forms[1], scheduler::Form::kWorker);
  EXPECT_GT(table_.edits(), before);
  ASSERT_TRUE(ask(group(R"({"kernels":["copy","scale"],"sharing":"auto"})")));
  EXPECT_EQ(table_.group({0, 1}), nullptr);
}

TEST_F(ProfileDeskTest, AGroupThatCannotBeIsRefusedWithAReason) {
  for (const char* text :
       {"", "[]", R"({"kernels":["copy"],"sharing":"alone"})",
        R"({"kernels":["copy","scale"],"sharing":"beside"})",
        R"({"kernels":["copy","scale"],"sharing":"placed","sms":[48]})",
        R"({"kernels":["copy","scale"],"sharing":"alone","sms":[48,84]})",
        R"({"kernels":["copy","scale"],"sharing":"alone","forms":["slice","native"]})",
        R"({"kernels":["copy",1],"sharing":"alone"})",
        R"({"kernels":["copy","scale"],"sharing":"placed","sms":[-8,84]})"}) {
    EXPECT_EQ(parse_group_request(text).error().code, ErrorCode::kInvalidValue) << text;
  }
  for (const char* text : {R"({"kernels":["copy","scale"],"sharing":"placed","sms":[50,82]})",
                           R"({"kernels":["copy","scale"],"sharing":"placed","sms":[96,84]})",
                           R"({"kernels":["copy","#7"],"sharing":"alone"})",
                           R"({"kernels":["copy","#0x"],"sharing":"alone"})",
                           R"({"kernels":["copy","nothing"],"sharing":"alone"})"}) {
    EXPECT_EQ(ask(group(text)).error().code, ErrorCode::kInvalidValue) << text;
  }
  EXPECT_FALSE(table_.group({0, 1})->pinned);
}

TEST_F(ProfileDeskTest, WhatIsNoRequestIsRefused) {
  for (const char* text : {"", "[]", "{}", R"({"kind":"eat"})", R"({"kind":1})"})
    EXPECT_EQ(parse_profile_request(text).error().code, ErrorCode::kProtocol) << text;
}

}  // namespace
}  // namespace slate::daemon
