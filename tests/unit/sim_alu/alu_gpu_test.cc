// Asks a real GPU: every instruction of sim's arithmetic that ptxas takes runs there on thousands
// of inputs, and sim must give the same bits (approximations: nearly the same). Label gpu; skipped
// without one.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "tests/unit/sim_alu/alu_inputs.h"
#include "tests/unit/sim_alu/alu_ptx.h"
#include "tests/unit/sim_alu/gpu_driver.h"

namespace slate::sim {
namespace {

using Entry = std::pair<std::string, AluOp>;

class GpuComparison {
 public:
  explicit GpuComparison(Driver& driver) : driver_(driver) {
    EXPECT_EQ(driver_.allocate(&in_, 6 * kernels_.count * 8), 0);
    EXPECT_EQ(driver_.allocate(&out_, 2 * kernels_.count * 8), 0);
  }

  /// Halves the group until what ptxas refuses is alone.
  void run(const std::vector<Entry>& entries, std::size_t begin, std::size_t end) {
    std::string text = kernels_.header();
    for (std::size_t k = begin; k < end; ++k) {
      text += kernels_.kernel(static_cast<int>(k), entries[k].first, entries[k].second);
    }
    void* module = nullptr;
    if (driver_.load(&module, text.c_str()) != 0) {
      if (end - begin == 1) {
        refused_.push_back(entries[begin].first);
        return;
      }
      run(entries, begin, (begin + end) / 2);
      run(entries, (begin + end) / 2, end);
      return;
    }
    for (std::size_t k = begin; k < end; ++k) {
      void* function = nullptr;
      ASSERT_EQ(driver_.function(&function, module, ("k" + std::to_string(k)).c_str()), 0);
      compare(function, entries[k]);
    }
    driver_.unload(module);
  }

  const std::vector<std::string>& refused() const { return refused_; }
  int compared() const { return compared_; }
  int wrong() const { return wrong_; }

 private:
  void compare(void* function, const Entry& entry) {
    const AluOp& op = entry.second;
    const std::uint32_t n = kernels_.count;
    std::vector<std::uint64_t> in(6 * n), out(2 * n, 0);
    for (std::uint32_t i = 0; i < n; ++i) {
      for (std::uint32_t k = 0; k < 5; ++k) in[k * n + i] = inputs_.value(op.s[k]);
      in[5 * n + i] = inputs_.bits() & 1;
      for (std::uint32_t k = 0; k < 5; ++k) {
        if (op.s[k] == ptx::Type::kPred) in[k * n + i] &= 1;
      }
      if (entry.first.starts_with("lop3")) in[3 * n + i] = kernels_.lop3_table;
    }
    driver_.to_device(in_, in.data(), in.size() * 8);
    driver_.to_device(out_, out.data(), out.size() * 8);
    void* arguments[] = {&in_, &out_};
    ASSERT_EQ(driver_.launch(function, n / 256, 1, 1, 256, 1, 1, 0, nullptr, arguments, nullptr),
              0);
    ASSERT_EQ(driver_.to_host(out.data(), out_, out.size() * 8), 0) << entry.first;
    check(entry, in, out);
  }

  void check(const Entry& entry, const std::vector<std::uint64_t>& in,
             const std::vector<std::uint64_t>& out) {
    const AluOp& op = entry.second;
    const AluSpelling spelling = spell(entry.first);
    const int d_bytes = spelling.d_bytes != 0 ? spelling.d_bytes : lane_bytes_of(op.d);
    const std::uint32_t n = kernels_.count;
    const bool of_half = op.s[0] == ptx::Type::kF16 || op.s[0] == ptx::Type::kBf16;
    const bool second = (entry.first.starts_with("setp") && !of_half) || op.sources == 5;
    ++compared_;
    int bad = 0;
    for (std::uint32_t begin = 0; begin < n; begin += kWarpSize) {
      AluCall call;
      for (int k = 0; k < op.sources; ++k) {
        const int bytes = spelling.s_bytes != 0 ? spelling.s_bytes : lane_bytes_of(op.s[k]);
        for (int i = 0; i < kWarpSize; ++i)
          put(call.s[k], bytes, i, in[static_cast<std::uint32_t>(k) * n + begin + i]);
      }
      for (int i = 0; i < kWarpSize; ++i)
        call.carry |= static_cast<Mask>(in[5 * n + begin + i]) << i;
      call.run(op, kAllLanes);
      for (int i = 0; i < kWarpSize; ++i) {
        const std::uint64_t ours = get(call.d, d_bytes, i);
        const std::uint64_t theirs = out[begin + i];
        const std::uint64_t q = op.writes_carry ? call.carry >> i & 1
                                : second        ? get(call.d2, 0, i)
                                                : 0;
        // The manual leaves fns undefined for bases beyond the mask.
        if (entry.first == "fns.b32" && static_cast<std::uint32_t>(in[n + begin + i]) > 31)
          continue;
        if (same(entry.first, op.d, ours, theirs) && q == out[n + begin + i]) continue;
        if (bad++ < 4) {
          std::printf("  %s: in %llx %llx %llx cc %llx: sim %llx/%llx gpu %llx/%llx\n",
                      entry.first.c_str(), static_cast<unsigned long long>(in[begin + i]),
                      static_cast<unsigned long long>(in[n + begin + i]),
                      static_cast<unsigned long long>(in[2 * n + begin + i]),
                      static_cast<unsigned long long>(in[5 * n + begin + i]),
                      static_cast<unsigned long long>(ours), static_cast<unsigned long long>(q),
                      static_cast<unsigned long long>(theirs),
                      static_cast<unsigned long long>(out[n + begin + i]));
        }
      }
    }
    if (bad != 0) std::printf("%s: %d of %u differ\n", entry.first.c_str(), bad, n);
    wrong_ += bad != 0 ? 1 : 0;
  }

  static void put(TestRegister& r, int bytes, int lane, std::uint64_t value) {
    if (bytes != 0) return set_lane(r, bytes, lane, value);
    if (value != 0) *r.lanes<Mask>() |= Mask{1} << lane;
  }
  static std::uint64_t get(const TestRegister& r, int bytes, int lane) {
    if (bytes != 0) return get_lane(r, bytes, lane);
    Mask mask;
    std::memcpy(&mask, r.bytes, sizeof(mask));
    return mask >> lane & 1;
  }

  static bool close(double a, double b, double relative, double absolute) {
    if (a == b || (std::isnan(a) && std::isnan(b))) return true;
    return std::fabs(a - b) <= std::fmax(relative * std::fabs(b), absolute);
  }
  /// Equal bits, or close where the manual only bounds the error.
  static bool same(const std::string& name, ptx::Type type, std::uint64_t a, std::uint64_t b) {
    if (a == b) return true;
    if (name.find(".approx") == std::string::npos && name.find(".full") == std::string::npos)
      return false;
    const auto as_float = [](std::uint64_t bits) {
      float x;
      const auto low = static_cast<std::uint32_t>(bits);
      std::memcpy(&x, &low, 4);
      return x;
    };
    if (type == ptx::Type::kF64) {
      double x, y;
      std::memcpy(&x, &a, 8);
      std::memcpy(&y, &b, 8);
      return close(x, y, 0x1p-18, 0);
    }
    if (type == ptx::Type::kF32) {
      const bool trigonometric = name.starts_with("sin") || name.starts_with("cos");
      const double x = static_cast<double>(as_float(a)), y = static_cast<double>(as_float(b));
      if (trigonometric) return std::isnan(x) == std::isnan(y);
      return close(x, y, name.starts_with("tanh") ? 0x1p-10 : 0x1p-21,
                   name.starts_with("lg2") ? 0x1p-21 : 0x1p-148);
    }
    // Halves: a few units in the last place of each.
    const auto near = [](std::uint64_t p, std::uint64_t q) {
      return (p & 0x7fff) > 0x7c00
                 ? p == q
                 : std::llabs(static_cast<long long>(p) - static_cast<long long>(q)) <= 4;
    };
    return near(a & 0xffff, b & 0xffff) && near(a >> 16, b >> 16);
  }

  Driver& driver_;
  AluKernels kernels_;
  AluInputs inputs_{20251121};
  std::uint64_t in_ = 0, out_ = 0;
  std::vector<std::string> refused_;
  int compared_ = 0;
  int wrong_ = 0;
};

TEST(AluGpuTest, SimGivesTheBitsThatTheGpuGives) {
  Driver driver;
  if (!driver.open()) GTEST_SKIP() << "no GPU";
  const AluIsa isa = alu_isa_supported(AluIsa::kV3) ? AluIsa::kV3 : AluIsa::kBase;
  std::vector<Entry> entries;
  for (const auto& [name, op] : AluTable::of(isa).entries()) {
    if (op.d != ptx::Type::kB128) entries.emplace_back(name, op);
  }
  GpuComparison comparison(driver);
  for (std::size_t k = 0; k < entries.size(); k += 64) {
    comparison.run(entries, k, std::min(k + 64, entries.size()));
  }
  for (const std::string& name : comparison.refused()) std::printf("refused: %s\n", name.c_str());
  std::printf("%d instructions compared, %zu refused by ptxas\n", comparison.compared(),
              comparison.refused().size());
  EXPECT_GT(comparison.compared(), 1000);
  EXPECT_EQ(comparison.wrong(), 0);
}

}  // namespace
}  // namespace slate::sim
