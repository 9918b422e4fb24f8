// Which constants a bounded copy has in its own module, and the text that reads them.
#include "injector/fence/own_constants.h"

#include <gtest/gtest.h>

#include "injector/fence/fence.h"
#include "injector/forms/placed_variables.h"

namespace slate::injector {
namespace {

constexpr char kTwo[] = ".const .align 4 .b8 one[64];\n.const .align 8 .b8 two[128];\n";

/// Fenced as the engine does it: with a bounded copy, and behind a table of variables.
class FencedCopy {
 public:
  /// The kernel stores %r9 where a launch's pointer leads, which its bounds show. %rd9 is 4 times a
  /// thread's number below 16.
  explicit FencedCopy(const std::string& body, const std::string& before = kTwo) {
    const auto module =
        ptx::parse(".version 8.7\n.target sm_90\n.address_size 64\n" + before +
                   ".visible .entry kernel(.param .u64 p, .param .u64 q)\n{\n"
                   ".reg .pred %p<9>;\n.reg .b32 %r<12>;\n.reg .b64 %rd<12>;\n"
                   "ld.param.u64 %rd1, [p];\nld.param.u64 %rd10, [q];\nmov.u32 %r1, %tid.x;\n"
                   "and.b32 %r2, %r1, 15;\nmul.wide.u32 %rd9, %r2, 4;\nmov.u32 %r9, 0;\n"
                   "setp.eq.u32 %p1, %r1, 0;\n" +
                   body + "\nst.global.u32 [%rd1], %r9;\nret;\n}\n");
    EXPECT_TRUE(module) << module.error().message;
    const auto copied = ptx::parse(*with_bounded_copy(**module, "kernel"));
    EXPECT_TRUE(copied) << copied.error().message;
    std::vector<std::string> names;
    const auto text = tabulate_variables(**copied, names);
    EXPECT_TRUE(text) << text.error().message;
    FenceOptions options{.names = OwnNames::kExpected};
    for (const std::string& name : names) {
      const ptx::Variable& variable = *(*copied)->find_variable(name);
      options.tabled.push_back({.bytes = variable.bytes,
                                .align = variable.align,
                                .is_constant = variable.space == ptx::Space::kConst});
    }
    const auto fenced = fence(**ptx::parse(*text), options);
    EXPECT_TRUE(fenced) << fenced.error().message;
    EXPECT_EQ(fenced->entries.size(), 2u);
    EXPECT_EQ(fenced->entries.back().why_not, "");
    ptx_ = fenced->ptx;
    rows_ = fenced->entries.back().bounds.constants;
    EXPECT_TRUE(ptx::parse(ptx_)) << ptx_;
    EXPECT_TRUE(fenced->entries.front().bounds.constants.empty());
  }

  const std::vector<std::uint32_t>& rows() const { return rows_; }
  bool has(std::string_view text) const { return ptx_.find(text) != std::string::npos; }
  /// How often both kernels have it.
  std::size_t loads(std::string_view opcode) const {
    std::size_t count = 0;
    for (std::size_t at = 0; (at = ptx_.find(opcode, at)) != std::string::npos; ++at) ++count;
    return count;
  }

 private:
  std::string ptx_;
  std::vector<std::uint32_t> rows_;
};

using Rows = std::vector<std::uint32_t>;

TEST(OwnConstantsTest, ElementsWithinAConstantAreReadFromTheCopysOwn) {
  const FencedCopy copy("mov.u64 %rd2, one;\nadd.s64 %rd3, %rd2, %rd9;\nld.const.u32 %r9, [%rd3];");
  EXPECT_EQ(copy.rows(), Rows{0});
  EXPECT_TRUE(copy.has(".visible .const .align 4 .b8 __slate_constant0[64];"));
  EXPECT_TRUE(copy.has("mov.b64 %slate_placed0, __slate_constant0;"));
  EXPECT_EQ(copy.loads("ld.const.u32 %r9"), 1u);
  EXPECT_EQ(copy.loads("ld.global.nc.u32 %r9"), 1u) << "the kernel itself reads the program's";
}

TEST(OwnConstantsTest, SoAreThoseByName) {
  const FencedCopy copy(
      "ld.const.u32 %r3, [one+8];\n@%p1 ld.const.v2.u32 {%r4, %r5}, [two];\n"
      "add.u32 %r9, %r3, %r4;");
  EXPECT_EQ(copy.rows(), (Rows{0, 1}));
  EXPECT_TRUE(copy.has("ld.const.v2.u32"));
}

TEST(OwnConstantsTest, AnAddressMayBeOneOfSeveral) {
  const FencedCopy copy(
      "mov.u64 %rd2, one;\nmov.u64 %rd3, two;\nselp.b64 %rd4, %rd2, %rd3, %p1;\n"
      "@%p1 mov.u64 %rd4, %rd3;\nld.const.u32 %r9, [two];");
  EXPECT_EQ(copy.rows(), (Rows{0, 1}));
}

TEST(OwnConstantsTest, NoneWhereAnAddressMayBeAnythingElse) {
  for (const std::string other :
       {"mov.u64 %rd3, 4096;", "add.s64 %rd3, %rd2, %rd2;", "selp.b64 %rd3, %rd2, %rd9, %p1;",
        "mad.wide.u32 %rd3, %r1, 4, %rd9;", "cvta.const.u64 %rd3, %rd2;", "xor.b64 %rd3, %rd2, 1;",
        "mul.lo.u64 %rd3, %rd2, 2;", "sub.s64 %rd3, %rd9, %rd2;"}) {
    const FencedCopy copy("mov.u64 %rd2, one;\nadd.s64 %rd3, %rd2, %rd9;\n@%p1 " + other +
                          "\nld.const.u32 %r9, [one];\n");
    EXPECT_TRUE(copy.rows().empty()) << other;
    EXPECT_FALSE(copy.has("__slate_constant")) << other;
  }
}

TEST(OwnConstantsTest, NoneWhereAnAddressLeadsElsewhere) {
  const std::string address = "mov.u64 %rd2, one;\nld.const.u32 %r9, [one+4];\n";
  for (const std::string use :
       {"st.global.u64 [%rd1+8], %rd2;", "cvta.const.u64 %rd3, %rd2;", "setp.eq.u64 %p2, %rd2, 0;",
        "cvt.u32.u64 %r3, %rd2;", "{ .reg .b32 a, b; mov.b64 {a, b}, %rd2; }",
        "atom.global.add.u64 %rd3, [%rd1+8], %rd2;"}) {
    EXPECT_TRUE(FencedCopy(address + use).rows().empty()) << use;
  }
  EXPECT_FALSE(FencedCopy(address).rows().empty());
}

TEST(OwnConstantsTest, NoneWhereAReadIsChecked) {
  const FencedCopy copy(
      "mul.wide.u32 %rd3, %r1, 4;\nadd.s64 %rd4, %rd3, %rd10;\n"
      "ld.global.u32 %r3, [%rd1+16];\nmul.wide.u32 %rd5, %r3, 4;\n"
      "mov.u64 %rd2, one;\nadd.s64 %rd6, %rd2, %rd5;\nld.const.u32 %r9, [%rd6];");
  EXPECT_TRUE(copy.rows().empty());
}

TEST(OwnConstantsTest, NoneInAKernelThatCalls) {
  const FencedCopy copy("ld.const.u32 %r9, [one];\ncall f;",
                        std::string(kTwo) + ".func f()\n{\nret;\n}\n");
  EXPECT_TRUE(copy.rows().empty());
}

TEST(OwnConstantsTest, NoneWithoutRoom) {
  const auto rows = [](int bytes) {
    return FencedCopy("ld.const.u32 %r9, [large];",
                      ".const .align 4 .b8 large[" + std::to_string(bytes) + "];\n")
        .rows();
  };
  EXPECT_EQ(rows(60'000), Rows{0});
  EXPECT_TRUE(rows(65'500).empty());
}

TEST(OwnConstantsTest, GlobalVariablesStayTheProgramsOwn) {
  const FencedCopy copy(
      "ld.const.u32 %r3, [one];\nld.global.u32 %r4, [global];\n"
      "st.global.u32 [global], %r3;\nadd.u32 %r9, %r3, %r4;",
      ".global .align 4 .u32 global;\n" + std::string(kTwo));
  EXPECT_EQ(copy.rows(), Rows{1});
}

}  // namespace
}  // namespace slate::injector
