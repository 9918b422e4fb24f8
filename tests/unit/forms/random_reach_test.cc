// Random arithmetic on pointers, on sim: where the address comes out in an allocation, the launch's
// reach has that allocation (injector/analysis/reach.h). The kernels write their address to memory
// instead of using it: the store that uses it is under a predicate that is never true.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "device/device.h"
#include "tests/unit/forms/form_runner.h"

namespace slate::test {
namespace {

constexpr std::size_t kBufferWords = 4096;
constexpr int kKernels = 60;  // in a module
constexpr int kSteps = 14;    // in a kernel

class RandomKernel {
 public:
  explicit RandomKernel(std::mt19937_64& random) : random_(random) {}

  std::string text(const std::string& name) {
    std::string body;
    for (int i = 0; i < kSteps; ++i) body += "  " + step() + "\n";
    return ".visible .entry " + name +
           "(.param .u64 a, .param .u64 b, .param .u64 c,\n"
           "  .param .u64 out, .param .u32 zero)\n{\n"
           "  .reg .pred %p<3>; .reg .b32 %r<6>; .reg .b64 %d<6>; .reg .b64 %o, %x;\n"
           "  .shared .align 8 .b8 tile[16]; .local .align 8 .b8 depot[16];\n"
           "  ld.param.u64 %d0, [a]; ld.param.u64 %d1, [b]; ld.param.u64 %d2, [c];\n"
           "  mov.u64 %d3, 24; mov.u64 %d4, %d0; mov.u64 %d5, 0;\n"
           "  ld.param.u32 %r0, [zero]; mov.u32 %r1, 1; mov.u32 %r2, 2; mov.u32 %r3, 64;\n"
           "  mov.u32 %r4, 0; mov.u32 %r5, %tid.x; st.shared.u64 [tile], %d3;\n"
           "  st.shared.u64 [tile+8], %d3; st.local.u64 [depot], %d3; st.local.u64 [depot+8], "
           "%d3;\n"
           "  setp.eq.u32 %p1, %r0, 0; setp.ne.u32 %p2, %r0, 0;\n" +
           body + "  ld.param.u64 %o, [out]; st.global.u64 [%o], " + wide() + ";\n}\n";
  }

 private:
  std::uint32_t below(std::uint32_t n) { return static_cast<std::uint32_t>(random_() % n); }
  std::string wide() { return "%d" + std::to_string(below(6)); }
  std::string narrow() { return "%r" + std::to_string(below(6)); }
  std::string guard() { return below(4) == 0 ? (below(2) == 0 ? "@%p1 " : "@!%p1 ") : ""; }
  std::string place(const std::string& memory, std::uint32_t bytes) {
    return "[" + memory + "+" + std::to_string(below(16 / bytes) * bytes) + "]";
  }
  std::string one_of(const std::vector<std::string>& words) {
    return words[below(static_cast<std::uint32_t>(words.size()))];
  }

  std::string step() { return guard() + (below(2) == 0 ? step_on_pointers() : step_on_halves()); }

  std::string step_on_pointers() {
    switch (below(9)) {
      case 0:
        return "mov.u64 " + wide() + ", " + wide() + ";";
      case 1:
        return "add.s64 " + wide() + ", " + wide() + ", " + std::to_string(below(64)) + ";";
      case 2:
        return one_of({"add.s64 ", "sub.s64 ", "and.b64 ", "or.b64 ", "xor.b64 ", "max.u64 "}) +
               wide() + ", " + wide() + ", " + wide() + ";";
      case 3:
        return "selp.b64 " + wide() + ", " + wide() + ", " + wide() + one_of({", %p1;", ", %p2;"});
      case 4:
        return "ld.param.u64 " + wide() + ", " + one_of({"[a]", "[b]", "[c]"}) + ";";
      case 5:
        return "mul.lo.u64 " + wide() + ", " + wide() + ", " + std::to_string(below(3)) + ";";
      case 6:
        return one_of({"st.shared.u64 ", "st.shared.b64 "}) + place("tile", 8) + ", " + wide() +
               ";";
      case 7:
        return "ld.shared.u64 " + wide() + ", " + place("tile", 8) + ";";
      default:
        return below(2) == 0 ? "st.local.u64 " + place("depot", 8) + ", " + wide() + ";"
                             : "ld.local.u64 " + wide() + ", " + place("depot", 8) + ";";
    }
  }

  std::string step_on_halves() {
    switch (below(10)) {
      case 0:
        return "mov.b64 {%r0, %r1}, " + wide() + ";";
      case 1:
        return "mov.b64 {%r2, %r3}, " + wide() + ";";
      case 2:
        return "mov.b64 " + wide() + ", " + one_of({"{%r0, %r1}", "{%r2, %r3}", "{%r0, %r3}"}) +
               ";";
      case 3:
        return "cvt.u32.u64 " + narrow() + ", " + wide() + ";";
      case 4:
        return "cvt.u64.u32 " + wide() + ", " + narrow() + ";";
      case 5:
        return one_of({"shl.b64 ", "shr.u64 "}) + wide() + ", " + wide() + ", " +
               one_of({"32", "32", "4"}) + ";";
      case 6:
        return "bfi.b64 " + wide() + ", " + wide() + ", " + wide() + ", 32, 32;";
      case 7:
        return below(2) == 0 ? "add.u32 " + narrow() + ", " + narrow() + ", " + narrow() + ";"
                             : "mov.u32 " + narrow() + ", " + narrow() + ";";
      case 8:
        return "ld.param.u32 " + narrow() + ", " + one_of({"[a]", "[a+4]", "[b]", "[b+4]"}) + ";";
      default:
        return below(2) == 0 ? "st.shared.u32 " + place("tile", 4) + ", " + narrow() + ";"
                             : "ld.shared.u32 " + narrow() + ", " + place("tile", 4) + ";";
    }
  }

  std::mt19937_64& random_;
};

/// What the kernel stores is used as an address, too, where it never is.
std::string with_access(std::string text) {
  const std::size_t store = text.rfind("st.global.u64 [%o], ");
  const std::string address = text.substr(text.find(", ", store) + 2, 3);
  text.insert(text.rfind("}\n"),
              "  ld.param.u64 %x, [a]; st.global.u64 [%o+8], %x;\n"
              "  ld.param.u64 %x, [b]; st.global.u64 [%o+16], %x;\n"
              "  ld.param.u64 %x, [c]; st.global.u64 [%o+24], %x;\n"
              "  @%p2 st.global.u32 [" +
                  address + "], 1;\n  ret;\n");
  return text;
}

TEST(RandomReachTest, AnAddressInAnAllocationIsInTheReach) {
  std::mt19937_64 random(7);
  std::size_t in_allocations = 0;
  std::size_t known = 0;
  for (int round = 0; round < SLATE_RANDOM_MODULES; ++round) {
    std::string ptx = ".version 8.8\n.target sm_90\n.address_size 64\n";
    for (int k = 0; k < kKernels; ++k) {
      ptx += with_access(RandomKernel(random).text("k" + std::to_string(k)));
    }
    auto device = device::open_device("sim:sms=1,memory=256M");
    ASSERT_TRUE(device) << device.error().message;
    FormRunner runner(**device, ptx, 0);
    const std::vector<std::uint64_t> contents(kBufferWords / 2, 0);
    for (int k = 0; k < kKernels; ++k) {
      const Argument buffer = Argument::buffer(contents);
      const KernelCase kernel{.name = "k",
                              .entry = "k" + std::to_string(k),
                              .grid = {1, 1, 1},
                              .block = {1, 1, 1},
                              .arguments = {buffer, buffer, buffer, buffer, Argument::value(0u)}};
      const auto reach = runner.reach(kernel);
      const Outcome outcome = runner.run_native(kernel);
      std::uint64_t words[4];  // the address, and where a, b and c are
      std::memcpy(words, outcome[3].data(), sizeof(words));
      for (int i = 0; i < 3; ++i) {
        const std::uint64_t offset = words[0] - words[i + 1];
        if (offset >= contents.size() * sizeof(contents[0])) continue;
        ++in_allocations;
        if (!reach) continue;
        ++known;
        ASSERT_TRUE((*reach)[i].written)
            << "buffer " << i << " by k" << k << " of\n"
            << ptx.substr(ptx.find(".entry k" + std::to_string(k) + "("), 2500);
      }
    }
  }
  RecordProperty("in_allocations", static_cast<int>(in_allocations));
  RecordProperty("known", static_cast<int>(known));
  EXPECT_GT(in_allocations, 10u * SLATE_RANDOM_MODULES) << "else it tests nothing";
  EXPECT_GT(2 * known, in_allocations / 2) << in_allocations << " of which known: " << known;
}

}  // namespace
}  // namespace slate::test
