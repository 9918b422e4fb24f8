#include "client/session/error_table.h"

#include <gtest/gtest.h>

namespace slate::client {
namespace {

TEST(ErrorTableTest, EveryCodeHasANumber) {
  for (std::uint32_t i = 0;; ++i) {
    const auto code = static_cast<ErrorCode>(i);
    if (error_name(code) == "Unknown") {
      EXPECT_GT(i, 22u);
      break;
    }
    const int number = cuda_error_number(code);
    EXPECT_EQ(number == 0, code == ErrorCode::kNone) << error_name(code);
    // 999 is for what fits nowhere: only kInternal may come to that.
    EXPECT_EQ(number == 999, code == ErrorCode::kInternal) << error_name(code);
  }
}

TEST(ErrorTableTest, StickyErrorsAreCudasOwn) {
  EXPECT_EQ(cuda_error_number(ErrorCode::kIllegalAddress), 700);
  EXPECT_EQ(cuda_error_number(ErrorCode::kMisalignedAddress), 716);
  EXPECT_EQ(cuda_error_number(ErrorCode::kIllegalInstruction), 715);
  EXPECT_EQ(cuda_error_number(ErrorCode::kLaunchFailed), 719);
  EXPECT_EQ(cuda_error_number(ErrorCode::kLaunchTimeout), 702);
  EXPECT_EQ(cuda_error_number(ErrorCode::kAssert), 710);
}

TEST(ErrorTableTest, AnUnknownCodeIsTheUnknownError) {
  EXPECT_EQ(cuda_error_number(static_cast<ErrorCode>(4711)), 999);
}

}  // namespace
}  // namespace slate::client
