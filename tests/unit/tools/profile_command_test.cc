#include "tools/profile_command.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tools/set_command.h"

namespace slate::tools {
namespace {

constexpr const char* kProfile = R"({"sm_count":132,"kernels":[
  {"id":0,"name":"_Z5scalePfi","code":18446744073709551615,"block":[32,8,1],"blocks":4096,
   "alone":{"native":{"ms":1.5,"samples":4},"worker":{"ms":1.25,"samples":2}},
   "placed":[{"form":"native","first_sm":0,"sms":48,"blocks_per_sm":0,"ms":3.0,"samples":5}],
   "best_form":"worker","task_size":4,"flops":1e9,"bytes":null,"compute":0.25,"memory":0.5,
   "compute_set":false,"memory_set":true,"form_set":false,"class":"M_M","samples":11},
  {"id":1,"name":"copy","block":[64,1,1],"blocks":1,"alone":{"native":{"ms":9,"samples":1}},
   "best_form":"native","samples":1,"compute":null,"memory":null,"class":null},
  {"id":2,"name":"never_measured","samples":0}],
 "groups":[{"sharing":"placed","makespan":0.625,"samples":3,"kernels":[
   {"id":0,"form":"worker","first_sm":0,"sms":80,"blocks_per_sm":2},
   {"id":1,"form":"native","first_sm":80,"sms":52,"blocks_per_sm":0}]}],
 "group_kernels":{"0":"_Z5scalePfi","1":"copy"}})";

void expect_parts(const Result<std::string>& text, std::initializer_list<const char*> parts) {
  ASSERT_TRUE(text) << text.error().message;
  for (const char* part : parts)
    EXPECT_NE(text->find(part), std::string::npos) << part << " in\n" << *text;
}

TEST(ProfileTableTest, EveryMeasuredKernelIsALine) {
  const auto table = profile_table(kProfile);
  expect_parts(table, {"scale ", "32x8x1", "4096", "1.5", "1.25", "0.250 ", "0.500*", "M_M",
                       "worker", "copy"});
  EXPECT_EQ(table->find("never_measured"), std::string::npos);
}

TEST(ProfileTableTest, DetailsShowScalingAndGroups) {
  expect_parts(profile_details(kProfile, "scale"),
               {"_Z5scalePfi", "ffffffffffffffff", "native  alone 1.5 ms, 4 samples",
                "48 SMs (0-47)  3 ms, 0.50 of alone", "placed, 0.62 of one after the other",
                "worker on SMs 0-79, 2 blocks each", "copy", "native on SMs 80-131",
                "flops a launch: 1e+09"});
  EXPECT_EQ(profile_details(kProfile, "copy")->find("_Z5scalePfi\n"), std::string::npos);
  EXPECT_EQ(profile_details(kProfile, "other").error().code, ErrorCode::kInvalidValue);
}

TEST(ProfileTableTest, JsonCanBeOfOneKernel) {
  const auto all = nlohmann::json::parse(*profile_rows(kProfile, ""));
  EXPECT_EQ(all["kernels"].size(), 3u);
  const auto one = nlohmann::json::parse(*profile_rows(kProfile, "never_measured"));
  EXPECT_EQ(one["kernels"].size(), 1u);
  EXPECT_TRUE(one["groups"].empty());
}

TEST(ProfileTableTest, MissingPartsAreSurvived) {
  for (const char* text : {R"({"kernels":[]})", R"({"kernels":[{}],"groups":[{}]})",
                           R"({"kernels":[{"samples":1,"alone":{"native":{}},"block":[1,"x"]}]})",
                           R"({"kernels":null,"groups":3})"}) {
    EXPECT_TRUE(profile_table(text)) << text;
    EXPECT_TRUE(profile_rows(text, "")) << text;
  }
}

TEST(ProfileTableTest, WhatIsNoProfileIsRefused) {
  for (const char* text : {"not json", "[1]", "{}"})
    EXPECT_EQ(profile_table(text).error().code, ErrorCode::kProtocol) << text;
}

TEST(SetTextTest, SaysWhatWasChangedAndKept) {
  expect_parts(set_text(R"({"sessions":[{"id":3,"pid":9,"program":"train","weight":2.5,
                           "priority":-1}],"kept":{"program":"train","uid":7,"weight":2.5,
                           "priority":null}})"),
               {"session 3 (pid 9, train): weight 2.5, priority -1\n",
                "kept for train of uid 7: weight 2.5\n"});
  EXPECT_EQ(set_text("[]").error().code, ErrorCode::kProtocol);
}

}  // namespace
}  // namespace slate::tools
