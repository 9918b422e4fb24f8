// Random kernels that store to shared memory and read it on sim, where earlier kernels have left
// something: a bounded copy gives what the kernel with all checks and all of its clearing gives.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "device/device.h"
#include "tests/unit/forms/form_runner.h"
#include "tests/unit/injector/fence/random_text.h"

namespace slate::test {
namespace {

constexpr std::uint32_t kSlots = 256;  // words of the result, one a thread of each block

/// Writes the text of one kernel. What it stores depends on nothing but the place, so that it does
/// not matter which thread is first; and it does not store to what it reads before a barrier.
class RandomSharedKernel : RandomText {
 public:
  explicit RandomSharedKernel(std::uint64_t seed)
      : RandomText(seed), dynamic_bytes_(chance(3) ? 4 * (16 + 8 * pick(4)) : 0) {}

  /// Of `two`; 0: it has a size.
  std::uint32_t dynamic_bytes() const { return static_cast<std::uint32_t>(dynamic_bytes_); }

  std::string text() {
    known_ = {"%r3", "%r4", "%r5", "%r6"};
    if (chance(8)) {
      reads();
      barrier();
    }
    for (int phases = 1 + pick(3); phases > 0; --phases) {
      statements(2 + pick(4), 0);
      barrier();
      if (!chance(2)) continue;
      reads();
      barrier();
    }
    reads();
    const int align = 4 << pick(3);
    const std::string two =
        fmt::format(".shared .align {} .b8 two[{}];\n", align, 4 * (16 + 8 * pick(4)));
    const std::string dynamic = fmt::format(".extern .shared .align {} .b8 two[];\n", align);
    return fmt::format(
        ".version 8.7\n.target sm_90\n.address_size 64\n{6}"
        ".visible .entry kernel(.param .u64 p, .param .u32 n)\n{{\n"
        ".reg .pred %p<{0}>;\n.reg .b32 %r<{0}>;\n.reg .b64 %rd<{0}>;\n"
        ".shared .align {1} .b8 one[{2}];\n"
        "ld.param.u64 %rd1, [p];\nld.param.u32 %r1, [n];\ncvta.to.global.u64 %rd1, %rd1;\n"
        "mov.u32 %r2, %ctaid.x;\nmov.u32 %r3, %tid.x;\nmov.u32 %r4, %tid.y;\n"
        "mov.u32 %r5, %ntid.x;\nmad.lo.u32 %r6, %r4, %r5, %r3;\nmov.u32 %r9, 0;\n"
        "mad.lo.u32 %r7, %r2, {3}, %r6;\nmul.wide.u32 %rd2, %r7, 4;\nadd.s64 %rd3, %rd1, %rd2;\n"
        "ld.global.u32 %r7, [%rd3];\nld.global.u32 %r8, [%rd3+{4}];\n{5}"
        "st.global.u32 [%rd3], %r9;\nEND:\nret;\n}}\n",
        next_, align, 4 * (16 + 8 * pick(16)), kSlots / 4, 4 * kSlots, body_,
        dynamic_bytes_ == 0 ? two : dynamic);
  }

 private:
  /// A number of the thread, or rarely one from memory.
  std::string value() {
    if (chance(14)) return chance(2) ? "%r7" : "%r8";
    return chance(3) ? "%r6" : one_of(known_);
  }
  std::string value_or_number() { return chance(2) ? std::to_string(pick(40)) : value(); }
  void barrier() { line("{};", chance(9) ? "barrier.sync 1" : "bar.sync 0"); }

  void arithmetic() {
    const std::string to = fresh("r");
    const char sign = chance(2) ? 's' : 'u';
    switch (pick(11)) {
      case 0:
        line("add.{}32 {}, {}, {};", sign, to, value(), value_or_number());
        break;
      case 1:
        line("sub.{}32 {}, {}, {};", sign, to, value(), value_or_number());
        break;
      case 2:
        line("shl.b32 {}, {}, {};", to, value(), chance(8) ? 30 + pick(5) : pick(4));
        break;
      case 3:
        line("shr.{}32 {}, {}, {};", sign, to, value(), chance(8) ? 30 + pick(5) : pick(4));
        break;
      case 4:
        line("{}.b32 {}, {}, {};", one_of<std::string>({"and", "or", "xor"}), to, value(),
             value_or_number());
        break;
      case 5:
        line("{}.{}32 {}, {}, {};", chance(2) ? "min" : "max", sign, to, value(),
             value_or_number());
        break;
      case 6:
        line("{}.{}32 {}, {}, {};", chance(2) ? "rem" : "div", sign, to, value(), 1 + pick(9));
        break;
      case 7:
        line("mad.lo.s32 {}, {}, {}, {};", to, value(), 1 + pick(4), value());
        break;
      case 8:
        widened(to);
        break;
      case 9:
        line("selp.b32 {}, {}, {}, {};", to, value(), value_or_number(), condition());
        break;
      default:
        line("{}.b32 {}, {};", chance(2) ? "not" : "mov", to, value());
        break;
    }
    known_.push_back(to);
  }

  void widened(const std::string& to) {
    const std::string wide = fresh("rd");
    const char sign = chance(2) ? 's' : 'u';
    if (chance(2)) {
      line("mul.wide.{}32 {}, {}, {};", sign, wide, value(), pick(6));
    } else {
      line("cvt.{}64.{}32 {}, {};", chance(2) ? 's' : 'u', sign, wide, value());
    }
    if (chance(2)) line("shr.{}64 {}, {}, {};", sign, wide, wide, pick(3));
    line("cvt.u32.u64 {}, {};", to, wide);
  }

  /// The register with the address of an element.
  std::string element(int bytes = 4) {
    const std::string at = fresh("r"), index = fresh("r");
    std::string from = chance(2) ? "%r6" : value();
    if (chance(3)) {
      line("and.b32 {}, {}, {};", index, from, 15 + 16 * pick(2));
      from = index;
    }
    line("mov.u32 {}, {};", at, chance(4) ? "two" : "one");
    line("mad.lo.s32 {0}, {1}, {2}, {0};", at, from, bytes);
    return at;
  }

  /// What is stored is an odd number that the place gives.
  void store() {
    const std::string at = element(), what = fresh("r");
    const int offset = chance(3) ? 4 * pick(20) : 0;
    const std::string guard = chance(4) ? "@" + condition() + " " : "";
    line("mad.lo.u32 {0}, {1}, 40503, {2};\nor.b32 {0}, {0}, 1;", what, at, 40503 * offset);
    line("{}st.shared.{} [{}+{}], {};", guard, chance(8) ? "u8" : "u32", at, offset, what);
  }

  void reads() {
    for (int i = 1 + pick(3); i > 0; --i) {
      const std::string at = element(chance(20) ? 2 : 4), found = fresh("r");
      line("ld.shared.{} {}, [{}+{}];", chance(5) ? "u8" : "u32", found, at,
           chance(2) ? 0 : 4 * pick(20));
      line("mad.lo.u32 %r9, %r9, 31, {};", found);
    }
  }

  std::string condition() {
    static const std::vector<std::string> kComparisons = {"lt", "le", "gt", "ge", "eq", "ne"};
    std::string p = fresh("p");
    line("setp.{}.{} {}, {}, {};", one_of(kComparisons), chance(3) ? "u32" : "s32", p, value(),
         value_or_number());
    if (!chance(3)) return p;
    std::string both = fresh("p");
    if (chance(2)) {
      const std::string other = condition();
      line("{}.pred {}, {}, {};", one_of<std::string>({"and", "or", "xor"}), both, p, other);
    } else {
      line("setp.{}.{}.s32 {}, {}, {}, {}{};", one_of(kComparisons),
           one_of<std::string>({"and", "or", "xor"}), both, value(), value_or_number(),
           chance(2) ? "!" : "", p);
    }
    return both;
  }

  void branch(int depth) {
    const std::string taken = (chance(2) ? "!" : "") + condition();
    branch_past(taken, 2, [&] {
      const auto known = known_;
      statements(1 + pick(2), depth + 1);
      known_ = known;
    });
  }

  /// Ends after 9 turns at the latest.
  void loop(int depth) {
    const std::string head = fmt::format("LOOP{}", next_++), end = fmt::format("END{}", next_++);
    const std::string counter = fresh("r"), turns = fresh("r"), p = fresh("p"), over = fresh("p");
    const auto known = known_;
    line("mov.u32 {}, {};\nmov.u32 {}, 0;", counter, value_or_number(), turns);
    const std::string limit = value_or_number();
    if (chance(3)) line("@{} bra {};", condition(), end);
    line("{}:", head);
    line("add.u32 {0}, {0}, 1;\nsetp.gt.u32 {1}, {0}, 9;\n@{1} bra {2};", turns, over, end);
    known_.push_back(counter);
    statements(1 + pick(2), depth + 1);
    if (chance(4)) line("@{} bra {};", condition(), end);
    line("add.s32 {0}, {0}, {1};\nsetp.{2}.s32 {3}, {0}, {4};\n@{3} bra {5};", counter,
         one_of<std::string>({"1", "%r5", "8", "-3"}), chance(4) ? "ne" : "lt", p, limit, head);
    line("{}:", end);
    known_ = known;
  }

  void statements(int count, int depth) {
    for (; count > 0; --count) {
      const int kind = pick(12);
      if (kind < 4)
        arithmetic();
      else if (kind < 8 || depth > 3)
        store();
      else if (kind < 10)
        branch(depth);
      else if (kind == 10)
        loop(depth);
      else if (chance(3))
        line("@{} bra END;", condition());
    }
  }

  const int dynamic_bytes_;
  std::vector<std::string> known_;  // registers with a number on every way here
};

class RandomSharedTest : public testing::TestWithParam<int> {};

TEST_P(RandomSharedTest, ABoundedCopyFindsAndStoresTheSame) {
  auto device =
      device::open_device("sim:sms=2,memory=256M,seed=5,max_kernel_seconds=60,leftovers=171");
  ASSERT_TRUE(device) << device.error().message;
  int bounded = 0;
  for (int i = 0; i < random_kernels() && !HasFailure(); ++i) {
    const auto seed = static_cast<std::uint64_t>(GetParam()) * 1'000'000 + i;
    RandomSharedKernel written(seed);
    const std::string text = written.text();
    SCOPED_TRACE(fmt::format("seed {}:\n{}", seed, text));
    std::mt19937_64 random(seed);
    const auto number = [&](std::uint32_t below) {
      return std::uniform_int_distribution<std::uint32_t>(0, below - 1)(random);
    };
    std::vector<std::uint32_t> words(2 * kSlots);
    for (std::uint32_t& word : words) word = number(50);
    const std::uint32_t rows = 1 + number(2);
    const KernelCase kernel{
        .name = "kernel",
        .entry = "kernel",
        .grid = {1 + number(4), 1, 1},
        .block = {number(2) == 0 ? 32 : 1 + number(32), rows, 1},
        .shared_bytes = written.dynamic_bytes(),
        .arguments = {Argument::buffer(words), Argument::value(std::uint32_t{0})}};
    FormRunner runner(**device, text, 0, true, &kernel);
    const Outcome native = runner.run_native(kernel);
    const bool is_violation = runner.take_record().state != injector::FenceRecord::kFree;
    const auto copied = runner.run_bounded(kernel);
    if (!copied) continue;
    ++bounded;
    EXPECT_EQ(difference(*copied, native), "");
    EXPECT_EQ(runner.take_record().state != injector::FenceRecord::kFree, is_violation);
  }
  EXPECT_GT(bounded, random_kernels() / 4) << "else this tests nothing";
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomSharedTest, testing::Range(1, 5));

}  // namespace
}  // namespace slate::test
