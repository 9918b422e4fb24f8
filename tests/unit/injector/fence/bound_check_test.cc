// BoundCheck and BoundAnswers say what hold() says, for random bounds and launches, in any order.
#include "injector/fence/bound_check.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <random>
#include <span>
#include <vector>

#include "injector/fence/bound_answers.h"

namespace slate::injector {
namespace {

constexpr std::size_t kParameterBytes = 32;
constexpr std::uint32_t kFirstNumbers = 4;  // steps that are numbers of the launch
constexpr std::uint64_t kExtentLow = 0x7f0000000000;

/// A launch with its own parameters.
struct OwnLaunch {
  std::vector<std::byte> parameters = std::vector<std::byte>(kParameterBytes);
  std::uint32_t grid[3] = {1, 1, 1}, block[3] = {1, 1, 1};
  std::uint32_t shared_bytes = 0;
  std::uint64_t low = kExtentLow, bytes = 1 << 24;

  LaunchValues values() const {
    return {.parameters = parameters,
            .grid = {grid[0], grid[1], grid[2]},
            .block = {block[0], block[1], block[2]},
            .shared_bytes = shared_bytes,
            .low = low,
            .bytes = bytes};
  }
  void set(std::size_t at, std::uint64_t value, std::size_t bytes_of_it) {
    std::memcpy(parameters.data() + at, &value, bytes_of_it);
  }
};

/// Random bounds, with launches some of which keep to them. The parameters are two pointers, three
/// numbers of 32 bits, and one that no step reads.
class RandomBounds {
 public:
  /// `last`: of the operations that steps may have.
  explicit RandomBounds(std::uint64_t seed, BoundOp last = BoundOp::kRounded)
      : random_(seed), is_wild_(pick(4) == 0), ops_(static_cast<std::size_t>(last) + 1) {
    launch_ = launch();
    steps_.push_back({});
    for (std::uint32_t i = 0; i < kFirstNumbers; ++i) steps_.push_back(leaf());
    const std::size_t count = 5 + pick(50);
    while (steps_.size() < count) steps_.push_back(step());
    const std::size_t claims = 1 + pick(12);
    for (std::size_t i = 0; i < claims; ++i) claims_.push_back(claim());
  }

  AccessBounds bounds() const { return {.steps = steps_, .claims = claims_}; }
  const OwnLaunch& present() const { return launch_; }

  /// The next launch: a few numbers are others.
  const OwnLaunch& next() {
    if (pick(40) == 0) launch_ = launch();
    for (std::size_t changes = pick(3); changes > 0; --changes) change();
    return launch_;
  }

  /// Ranges around the numbers.
  std::vector<InputRange> ranges(std::span<const std::uint64_t> numbers) {
    std::vector<InputRange> all;
    for (const std::uint64_t number : numbers) {
      const std::uint64_t below = pick(2) == 0 ? 0 : std::min<std::uint64_t>(number, size());
      const std::uint64_t above = pick(2) == 0 ? 0 : size();
      unsigned zeros = zeros_of(number);
      if (below + above != 0) zeros = std::min(zeros, static_cast<unsigned>(pick(4)));
      all.push_back({.low = number - below, .high = number + above, .zeros = zeros});
    }
    return all;
  }

  /// A launch with numbers out of the ranges. The rest is as at present.
  OwnLaunch within(const BoundCheck& check, std::span<const InputRange> ranges) {
    // Changes that lead outside are dropped.
    std::vector<std::uint64_t> numbers(check.inputs());
    OwnLaunch drawn = launch_;
    for (int i = 0; i < 30; ++i) {
      OwnLaunch changed = drawn;
      std::swap(changed, launch_);
      change();
      std::swap(changed, launch_);
      if (check.read(changed.values(), numbers) && are_within(numbers, ranges)) drawn = changed;
    }
    return drawn;
  }

  std::size_t pick(std::size_t below) { return random_() % below; }

 private:
  static bool are_within(std::span<const std::uint64_t> numbers,
                         std::span<const InputRange> ranges) {
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      if (numbers[i] < ranges[i].low || numbers[i] > ranges[i].high ||
          zeros_of(numbers[i]) < ranges[i].zeros) {
        return false;
      }
    }
    return true;
  }

  /// Mostly small, seldom of any size.
  std::uint64_t size() {
    const bool is_any = is_wild_ && pick(12) == 0;
    return is_any ? random_() >> pick(64) : random_() % (std::uint64_t{2} << pick(16));
  }

  OwnLaunch launch() {
    OwnLaunch made;
    for (const std::size_t at : {0, 8}) made.set(at, kExtentLow + 16 * size(), 8);
    for (const std::size_t at : {16, 20, 24}) made.set(at, size(), 4);
    for (int axis = 0; axis < 3; ++axis) {
      made.grid[axis] = 1 + static_cast<std::uint32_t>(pick(200));
      made.block[axis] = 1 + static_cast<std::uint32_t>(pick(32));
    }
    made.shared_bytes = static_cast<std::uint32_t>(pick(1000));
    return made;
  }

  void change() {
    std::uint32_t* const axis = pick(2) == 0 ? launch_.grid : launch_.block;
    switch (pick(8)) {
      case 0:
        return launch_.set(8 * pick(2), kExtentLow + (std::uint64_t{1} << pick(5)) * size(), 8);
      case 1:
        axis[pick(3)] = 1 + static_cast<std::uint32_t>(pick(200));
        return;
      case 2:
        launch_.shared_bytes = static_cast<std::uint32_t>(pick(1000));
        return;
      case 3:
        if (pick(4) != 0) return launch_.set(28, random_(), 4);
        launch_.low = kExtentLow - 16 * pick(100);
        launch_.bytes = std::uint64_t{1} << (16 + pick(16));
        return;
      case 4:
        return launch_.set(16 + 4 * pick(3), size(), 4);
      default: {
        std::uint32_t value = 0;
        const std::size_t at = 16 + 4 * pick(3);
        std::memcpy(&value, launch_.parameters.data() + at, sizeof(value));
        value += pick(2) == 0 ? 1u : static_cast<std::uint32_t>(pick(40)) - 20u;
        return launch_.set(at, value, 4);
      }
    }
  }

  std::uint32_t earlier() {
    const std::size_t count = steps_.size();
    const std::size_t back = pick(3) == 0 ? pick(count) : pick(std::min<std::size_t>(count, 8));
    return static_cast<std::uint32_t>(count - 1 - back);
  }

  std::int64_t number() {
    constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
    switch (is_wild_ ? pick(20) : 3) {
      case 0:
        return static_cast<std::int64_t>(random_());
      case 1:
        return pick(2) == 0 ? kMost : -kMost - static_cast<std::int64_t>(pick(2));
      case 2:
        return std::int64_t{1} << (58 + pick(5));
      default:
        return pick(2) == 0 ? static_cast<std::int64_t>(pick(70)) - 10 : std::int64_t{1} << pick(8);
    }
  }

  BoundStep leaf() {
    switch (pick(3)) {
      case 0:
        return {.op = BoundOp::kNumber, .value = static_cast<std::int64_t>(pick(20))};
      case 1:
        return {.op = pick(2) == 0 ? BoundOp::kThreads : BoundOp::kBlocks,
                .value = static_cast<std::int64_t>(pick(3))};
      default:
        return {.op = BoundOp::kParameter,
                .bits = 32,
                .value = 16 + 4 * static_cast<std::int64_t>(pick(3))};
    }
  }

  BoundStep step() {
    static constexpr std::uint8_t kBits[] = {8, 16, 32, 32, 32, 32, 32, 64, 64, 64};
    static constexpr std::uint8_t kOddBits[] = {1, 7, 33, 60, 61, 62, 63};
    BoundStep made{.bits = is_wild_ && pick(20) == 0 ? kOddBits[pick(7)] : kBits[pick(10)],
                   .is_signed = pick(2) == 0,
                   .a = earlier(),
                   .b = earlier(),
                   .c = earlier(),
                   .value = number()};
    made.op = static_cast<BoundOp>(pick(5) == 0 ? pick(6) : pick(ops_));
    if (pick(3) == 0) made.op = pick(2) == 0 ? BoundOp::kAdd : BoundOp::kSubtract;
    // Products of products soon have no bound.
    if (made.op == BoundOp::kMultiply && pick(4) != 0)
      made.b = 1 + static_cast<std::uint32_t>(pick(kFirstNumbers));
    if (made.op == BoundOp::kIndex && pick(4) != 0)
      made.a = 1 + static_cast<std::uint32_t>(pick(kFirstNumbers));
    if (made.bits == 64 && !is_wild_) made.is_signed = true;
    if (made.op == BoundOp::kThreads || made.op == BoundOp::kBlocks)
      made.value = static_cast<std::int64_t>(pick(pick(50) == 0 ? 4 : 3));
    if (made.op == BoundOp::kShiftRight) made.value = static_cast<std::int64_t>(pick(10));
    if (made.op == BoundOp::kWithin) made = within_of(made);
    if (made.op == BoundOp::kRounded) made.value = static_cast<std::int64_t>(pick(5));
    if (made.op == BoundOp::kInvariant && pick(4) != 0) made.c = steps_[made.a].a;
    if (made.op == BoundOp::kParameter) {
      const std::size_t which = pick(5);
      made.bits = which < 2 ? 64 : 32;
      made.value = static_cast<std::int64_t>(which < 2 ? 8 * which : 16 + 4 * (which - 2));
    }
    return made;
  }

  /// A register's number, or what a comparison leaves of it, as the finder makes this step.
  BoundStep within_of(BoundStep made) {
    made.b = earlier();
    const BoundStep& compared = steps_[made.b];
    if (compared.op != BoundOp::kAtMost && compared.op != BoundOp::kAtLeast)
      made.op = BoundOp::kRead;
    made.bits = compared.bits;
    made.is_signed = compared.is_signed;
    made.a = compared.a;
    return made;
  }

  bool holds(const BoundClaim& claim) const {
    return hold({.steps = steps_, .claims = {claim}}, launch_.values());
  }

  /// A claim that the launch just keeps to, where there is one of its kind.
  BoundClaim claim() {
    const auto step = static_cast<std::uint32_t>(pick(steps_.size()));
    const std::uint32_t bytes = 1u << pick(5);
    if (pick(6) == 0)
      return {.kind = BoundClaim::Kind::kAligned, .bytes = 1u << pick(4), .limit = 8 * pick(2)};
    if (pick(4) == 0) {
      BoundClaim made{.kind = BoundClaim::Kind::kMultiple, .step = step, .bytes = 1u << 15};
      while (made.bytes > 1 && !holds(made)) made.bytes /= 2;
      return made;
    }
    if (pick(3) == 0) {
      const BoundClaim made{.step = step, .bytes = bytes};
      if (holds(made)) return made;
    }
    BoundClaim made{.kind = BoundClaim::Kind::kInVariable, .step = step, .bytes = bytes};
    // The least limit.
    for (std::uint64_t bit = std::uint64_t{1} << 62; bit != 0; bit /= 2) {
      made.limit += bit;
      if (holds(made)) made.limit -= bit;
    }
    ++made.limit;
    return holds(made) ? made : BoundClaim{.kind = BoundClaim::Kind::kMultiple, .bytes = 1};
  }

  std::mt19937_64 random_;
  const bool is_wild_;  // whether some numbers are as large as can be
  const std::size_t ops_;
  std::vector<BoundStep> steps_;
  std::vector<BoundClaim> claims_;
  OwnLaunch launch_;
};

class BoundCheckTest : public testing::TestWithParam<std::uint64_t> {};

TEST_P(BoundCheckTest, SaysWhatHoldSaysAsNumbersChange) {
  int yes = 0, no = 0;
  for (std::uint64_t i = 0; i < 300; ++i) {
    RandomBounds random(1000 * GetParam() + i, BoundOp::kInvariant);
    const AccessBounds bounds = random.bounds();
    BoundCheck check(bounds);
    std::vector<std::uint64_t> numbers(check.inputs());
    for (int turn = 0; turn < 40; ++turn) {
      const LaunchValues launch = random.next().values();
      const bool expected = hold(bounds, launch);
      if (!check.read(launch, numbers)) continue;
      ASSERT_EQ(check.hold(launch, numbers), expected) << "bounds " << i << ", launch " << turn;
      ++(expected ? yes : no);
      if (random.pick(3) == 0) check.hold_within(launch, random.ranges(numbers));
    }
  }
  EXPECT_GT(yes, 500);
  EXPECT_GT(no, 500);
}

TEST_P(BoundCheckTest, RangesHoldOnlyWhereAllTheirLaunchesDo) {
  int yes = 0;
  for (std::uint64_t i = 0; i < 300; ++i) {
    RandomBounds random(1000 * GetParam() + i);
    const AccessBounds bounds = random.bounds();
    BoundCheck check(bounds);
    std::vector<std::uint64_t> numbers(check.inputs());
    for (int turn = 0; turn < 10; ++turn) {
      const LaunchValues launch = random.next().values();
      if (!check.read(launch, numbers)) continue;
      const auto ranges = random.ranges(numbers);
      if (!check.hold_within(launch, ranges)) continue;
      ++yes;
      for (int other = 0; other < 5; ++other) {
        const OwnLaunch drawn = random.within(check, ranges);
        if (drawn.low != launch.low || drawn.bytes != launch.bytes) continue;
        ASSERT_TRUE(hold(bounds, drawn.values())) << "bounds " << i << ", ranges " << turn;
      }
    }
  }
  EXPECT_GT(yes, 100);
}

TEST_P(BoundCheckTest, AnswersAreThoseOfHold) {
  int yes = 0, no = 0;
  for (std::uint64_t i = 0; i < 300; ++i) {
    RandomBounds random(1000 * GetParam() + i);
    const AccessBounds bounds = random.bounds();
    BoundAnswers answers(bounds);
    for (int turn = 0; turn < 40; ++turn) {
      const LaunchValues launch = random.next().values();
      const bool expected = hold(bounds, launch);
      ASSERT_EQ(answers.hold(launch), expected) << "bounds " << i << ", launch " << turn;
      ++(expected ? yes : no);
    }
  }
  EXPECT_GT(yes, 500);
  EXPECT_GT(no, 500);
}

/// The byte of number `first` + a thread's index in an array of `length` bytes at the extent's low
/// end. No step reads the factor behind it.
class RisingTest : public testing::Test {
 protected:
  static AccessBounds bounds() {
    return {.steps = {{},
                      {.op = BoundOp::kParameter, .value = 0},
                      {.op = BoundOp::kParameter, .bits = 32, .value = 16},
                      {.op = BoundOp::kThreads},
                      {.op = BoundOp::kIndex, .a = 3},
                      {.op = BoundOp::kAdd, .a = 1, .b = 2},
                      {.op = BoundOp::kAdd, .a = 5, .b = 4}},
            .claims = {{.step = 6, .bytes = 1},
                       {.kind = BoundClaim::Kind::kAligned, .bytes = 4, .limit = 0}}};
  }

  bool hold(std::uint32_t first, std::uint32_t factor = 0, std::uint64_t pointer = kExtentLow) {
    OwnLaunch launch;
    launch.set(0, pointer, 8);
    launch.set(16, first, 4);
    launch.set(28, factor, 4);
    launch.block[0] = 16;
    launch.bytes = kLength;
    return answers_.hold(launch.values());
  }

  static constexpr std::uint32_t kLength = 10'000;
  BoundAnswers answers_{bounds()};
};

TEST_F(RisingTest, ANumberThatRisesToItsEndNeedsFewAnswers) {
  for (std::uint32_t first = 0; first < kLength; ++first)
    ASSERT_EQ(hold(first), first + 16 <= kLength) << first;
  EXPECT_LT(answers_.computed(), 150u);
}

TEST_F(RisingTest, ANumberThatFallsNeedsFewAnswers) {
  for (std::uint32_t first = kLength - 16; first > 0; --first) ASSERT_TRUE(hold(first)) << first;
  EXPECT_LT(answers_.computed(), 50u);
}

TEST_F(RisingTest, ANumberThatNoStepReadsNeedsNoNewAnswer) {
  for (std::uint32_t factor = 0; factor < 1'000; ++factor) ASSERT_TRUE(hold(5, factor));
  EXPECT_EQ(answers_.computed(), 1u);
}

TEST_F(RisingTest, RangesOfPointersKeepTheirAlignment) {
  for (std::uint64_t step = 0; step < 100; ++step) {
    EXPECT_TRUE(hold(0, 0, kExtentLow + 4 * step));
    EXPECT_FALSE(hold(0, 0, kExtentLow + 4 * step + 2));
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, BoundCheckTest, testing::Range<std::uint64_t>(0, 8));

}  // namespace
}  // namespace slate::injector
