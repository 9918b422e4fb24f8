// When the constants of a bounded copy count as the program's.
#include "daemon/engine/constant_copies.h"

#include <gtest/gtest.h>

#include <array>

namespace slate::daemon {
namespace {

class ConstantCopiesTest : public testing::Test {
 protected:
  static constexpr std::uint64_t kFirst = 0x7f00'0000'0000, kSecond = kFirst + (8 << 20);
  static constexpr std::uint64_t kBytes = 256;  // of each constant

  static std::shared_ptr<OwnConstantSet> make_set(std::uint64_t program) {
    auto set = std::make_shared<OwnConstantSet>();
    set->pairs.push_back({.program = {program, kBytes}, .own = 1});
    return set;
  }
  ConstantCopiesTest() {
    for (const auto& set : {first_, second_}) copies_.watch(set);
  }
  /// Which sets what `note` tells leaves as they were filled: "", "1", "2" or "12".
  template <typename Note>
  std::string filled_behind(const Note& note) {
    for (const auto& set : {first_, second_}) set->filled_on = stream_;
    note();
    return std::string(first_->filled_on ? "1" : "") + (second_->filled_on ? "2" : "");
  }
  std::string behind_write(std::uint64_t base, std::uint64_t bytes) {
    return filled_behind([&] { copies_.note_write({base, bytes}); });
  }
  std::string behind_launch(std::array<std::uint64_t, 2> parameters, bool may_write = false) {
    return filled_behind([&] {
      copies_.note_launch(std::as_bytes(std::span(parameters)), [&] { return may_write; });
    });
  }

  const std::shared_ptr<LogicalStream> stream_ = std::make_shared<LogicalStream>();
  std::shared_ptr<OwnConstantSet> first_ = make_set(kFirst), second_ = make_set(kSecond);
  ConstantCopies copies_;
};

TEST_F(ConstantCopiesTest, AWriteOutdatesWhatItMeets) {
  EXPECT_EQ(behind_write(kFirst, 1), "2");
  EXPECT_EQ(behind_write(kSecond + kBytes - 1, 100), "1");
  EXPECT_EQ(behind_write(kFirst - 100, 100), "12");
  EXPECT_EQ(behind_write(kFirst + kBytes, 100), "12");
  EXPECT_EQ(behind_write(kFirst - 1, kSecond - kFirst + 2), "");
  EXPECT_EQ(behind_write(0x2000, 100), "12");
}

TEST_F(ConstantCopiesTest, ALaunchOutdatesWhatItsParametersLeadTo) {
  EXPECT_EQ(behind_launch({5, kFirst}), "2");
  EXPECT_EQ(behind_launch({kSecond + 8, 5}), "1");
  EXPECT_EQ(behind_launch({kSecond, kFirst}), "");
  EXPECT_EQ(behind_launch({kFirst + kBytes, 0}), "2") << "to its end";
  EXPECT_EQ(behind_launch({kFirst - 4, 0}), "2") << "in front of it";
  EXPECT_EQ(behind_launch({kFirst << 32, kFirst >> 32}), "2") << "at 4 bytes";
  EXPECT_EQ(behind_launch({kFirst + (4 << 20), 0}), "12");
  EXPECT_EQ(behind_launch({0, ~std::uint64_t{0}}), "12");
}

TEST_F(ConstantCopiesTest, ALaunchThatMayWriteAnywhereOutdatesAll) {
  EXPECT_EQ(behind_launch({0, 0}, true), "");
}

/// Sets of constants whose addresses kernels cannot know by themselves.
class UnseenConstantsTest : public ConstantCopiesTest {
 protected:
  UnseenConstantsTest() {
    copies_ = {};
    for (const auto& set : {first_, second_}) {
      set->may_be_unseen = false;
      copies_.watch(set);
    }
  }
  std::string behind_copy(std::vector<std::uint64_t> words) {
    copies_.note_bytes(std::as_bytes(std::span(words)));
    return behind_launch({0, 0}, true);
  }
};

TEST_F(UnseenConstantsTest, NobodyWritesByAPointerThatNobodyHas) {
  EXPECT_EQ(behind_launch({0, 0}, true), "12");
  EXPECT_EQ(behind_launch({0, kFirst - (1 << 20)}, true), "12");
  EXPECT_EQ(behind_launch({0, kSecond + 8}, false), "1");
  EXPECT_EQ(behind_launch({0, 0}, true), "") << "a kernel may have written it down";
}

TEST_F(UnseenConstantsTest, APointerThatIsCopiedMayBeFound) {
  EXPECT_EQ(behind_copy({1, 2, 3, kFirst + (1 << 20)}), "12");
  EXPECT_EQ(behind_copy(std::vector<std::uint64_t>(100'000)), "12");
  EXPECT_EQ(behind_copy({1, 2, 3, kSecond + kBytes}), "");
}

TEST_F(UnseenConstantsTest, OneSetWhoseAddressesMayBeKnownIsEnough) {
  const auto other = make_set(kSecond + (8 << 20));
  copies_.watch(other);
  EXPECT_EQ(behind_launch({0, 0}, true), "");
}

TEST_F(ConstantCopiesTest, AConstantMayBeInABankThatIsWatchedToo) {
  const auto bank = std::make_shared<OwnConstantSet>();
  bank->pairs.push_back({.program = {kFirst - 512, 4096}, .own = 2});
  copies_.watch(bank);
  const auto is_outdated = [&](std::uint64_t at) {
    bank->filled_on = stream_;
    copies_.note_write({at, 4});
    return bank->filled_on == nullptr;
  };
  EXPECT_TRUE(is_outdated(kFirst - 512));
  EXPECT_TRUE(is_outdated(kFirst));
  EXPECT_TRUE(is_outdated(kFirst + kBytes));
  EXPECT_TRUE(is_outdated(kFirst + 4096 - 516));
  EXPECT_FALSE(is_outdated(kFirst + 4096 - 512));
}

TEST_F(ConstantCopiesTest, ASetIsWatchedForAsLongAsItLives) {
  first_.reset();
  first_ = make_set(kFirst);
  EXPECT_EQ(behind_write(kFirst, 1), "12") << "the new one is not watched";
  second_.reset();
  copies_.note_write({kFirst, 1});
  EXPECT_TRUE(copies_.empty());
  second_ = make_set(kSecond);
}

TEST_F(ConstantCopiesTest, OtherStreamsCountOnTheFillingOnceItIsDone) {
  const LogicalStream other;
  EXPECT_FALSE(first_->is_current(*stream_));
  first_->filled_on = stream_;
  first_->filled_at = 5;
  stream_->completed = 4;
  EXPECT_TRUE(first_->is_current(*stream_));
  EXPECT_FALSE(first_->is_current(other));
  stream_->completed = 5;
  EXPECT_TRUE(first_->is_current(other));
}

}  // namespace
}  // namespace slate::daemon
