// Random kernels of loops, counters and conditions on sim: an access without a check stays in the
// least range for which the bounds of its launch hold. A bound that is too narrow is a fault.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "device/device.h"
#include "tests/unit/forms/form_runner.h"
#include "tests/unit/injector/fence/random_text.h"

namespace slate::test {
namespace {

constexpr std::uint32_t kWords = 1 << 16;  // of the buffer, whose middle the kernel is given

/// Writes the text of one kernel.
class RandomKernel : RandomText {
 public:
  explicit RandomKernel(std::uint64_t seed) : RandomText(seed) {}

  std::string text() {
    known_ = {"%r1", "%r2", "%r3", "%r4", "%r5", "%r6", "%r7"};
    if (chance(3))
      march();
    else if (chance(2))
      chance(3) ? leave() : wander();
    else
      statements(4 + pick(5), 0);
    const bool is_loop = chance(5);
    if (is_loop) begin_again();
    return fmt::format(
        ".version 8.7\n.target sm_90\n.address_size 64\n"
        ".visible .entry kernel(.param .u64 p, .param .u32 n, .param .u32 m)\n{{\n"
        ".reg .pred %p<{0}>;\n.reg .b32 %r<{0}>;\n.reg .b64 %rd<{0}>;\n"
        "{3}ld.param.u64 %rd1, [p];\nld.param.u32 %r1, [n];\nld.param.u32 %r2, [m];\n"
        "cvta.to.global.u64 %rd2, %rd1;\nadd.s64 %rd2, %rd2, {1};\nmov.u32 %r3, %ctaid.x;\n"
        "mov.u32 %r4, %ntid.x;\nmov.u32 %r5, %tid.x;\nmov.u32 %r6, %tid.y;\n"
        "mad.lo.s32 %r7, %r3, %r4, %r5;\n"
        "ld.global.u32 %r8, [%rd2];\nld.global.u32 %r9, [%rd2+4];\n{2}\nret;\n}}\n",
        next_, 2 * kWords, body_, is_loop ? "START:\n" : "");
  }

 private:
  struct Counter {
    std::string name;
    std::int64_t growth;
    bool is_pointer = false;
  };

  /// The whole function as a loop of a few turns.
  void begin_again() {
    const std::string turns = fresh("r"), over = fresh("p"), end = fmt::format("END{}", next_++);
    line("add.u32 {0}, {0}, 1;\nsetp.gt.u32 {1}, {0}, 2;\n@{1} bra {2};", turns, over, end);
    const std::string again = comparison();
    line("@{} bra START;\n{}:", again, end);
  }

  std::string value() { return one_of(known_); }
  std::string value_or_number() { return chance(2) ? std::to_string(pick(70) - 5) : value(); }

  void arithmetic() {
    const std::string to = fresh("r");
    switch (pick(12)) {
      case 0:
        line("add.s32 {}, {}, {};", to, value(), value_or_number());
        break;
      case 1:
        line("sub.s32 {}, {}, {};", to, value(), value_or_number());
        break;
      case 2:
        line("shl.b32 {}, {}, {};", to, value(), pick(4));
        break;
      case 3:
        line("shr.{} {}, {}, {};", chance(2) ? "u32" : "s32", to, value(), pick(6));
        break;
      case 4:
        line("and.b32 {}, {}, {};", to, value(), chance(2) ? pick(256) : 0x7fffffe0);
        break;
      case 5:
        line("or.b32 {}, {}, {};", to, value(), value());
        break;
      case 6:
        least_or_most(to);
        break;
      case 7:
        line("rem.u32 {}, {}, {};", to, value(), 1 + pick(60));
        break;
      case 8:
        line("mad.lo.s32 {}, {}, {}, {};", to, value(), 1 + pick(6), value());
        break;
      case 9:
        rest(to);
        break;
      case 10:
        rounded(to);
        break;
      default:
        line("and.b32 {}, {}, 63;", to, chance(2) ? "%r8" : "%r9");
        break;
    }
    known_.push_back(to);
  }

  /// The smaller or larger one of two numbers: whole ones, or seldom fractions.
  void least_or_most(const std::string& to) {
    static const std::vector<std::string> kTypes = {"u32", "s32", "u32", "s32", "f32"};
    const std::string type = one_of(kTypes);
    line("{}.{} {}, {}, {};", chance(2) ? "min" : "max", type, to, value(),
         type == "f32" ? value() : value_or_number());
  }

  /// What a division leaves, or nearly.
  void rest(const std::string& to) {
    const bool is_late = chance(6);  // in a loop the quotient is of the last turn's dividend
    const std::string quotient = fresh("r"), product = fresh("r");
    const std::string dividend = is_late ? fresh("r") : value();
    const std::string type = chance(2) ? "u32" : "s32", divisor = std::to_string(1 + pick(60));
    line("div.{} {}, {}, {};", type, quotient, dividend, divisor);
    if (is_late) line("mov.u32 {}, {};", dividend, value());
    line("mul.{}.{} {}, {}, {};", chance(9) ? "hi" : "lo", type, product, quotient,
         chance(9) ? "7" : divisor);
    line("sub.s32 {}, {}, {};", to, chance(9) ? value() : dividend, product);
  }

  /// A number without its lowest bits, or nearly.
  void rounded(const std::string& to) {
    const std::string bits = fresh("r"), from = value();
    line("and.b32 {}, {}, {};", bits, from, chance(9) ? 6 : (1 << (1 + pick(3))) - 1);
    line("sub.s32 {}, {}, {};", to, chance(9) ? value() : from, bits);
  }

  /// An address of 32 bits made one of 64, and back.
  void there_and_back() {
    const std::string wide = fresh("rd"), to = fresh("r");
    line("cvt.{}64.{}32 {}, {};", chance(2) ? 's' : 'u', chance(2) ? 's' : 'u', wide, value());
    if (chance(2)) line("add.s64 {0}, {0}, 0;", wide);
    line("cvt.u32.u64 {}, {};", to, wide);
    known_.push_back(to);
  }

  void access() {
    const std::string offset = fresh("rd"), address = fresh("rd");
    if (!pointers_.empty() && chance(2)) {
      line("{} [{}+{}], %r5;", chance(6) ? "red.global.add.u32" : "st.global.u32",
           one_of(pointers_), 4 * pick(9));
      return;
    }
    line("mul.wide.{} {}, {}, 4;", chance(2) ? "s32" : "u32", offset, value());
    line("add.s64 {}, %rd2, {};", address, offset);
    line("st.global.u32 [{}+{}], %r5;", address, 4 * (pick(9) - 4));
  }

  /// A predicate of comparisons, or one that is false but for threads of which another is true.
  std::string condition() {
    if (!chance(4)) return comparison();
    const std::string inside = comparison(), p = fresh("p"), end = fmt::format("END{}", next_++);
    if (chance(2)) line("mov.pred {}, 0;", p);
    line("@!{} bra {};", inside, end);
    const std::string other = comparison();
    line("{}.pred {}, {}, {};\n{}:", chance(4) ? "or" : "and", p, inside, other, end);
    return p;
  }

  /// A predicate of one comparison or two.
  std::string comparison() {
    static const std::vector<std::string> kSigned = {"lt", "le", "gt", "ge", "eq", "ne"};
    const auto compare = [&] {
      std::string p = fresh("p");
      line("setp.{}.{} {}, {}, {};", one_of(kSigned), chance(3) ? "u32" : "s32", p, value(),
           value_or_number());
      return p;
    };
    std::string first = compare();
    if (chance(2)) return first;
    const std::string second = compare(), both = fresh("p");
    line("{}.pred {}, {}, {};", chance(2) ? "and" : "or", both, first, second);
    return both;
  }

  void branch(int depth) {
    const std::string end = fmt::format("END{}", next_++);
    const auto known = known_;
    line("@{}{} bra {};", chance(2) ? "!" : "", condition(), end);
    statements(1 + pick(3), depth + 1);
    known_ = known;
    line("{}:", end);
  }

  /// Another number in a register that has one.
  void assignment() {
    if (!drifting_.empty() && !chance(3)) return drift();
    if (changing_.empty()) return;
    line("mov.u32 {}, {};", one_of(changing_), value_or_number());
  }

  /// A sum, a copy, or seldom anything, in a register that a loop changes on some of its ways.
  void drift() {
    const std::string to = one_of(drifting_), from = chance(2) ? to : one_of(drifting_);
    const std::string guard = chance(6) ? fmt::format("@{} ", comparison()) : "";
    if (chance(12)) {
      line("{}mov.u32 {}, {};", guard, to, value_or_number());
    } else if (chance(6)) {
      line("{}mov.u32 {}, {};", guard, to, from);
    } else {
      static const std::vector<std::string> kSums = {"%r5", "%r6", "%r1", "1", "7", "-3"};
      line("{}{}.s32 {}, {}, {};", guard, chance(4) ? "sub" : "add", to, from, one_of(kSums));
    }
  }

  /// A loop that surely ends, and does little but change registers by sums.
  void march() {
    const auto known = known_, drifting = drifting_;
    const std::string head = fmt::format("LOOP{}", next_++), turn = fresh("r"), p = fresh("p");
    if (chance(2)) statements(1, 2);
    while (drifting_.empty()) begin_drifting();
    begin_drifting();
    line("mov.u32 {}, {};\n{}:", turn, pick(4), head);
    march_on(2 + pick(6), turn, 0);
    line("add.s32 {0}, {0}, {1};", turn, 1 + pick(3));
    line("setp.lt.s32 {}, {}, {};\n@{} bra {};", p, turn, chance(2) ? "%r4" : "17", p, head);
    if (chance(2)) march_access(one_of(drifting_));
    known_ = known;
    drifting_ = drifting;
  }

  void march_on(int count, const std::string& turn, int depth) {
    for (; count > 0; --count) {
      const int kind = pick(8);
      if (kind < 4) {
        drift();
      } else if (kind < 6) {
        march_access(one_of(drifting_));
      } else if (depth < 3) {
        const std::string end = fmt::format("END{}", next_++), p = fresh("p");
        line("setp.{}.s32 {}, {}, {};", chance(2) ? "lt" : "ge", p, chance(2) ? turn : "%r5",
             pick(12));
        line("@{} bra {};", p, end);
        march_on(1 + pick(3), turn, depth + 1);
        line("{}:", end);
      }
    }
  }

  /// `apart`: bytes added to the address.
  void march_access(const std::string& index, bool is_bytes = false, int apart = 0) {
    const std::string offset = fresh("rd"), address = fresh("rd");
    line("mul.wide.s32 {}, {}, {};\nadd.s64 {}, %rd2, {};", offset, index, is_bytes ? 1 : 4,
         address, offset);
    line("st.global.u32 [{}+{}], %r5;", address, apart);
  }

  /// A loop in which a register goes up and down, by what nobody can know from the text. Conditions
  /// keep it between two numbers, or nearly. It counts elements, or bytes.
  void wander() {
    const auto known = known_, drifting = drifting_;
    const std::string number = fresh("r"), turns = fresh("r"), over = fresh("p"), any = fresh("r");
    const bool is_bytes = chance(3);
    const auto end_number = [&] {
      if (is_bytes) return std::to_string(4 * pick(40) + (chance(8) ? 2 : 0));
      static const std::vector<std::string> kSame = {"%r1", "%r2", "%r4", "10", "20"};
      return chance(3) ? value_or_number() : one_of(kSame);
    };
    const auto step = [&] {
      if (is_bytes) return chance(9) ? 2 : 4 * (1 + pick(2));
      return chance(3) ? 1 + pick(5) : 1;
    };
    const std::string low = end_number(), high = end_number();
    const std::string head = fmt::format("LOOP{}", next_++), down = fmt::format("DOWN{}", next_++);
    const std::string again = fmt::format("AGAIN{}", next_++), end = fmt::format("END{}", next_++);
    line("mov.u32 {}, {};", number, chance(3) ? end_number() : low);
    if (chance(3)) line("add.s32 {0}, {0}, {1};", number, step());
    drifting_.push_back(number);
    if (chance(6)) begin_drifting();
    // In front of all others a number that is too small is seen.
    const int apart = chance(2) ? 0 : -1600;
    const auto access = [&] {
      if (chance(2)) march_access(chance(9) ? one_of(drifting_) : number, is_bytes, apart);
    };
    if (!chance(4))
      line("setp.ge.s32 {0}, {1}, {2};\n@{0} bra {3};", fresh("p"), number, high, end);
    line("mov.u32 {}, %r8;\n{}:", turns, head);
    line("add.u32 {0}, {0}, 1;\nsetp.ge.u32 {1}, {0}, 30;\n@{1} bra {2};", turns, over, end);
    line("xor.b32 {0}, {1}, %r5;\nand.b32 {0}, {0}, {2};", any, turns, 1 + pick(7));
    access();
    line("setp.eq.s32 {0}, {1}, 0;\n@{0} bra {2};", fresh("p"), any, down);
    line("add.s32 {0}, {0}, {1};", number, step());
    access();
    if (chance(9)) drift();
    static const std::vector<std::string> kBelow = {"ne", "ne", "lt", "le"};
    line("setp.{0}.{1} {2}, {3}, {4};\n@{2} bra {5};", one_of(kBelow), chance(3) ? "u32" : "s32",
         fresh("p"), number, high, again);
    if (!chance(4)) line("mov.u32 {}, {};", number, chance(4) ? end_number() : high);
    line("{}:\nadd.s32 {}, {}, -{};", down, number, number, step());
    access();
    line("{}:", again);
    const std::string p = fresh("p");
    turn_or_not(number, low, p, step());
    line("@{} bra {};\n{}:", p, head, end);
    if (chance(2)) march_access(number, is_bytes, apart);
    known_ = known;
    drifting_ = drifting;
  }

  /// A loop in which a register becomes what is loaded, or moves away from what it began with.
  void leave() {
    const auto known = known_;
    const std::string number = fresh("r"), turns = fresh("r"), any = fresh("r"), sum = fresh("r");
    const std::string over = fresh("p"), p = fresh("p"), begin = chance(2) ? "%r5" : value();
    const std::string head = fmt::format("LOOP{}", next_++), away = fmt::format("AWAY{}", next_++);
    const std::string again = fmt::format("AGAIN{}", next_++);
    line("mov.u32 {}, {};\nmov.u32 {}, %r8;\n{}:", number, begin, turns, head);
    march_access(number, false, chance(2) ? 0 : -1600);
    line("add.u32 {0}, {0}, 1;\nxor.b32 {1}, {0}, %r6;\nand.b32 {1}, {1}, {2};", turns, any,
         (1 << pick(5)) - 1);
    line("setp.eq.s32 {0}, {1}, {2};\n@{0} bra {3};", p, any, pick(3), away);
    line("mov.u32 {}, {};\nbra {};\n{}:", number, any, again, away);
    line("add.s32 {0}, {1}, {1};\nsub.s32 {1}, {0}, {2};", sum, number, begin);
    if (chance(2)) line("min.s32 {0}, {0}, {1};\nmax.s32 {0}, {0}, 0;", number, value_or_number());
    line("{0}:\nsetp.lt.u32 {1}, {2}, 20;\n@{1} bra {3};", again, over, turns, head);
    known_ = known;
  }

  /// The comparison for another turn, behind which the number may change once more.
  void turn_or_not(const std::string& number, const std::string& low, const std::string& p,
                   int step) {
    static const std::vector<std::string> kAbove = {"ge", "ge", "gt", "ne"};
    const std::string sum = fresh("r");
    const int by = chance(2) ? step : -step;
    if (chance(4)) line("add.s32 {}, {}, {};", sum, number, by);
    if (chance(4)) line("add.s32 {0}, {0}, {1};", number, step);
    line("setp.{}.s32 {}, {}, {};", one_of(kAbove), p, number, low);
    switch (pick(7)) {
      case 0:
        line("add.s32 {0}, {0}, {1};", number, by);
        break;
      case 1:
        line("add.s32 {0}, {1}, {2};\nmov.u32 {1}, {0};", sum, number, by);
        break;
      case 2:
        line("mov.u32 {}, {};", number, chance(2) ? sum : value_or_number());
        break;
      case 3:
        drift();
        break;
      default:
        break;
    }
  }

  /// Registers that drift in the loop that comes, of which one may have no number yet.
  void begin_drifting() {
    for (int i = pick(3); i > 0; --i) {
      const std::string name = fresh("r");
      const std::string guard = chance(4) ? fmt::format("@{} ", condition()) : "";
      if (!chance(4)) line("{}mov.u32 {}, {};", guard, name, value_or_number());
      known_.push_back(name);
      drifting_.push_back(name);
    }
  }

  Counter begin_counter() {
    static const std::vector<std::int64_t> kGrowths = {1, 1, 2, 4, 8, 32, -1, -1, -2, -4};
    Counter counter{.name = fresh("r"), .growth = one_of(kGrowths)};
    line("mov.u32 {}, {};", counter.name, value_or_number());
    known_.push_back(counter.name);
    return counter;
  }

  Counter begin_pointer() {
    Counter counter{.name = fresh("rd"), .growth = 4 * (pick(12) - 3), .is_pointer = true};
    const std::string offset = fresh("rd");
    line("mul.wide.s32 {}, {}, 4;", offset, value());
    line("add.s64 {}, %rd2, {};", counter.name, offset);
    return counter;
  }

  void change(const Counter& counter) {
    const char* const type = counter.is_pointer ? "s64" : "s32";
    const std::string_view kind = counter.is_pointer ? "rd" : "r";
    if (chance(3)) {
      const std::string sum = fresh(kind);
      line("add.{} {}, {}, {};", type, sum, counter.name, counter.growth + 3);
      line("add.{} {}, {}, -3;", type, counter.name, sum);
    } else if (chance(3)) {
      const std::string sum = fresh(kind);
      line("add.{} {}, {}, {};", type, sum, counter.name, counter.growth);
      line("mov.b{} {}, {};", counter.is_pointer ? 64 : 32, counter.name, sum);
    } else {
      line("add.{0} {1}, {1}, {2};", type, counter.name, counter.growth);
    }
  }

  /// A condition for another turn: on a counter or what is made of it.
  std::string turn(const Counter& counter, const std::string& before) {
    static const std::vector<std::string> kRising = {"lt", "le", "ne", "lt"};
    static const std::vector<std::string> kFalling = {"gt", "ge", "ne", "gt"};
    std::string compared = chance(4) ? before : counter.name;
    if (chance(3)) {
      const std::string sum = fresh("r");
      line("add.s32 {}, {}, {};", sum, compared, chance(2) ? std::to_string(pick(9) - 4) : value());
      compared = sum;
    }
    std::string p = fresh("p");
    line("setp.{}.{} {}, {}, {};", one_of(counter.growth > 0 ? kRising : kFalling),
         chance(3) ? "u32" : "s32", p, compared, value_or_number());
    return p;
  }

  /// Ends after 40 turns at the latest, by numbers that nobody can know from the text.
  void loop(int depth) {
    const std::string head = fmt::format("LOOP{}", next_++), end = fmt::format("END{}", next_++);
    const std::string limit = fresh("r"), turns = fresh("r"), over = fresh("p");
    const auto known = known_, changing = changing_, pointers = pointers_, drifting = drifting_;
    std::vector<Counter> counters;
    if (chance(3)) statements(1, depth + 1);
    if (chance(2)) begin_drifting();
    for (int i = 1 + pick(3); i > 0; --i) counters.push_back(begin_counter());
    if (chance(2)) counters.push_back(begin_pointer());
    const bool is_shifted = chance(5);
    const std::string shifted = fresh("r");
    if (is_shifted) line("mov.u32 {}, {};", shifted, value());
    if (chance(4)) {
      const std::string skips = condition();
      line("@{} bra {};", skips, end);
    }
    line("ld.global.u32 {}, [%rd2+8];\nld.global.u32 {}, [%rd2];", limit, turns);
    for (const Counter& counter : counters) {
      if (counter.is_pointer)
        pointers_.push_back(counter.name);
      else if (chance(3))
        changing_.push_back(counter.name);
    }
    line("{}:", head);
    line("add.u32 {0}, {0}, 1;\nsetp.ge.u32 {1}, {0}, {2};\n@{1} bra {3};", turns, over, limit,
         end);
    statements(1 + pick(4), depth + 1);
    for (int i = drifting_.empty() ? 0 : pick(4); i > 0; --i) drift();
    if (chance(2)) access();
    const Counter& compared = counters.front();
    const std::string before = fresh("r");
    line("add.s32 {}, {}, 0;", before, compared.name);
    for (const Counter& counter : counters) change(counter);
    if (is_shifted) {
      const std::string p = fresh("p");
      line("shr.u32 {0}, {0}, {1};\nsetp.ne.s32 {2}, {0}, 0;\n@{2} bra {3};", shifted, 1 + pick(3),
           p, head);
    } else {
      line("@{} bra {};", turn(compared, before), head);
    }
    line("{}:", end);
    known_ = known;
    changing_ = changing;
    pointers_ = pointers;
    drifting_ = drifting;
  }

  void statements(int count, int depth) {
    for (; count > 0; --count) {
      const int kind = pick(10);
      if (kind < 3)
        arithmetic();
      else if (kind < 6)
        access();
      else if (kind == 6)
        branch_or_access(depth);
      else if (kind == 7 && depth < 3)
        any_loop(depth);
      else if (kind == 8)
        there_and_back();
      else
        assignment();
    }
  }

  void any_loop(int depth) {
    const int kind = pick(6);
    if (kind < 2)
      march();
    else if (kind == 2)
      chance(2) ? wander() : leave();
    else
      loop(depth);
  }

  void branch_or_access(int depth) {
    if (depth < 4)
      branch(depth);
    else
      access();
  }

  std::vector<std::string> known_;     // registers with a number on every way here
  std::vector<std::string> changing_;  // those that may get another one
  std::vector<std::string> drifting_;  // those that loops change by sums and copies
  std::vector<std::string> pointers_;
};

class RandomBoundsTest : public testing::TestWithParam<int> {};

TEST_P(RandomBoundsTest, UncheckedAccessesStayWithinTheLeastRange) {
  auto device = device::open_device("sim:sms=2,memory=256M,max_kernel_seconds=60");
  ASSERT_TRUE(device) << device.error().message;
  int bounded = 0;
  for (int i = 0; i < random_kernels() && !HasFailure(); ++i) {
    const auto seed = static_cast<std::uint64_t>(GetParam()) * 1'000'000 + i;
    const std::string text = RandomKernel(seed).text();
    SCOPED_TRACE(fmt::format("seed {}:\n{}", seed, text));
    FormRunner runner(**device, text, 0, true);
    std::vector<std::uint32_t> words(kWords);
    words[kWords / 2 + 2] = 40;  // the most turns of a loop
    std::mt19937_64 random(seed);
    for (int launch = 0; launch < 3 && !HasFailure(); ++launch) {
      const auto number = [&](std::uint32_t below) {
        return std::uniform_int_distribution<std::uint32_t>(0, below - 1)(random);
      };
      KernelCase kernel{.name = "kernel",
                        .entry = "kernel",
                        .grid = {1 + number(4), 1, 1},
                        .block = {1 + number(40), 1 + number(2), 1},
                        .arguments = {Argument::buffer(words), Argument::value(number(200)),
                                      Argument::value(number(40) - 4)}};
      if (runner.run_bounded_tightly(kernel)) ++bounded;
    }
  }
  EXPECT_GT(bounded, random_kernels() / 4) << "else this tests nothing";
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomBoundsTest, testing::Range(1, 5));

}  // namespace
}  // namespace slate::test
