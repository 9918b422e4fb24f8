// Kernels that read what they have not written: registers, also of lanes that are not there, shared
// and local memory, parts of parameters. There a device has what earlier kernels have left. Behind
// the fence they must find zeros, in every form, on sim or a GPU.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <iterator>

#include "device/cuda/cuda_device.h"
#include "device/device.h"
#include "tests/unit/forms/form_runner.h"

namespace slate::test {
namespace {

constexpr bool kGpuLeaves = SLATE_FENCE_ON_GPU;
constexpr std::uint32_t kLookBlocks = 300;
constexpr std::uint32_t kLookThreads = 64;

struct Look {
  std::string name;
  std::string body;            // leaves in %r1 what the thread has found
  std::string declarations{};  // of the kernel
  std::string functions{};     // of the module
  std::uint32_t dynamic_shared = 0;
  std::uint32_t threads = kLookThreads;
  std::uint32_t before = 1;  // in the words of the threads
};

void PrintTo(const Look& look, std::ostream* out) {
  *out << look.name;
}

/// %no is false in all threads, but nobody knows.
constexpr std::string_view kLookModule = R"(.version 8.7
.target sm_90
.address_size 64
.extern .shared .align 16 .b8 dyn[];
{0}
.visible .entry look(.param .u64 p_out, .param .u32 p_never)
{{
	{1}
	.reg .pred %p<4>, %no;
	.reg .b16 %h<4>;
	.reg .b32 %r<8>, %t;
	.reg .b64 %rd<8>, %mine;
	.reg .b8 %byte;
	ld.param.u32 %r7, [p_never];
	setp.ne.u32 %no, %r7, 0;
	ld.param.u64 %mine, [p_out];
	mov.u32 %t, %tid.x;
	mov.u32 %r6, %ctaid.x;
	mad.lo.u32 %r6, %r6, 64, %t;
	mul.wide.u32 %rd7, %r6, 4;
	add.u64 %mine, %mine, %rd7;
	{2}
	st.global.u32 [%mine], %r1;
	ret;
}}
)";

/// Leaves ones wherever it can.
std::string filler() {
  constexpr int kRegisters = 120;
  std::string text =
      ".version 8.7\n.target sm_90\n.address_size 64\n.visible .entry fill(.param .u64 p_out)\n{\n"
      "\t.shared .align 16 .b8 sh[49152];\n\t.local .align 16 .b8 loc[4096];\n"
      "\t.reg .pred %p;\n\t.reg .b32 %r<130>, %at, %ones;\n\t.reg .b64 %out, %to, %local;\n"
      "\tld.param.u64 %out, [p_out];\n\tmov.u32 %ones, -1;\n\tmov.u32 %at, sh;\n"
      "\tmov.u32 %r0, %tid.x;\n\tmad.lo.u32 %at, %r0, 4, %at;\n\tmov.u32 %r1, 0;\n"
      "SHARED:\n\tst.volatile.shared.u32 [%at], %ones;\n\tadd.u32 %at, %at, 256;\n"
      "\tadd.u32 %r1, %r1, 1;\n\tsetp.lt.u32 %p, %r1, 192;\n\t@%p bra SHARED;\n"
      "\tmov.u64 %to, loc;\n\tmov.u32 %r1, 0;\n"
      "LOCAL:\n\tst.local.u32 [%to], %ones;\n\tadd.u64 %to, %to, 4;\n"
      "\tadd.u32 %r1, %r1, 1;\n\tsetp.lt.u32 %p, %r1, 1024;\n\t@%p bra LOCAL;\n";
  for (int i = 2; i < kRegisters; ++i)
    text += fmt::format("\tld.volatile.global.u32 %r{}, [%out+{}];\n", i, 4 * i);
  // Otherwise the stores to local memory would be left out.
  text +=
      "\tmul.wide.u32 %to, %r0, 4;\n\tmov.u64 %local, loc;\n\tadd.u64 %to, %to, %local;\n"
      "\tld.local.u32 %r1, [%to];\n\tst.global.u32 [%out+4], %r1;\n\tbar.sync 0;\n";
  for (int i = 2; i < kRegisters; ++i)
    text += fmt::format("\tst.volatile.global.u32 [%out+{}], %r{};\n", 4 * i, i);
  return text + "\tret;\n}\n";
}

std::vector<std::uint32_t> words_of(const std::vector<std::byte>& bytes) {
  std::vector<std::uint32_t> words(bytes.size() / sizeof(std::uint32_t));
  std::memcpy(words.data(), bytes.data(), words.size() * sizeof(std::uint32_t));
  return words;
}

class FenceLeftoversTest : public testing::TestWithParam<Look> {
 protected:
  void SetUp() override {
    if (kGpuLeaves && !cuda::driver_finds_a_gpu()) GTEST_SKIP() << "no GPU";
    auto opened = kGpuLeaves
                      ? cuda::open_cuda_device(0)
                      : device::open_device(
                            "sim:sms=2,memory=256M,seed=5,max_kernel_seconds=30,leftovers=171");
    ASSERT_TRUE(opened) << opened.error().message;
    device_ = std::move(*opened);
  }

  static KernelCase launch() {
    const Look& look = GetParam();
    return {.name = look.name,
            .entry = "look",
            .grid = {kLookBlocks, 1, 1},
            .block = {look.threads, 1, 1},
            .shared_bytes = look.dynamic_shared,
            .arguments = {Argument::buffer(
                              std::vector<std::uint32_t>(kLookBlocks * kLookThreads, look.before)),
                          Argument::value(std::uint32_t{0})}};
  }
  static std::string text() {
    return fmt::format(kLookModule, GetParam().functions, GetParam().declarations, GetParam().body);
  }
  /// What the threads found that is not 0. Where there is no thread the buffer has its 1.
  static std::uint32_t found(const Outcome& outcome) {
    const std::vector<std::uint32_t> words = words_of(outcome[0]);
    std::uint32_t count = 0;
    for (std::size_t i = 0; i < words.size(); ++i)
      count += i % kLookThreads < GetParam().threads && words[i] != 0;
    return count;
  }
  /// What sim leaves, it leaves everywhere.
  void leave() {
    if (!kGpuLeaves) return;
    FormRunner filler_runner(*device_, filler(), 0);
    filler_runner.run_native(
        {.name = "fill",
         .entry = "fill",
         .grid = {2000, 1, 1},
         .block = {kLookThreads, 1, 1},
         .arguments = {Argument::buffer(std::vector<std::uint32_t>(1024, 0xffffffff))}});
  }

  std::unique_ptr<device::Device> device_;
};

TEST_P(FenceLeftoversTest, NothingIsFound) {
  const KernelCase first = launch();
  FormRunner runner(*device_, text(), 0, true, &first);
  for (const injector::FenceVerdict& entry : runner.fenced().entries)
    EXPECT_EQ(entry.why_not, "") << entry.name;
  const auto look = [&](std::string_view form, const auto& run) {
    leave();
    EXPECT_EQ(found(run()), 0u) << form;
  };
  std::mt19937_64 random(11);
  look("native", [&] { return runner.run_native(launch()); });
  look("bounded", [&] { return runner.run_bounded(launch()).value_or(Outcome{{}}); });
  const injector::KernelForms& forms = runner.forms("look");
  if (!forms.slice.empty()) look("slices", [&] { return runner.run_slices(launch(), random); });
  if (!forms.profile.empty()) look("profile", [&] { return runner.run_profile(launch()); });
  if (!forms.worker.empty())
    look("worker", [&] { return runner.run_worker(launch(), random, {}); });
}

TEST_P(FenceLeftoversTest, WithoutTheFenceItIs) {
  FormRunner runner(*device_, text(), 0);
  leave();
  const std::uint32_t count = found(runner.run_native(launch()));
  // On a GPU that depends on the assembler.
  if (kGpuLeaves) GTEST_SKIP() << count << " threads found something";
  EXPECT_GT(count, 0u);
}

/// Ones times zeros that a memory cell says, in the lanes that are there.
const std::string kMatrix =
    "ld.volatile.global.u32 %r3, [%mine];\nmov.u32 %r2, 0x01010101;\n"
    "{ .reg .b32 %d<4>;\nmma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%d0, %d1, %d2, %d3}, "
    "{%r2, %r2, %r2, %r2}, {%r3, %r3}, {%r3, %r3, %r3, %r3};\n"
    "or.b32 %r1, %d0, %d1;\nor.b32 %r1, %r1, %d2;\nor.b32 %r1, %r1, %d3;\n}";

/// Kernels whose block fills nearly all that it reads of shared memory, with zeros.
std::vector<Look> half_filled_looks() {
  const std::string words = ".shared .align 4 .b8 sh[256];", more = ".shared .align 4 .b8 sh[512];";
  // %r3: the thread's word. %r4: 1 from memory. %r5: the next thread's word.
  const std::string begin =
      "mov.u32 %r3, sh;\nmad.lo.u32 %r3, %t, 4, %r3;\nadd.u32 %r2, %t, 1;\nand.b32 %r2, %r2, 63;\n"
      "mov.u32 %r5, sh;\nmad.lo.u32 %r5, %r2, 4, %r5;\nmov.u32 %r0, 0;\n"
      "ld.global.u32 %r4, [%mine];\n";
  const std::string end = "bar.sync 0;\nld.shared.u32 %r1, [%r5];\n";
  const std::string unknown = "setp.eq.u32 %p1, %r4, 0;\n";
  const auto loop = [](std::string_view body, std::string_view limit, int step) {
    return fmt::format(
        "mov.u32 %r6, %t;\nsetp.ge.u32 %p2, %r6, {0};\n@%p2 bra OVER;\nNEXT:\n{1}"
        "add.u32 %r6, %r6, {2};\nsetp.lt.u32 %p2, %r6, {0};\n@%p2 bra NEXT;\nOVER:\n",
        limit, body, step);
  };
  const std::string by_counter =
      "mov.u32 %r2, sh;\nmad.lo.u32 %r2, %r6, 4, %r2;\n"
      "st.shared.u32 [%r2], %r0;\n";
  return {
      {"AllButOneWord", begin + "setp.ne.u32 %p1, %t, 5;\n@%p1 st.shared.u32 [%r3], %r0;\n" + end,
       words},
      {"UnderAnUnknownPredicate", begin + unknown + "@%p1 st.shared.u32 [%r3], %r0;\n" + end,
       words},
      {"BehindAnUnknownBranch",
       begin + unknown + "@!%p1 bra OVER;\nst.shared.u32 [%r3], %r0;\nOVER:\n" + end, words},
      {"OnOneOfTwoWays",
       begin + unknown +
           "@%p1 bra OTHER;\nst.shared.u32 [%r3+256], %r0;\nbra OVER;\nOTHER:\n"
           "st.shared.u32 [%r3], %r0;\nOVER:\n" +
           end,
       more},
      {"ReadInFrontOfTheBarrier",
       begin + "ld.shared.u32 %r1, [%r5];\nbar.sync 0;\nst.shared.u32 [%r3], %r0;\nbar.sync 0;",
       words},
      {"ReadBetweenABarrierOfAWarp",
       begin + "bar.warp.sync -1;\nld.shared.u32 %r1, [%r5];\nst.shared.u32 [%r3], %r0;\n"
               "bar.sync 0;",
       words},
      {"AtomicInFrontOfTheBarrier",
       begin + "atom.shared.exch.b32 %r1, [%r3], %r0;\nbar.sync 0;\nst.shared.u32 [%r3], %r0;",
       words},
      {"MoreThanItsThreads",
       begin + "st.shared.u32 [%r3], %r0;\nbar.sync 0;\nld.shared.u32 %r1, [%r3+256];", more},
      {"TheUpperHalves", begin + "mov.u16 %h1, 0;\nst.shared.u16 [%r3], %h1;\n" + end, words},
      {"ByALoopThatMayNotRun", begin + loop(by_counter, "%r7", 1) + end, words},
      {"ByALoopThatEndsTooEarly",
       begin + loop(by_counter, "127", 64) + "bar.sync 0;\nld.shared.u32 %r1, [%r3+256];", more},
      {"ByALoopThatStepsOver",
       begin + loop(by_counter, "128", 65) + "bar.sync 0;\nld.shared.u32 %r1, [%r3+256];", more},
      {"DynamicThatIsLarger",
       begin + "mov.u32 %r3, dyn;\nmad.lo.u32 %r3, %t, 4, %r3;\nst.shared.u32 [%r3], %r0;\n"
               "bar.sync 0;\nld.shared.u32 %r1, [%r3+256];",
       words, "", 512},
      {"OfThreadsThatEnd",
       begin +
           "setp.eq.u32 %p1, %r4, %t;\n@%p1 st.global.u32 [%mine], %r0;\n@%p1 exit;\n"
           "st.shared.u32 [%r3], %r0;\n" +
           end,
       words},
      {"InFrontOfABarrierOfAPart",
       begin + "setp.lt.u32 %p1, %t, 32;\n@%p1 bra OTHER;\nbar.sync 1, 32;\n"
               "mov.u32 %r1, 0;\nbra OVER;\nOTHER:\nbar.sync 1, 32;\n"
               "ld.shared.u32 %r1, [%r3+128];\nOVER:\nbar.sync 0;\n"
               "st.shared.u32 [%r3], %r0;\n",
       words},
      {"OfAnotherVariable",
       begin + "st.shared.u32 [%r3], %r0;\nbar.sync 0;\nmov.u32 %r2, other;\n"
               "mad.lo.u32 %r2, %t, 4, %r2;\nld.shared.u32 %r1, [%r2];",
       words + ".shared .align 4 .b8 other[256];"},
      {"BehindAnIndexFromMemory",
       begin + "mov.u32 %r6, other;\nst.shared.u32 [%r3], %r0;\nbar.sync 0;\n"
               "mad.lo.u32 %r2, %r4, 256, %r3;\n"
               "ld.shared.u32 %r1, [%r2];",
       words + ".shared .align 4 .b8 other[256];"},
      {"BetweenTwoVariables",
       begin + "st.shared.u32 [%r3], %r0;\nst.shared.u8 [sh+256], %r0;\n"
               "st.shared.v4.u32 [other], {%r0, %r0, %r0, %r0};\nbar.sync 0;\n"
               "mov.u32 %r2, sh;\nmad.lo.u32 %r2, %r4, 264, %r2;\nld.shared.u32 %r1, [%r2];",
       ".shared .align 4 .b8 sh[257];\n.shared .align 16 .b8 other[16];"},
      {"ByARegisterInBraces",
       begin +
           "mov.u32 %r6, 0;\nNEXT:\n{ .reg .b32 x;\n@%no mov.u32 x, 0;\nadd.u32 %r6, %r6, 1;\n"
           "setp.eq.u32 %p1, %r6, 1;\n@%p1 mov.u32 x, 0;\nmad.lo.u32 %r2, x, 0, %r3;\n"
           "setp.eq.u32 %p2, x, 0;\n@%p2 add.u32 %r2, %r2, 256;\n"
           "st.shared.u32 [%r2], %r0;\n}\nsetp.lt.u32 %p2, %r6, 2;\n@%p2 bra NEXT;\n" +
           end,
       more},
  };
}

std::vector<Look> looks() {
  const std::string shared = ".shared .align 16 .b8 sh[1020];";
  const std::string element = "shl.b32 %r2, %t, 2;\n";
  // Finds a word that is neither 0 at first, nor later what the thread has stored.
  const std::string turn =
      "ld.local.u32 %r4, [loc+8];\nxor.b32 %r4, %r4, %r3;\nor.b32 %r1, %r1, %r4;\n"
      "add.u32 %r3, %t, 7;\nst.local.u32 [loc+8], %r3;\nadd.u32 %r2, %r2, 1;\n"
      "setp.lt.u32 %p1, %r2, 3;\n";
  const std::string begin = "mov.u32 %r1, 0;\nmov.u32 %r2, 0;\nmov.u32 %r3, 0;\n";
  std::vector<Look> all = {
      {"Register", "@%no ld.global.u32 %r1, [%mine];"},
      {"RegisterOfALoop",
       "mov.u32 %r2, 0;\nNEXT:\n@%no mov.u32 %r1, %r2;\nadd.u32 %r2, %r2, 1;\n"
       "setp.lt.u32 %p1, %r2, 3;\n@%p1 bra NEXT;"},
      {"RegisterBehindABranch",
       "@%no bra WRITTEN;\nbra BEHIND;\nWRITTEN:\nmov.u32 %r1, 5;\nBEHIND:"},
      {"Predicate", "@%no setp.eq.u32 %p1, %t, 1;\nselp.u32 %r1, 1, 0, %p1;"},
      {"HalfRegister", "@%no ld.global.u16 %h1, [%mine];\ncvt.u32.u16 %r1, %h1;"},
      {"WideRegister",
       "@%no ld.global.u64 %rd1, [%mine];\nshr.u64 %rd2, %rd1, 32;\ncvt.u32.u64 %r1, %rd2;"},
      {"ByteRegister", "@%no ld.global.u8 %byte, [%mine];\ncvt.u32.u8 %r1, %byte;"},
      {"RegisterInBraces", "{ .reg .b32 x;\n@%no mov.u32 x, 3;\nmov.u32 %r1, x;\n}"},
      {"Shared", element + "mov.u32 %r3, sh;\nadd.u32 %r3, %r3, %r2;\nld.shared.u32 %r1, [%r3];",
       shared},
      {"SharedThatWorkersCopy",
       "mov.u32 %r3, sh;\nmad.lo.u32 %r3, %t, 4, %r3;\nst.shared.u32 [sh], %t;\nbar.sync 0;\n"
       "ld.shared.u32 %r1, [sh+1016];",
       shared},
      {"LastOfShared", "ld.shared.u32 %r1, [sh+1016];", shared},
      {"SharedByGenericAddress",
       "mov.u64 %rd1, sh;\ncvta.shared.u64 %rd1, %rd1;\nmul.wide.u32 %rd2, %t, 8;\n"
       "add.u64 %rd1, %rd1, %rd2;\nld.u32 %r1, [%rd1];",
       shared},
      {"DynamicShared",
       element + "mov.u32 %r3, dyn;\nadd.u32 %r3, %r3, %r2;\nld.shared.u32 %r1, [%r3+4840];", "",
       "", 5100},
      {"SharedByAnAtomic",
       element + "mov.u32 %r3, sh;\nadd.u32 %r3, %r3, %r2;\natom.shared.or.b32 %r1, [%r3], 0;",
       shared},
      {"SharedByAFunction",
       "{ .param .b32 back;\ncall (back), peep, ();\nld.param.b32 %r1, [back];\n}", "",
       ".shared .align 4 .b8 deep[256];\n.func (.param .b32 result) peep()\n{\n.reg .b32 %r<3>;\n"
       "mov.u32 %r1, %tid.x;\nmov.u32 %r2, deep;\nmad.lo.u32 %r2, %r1, 4, %r2;\n"
       "ld.shared.u32 %r1, [%r2];\nst.param.b32 [result], %r1;\nret;\n}\n"},
      {"Local",
       "and.b32 %r2, %t, 15;\nmul.wide.u32 %rd1, %r2, 4;\nmov.u64 %rd2, loc;\n"
       "add.u64 %rd1, %rd1, %rd2;\nld.local.u32 %r1, [%rd1];",
       ".local .align 16 .b8 loc[64];"},
      {"LongLocal",
       "mul.wide.u32 %rd1, %t, 4;\nmov.u64 %rd2, loc;\nadd.u64 %rd1, %rd1, %rd2;\n"
       "ld.local.u32 %r1, [%rd1+764];",
       ".local .align 8 .b8 loc[1020];"},
      {"LocalByGenericAddress",
       "mov.u64 %rd1, loc;\ncvta.local.u64 %rd1, %rd1;\nmul.wide.u32 %rd2, %t, 1;\n"
       "add.u64 %rd1, %rd1, %rd2;\nld.u8 %r1, [%rd1];",
       ".local .align 1 .b8 loc[67];"},
      {"LocalBehindABranch",
       begin + "setp.lt.u32 %p1, %t, 32;\n@%p1 bra BEHIND;\nmov.u32 %r1, 0;\n"
               "ld.local.u32 %r1, [loc+8];\nBEHIND:",
       ".local .align 16 .b8 loc[64];"},
      {"LocalOfOneOfTwoWays",
       begin + "setp.lt.u32 %p1, %t, 32;\n@%p1 bra OTHER;\nld.local.u32 %r1, [loc+8];\n"
               "bra BEHIND;\nOTHER:\nld.local.u32 %r1, [loc+4];\nBEHIND:",
       ".local .align 16 .b8 loc[64];"},
      {"LocalInALoop",
       "mov.u32 %r1, 0;\n@%no bra BEHIND;\n" + begin + "NEXT:\n" + turn + "@%p1 bra NEXT;\nBEHIND:",
       ".local .align 16 .b8 loc[64];"},
      {"LocalInACycleThatIsEnteredInTwoPlaces",
       begin +
           "setp.lt.u32 %p1, %t, 32;\n@%p1 bra SECOND;\nFIRST:\nadd.u32 %r5, %r2, 1;\n"
           "SECOND:\n" +
           turn + "@%p1 bra FIRST;",
       ".local .align 16 .b8 loc[64];"},
      {"LocalOfAFunction",
       "{ .param .b32 back;\ncall (back), peep, ();\nld.param.b32 %r1, [back];\n}", "",
       ".func (.param .b32 result) peep()\n{\n.local .align 4 .b8 deep[256];\n.reg .b32 %r<3>;\n"
       ".reg .b64 %rd<3>;\nmov.u32 %r1, %tid.x;\nmov.u64 %rd1, deep;\nmul.wide.u32 %rd2, %r1, 4;\n"
       "add.u64 %rd1, %rd1, %rd2;\nld.local.u32 %r1, [%rd1];\nst.param.b32 [result], %r1;\nret;\n"
       "}\n"},
      {"ReturnedParameter",
       "{ .param .b32 in, back;\nst.param.b32 [in], %r7;\ncall (back), peep, (in);\n"
       "ld.param.b32 %r1, [back];\n}",
       "",
       ".func (.param .b32 result) peep(.param .b32 in)\n{\n.reg .b32 %r<3>;\n.reg .pred %p;\n"
       "ld.param.b32 %r1, [in];\nsetp.ne.u32 %p, %r1, 0;\n@%p st.param.b32 [result], %r1;\nret;\n"
       "}\n"},
      {"PartOfAnArgument",
       "{ .param .align 8 .b8 in[16];\n.param .b32 back;\nst.param.b32 [in], %t;\n"
       "call (back), peep, (in);\nld.param.b32 %r1, [back];\n}",
       "",
       ".func (.param .b32 result) peep(.param .align 8 .b8 in[16])\n{\n.reg .b32 %r<3>;\n"
       "ld.param.b32 %r1, [in+8];\nst.param.b32 [result], %r1;\nret;\n}\n"},
      {"LaneThatHasLeft",
       "mov.u32 %r2, %laneid;\nsetp.ge.u32 %p1, %r2, 16;\n@%p1 bra LEFT;\n"
       "ld.global.u32 %r3, [%mine];\nsub.u32 %r3, %r3, 1;\n"
       "shfl.sync.idx.b32 %r1, %r3, 20, 31, 0xffff;\nLEFT:"},
      {"LaneThatIsNotThere",
       "ld.global.u32 %r3, [%mine];\nsub.u32 %r3, %r3, 1;\nmov.u32 %r1, 0;\n"
       "setp.lt.u32 %p1, %t, 32;\n@%p1 bra FIRST;\n"
       "shfl.sync.idx.b32 %r1, %r3, 20, 31, 0xffff;\nFIRST:",
       "", "", 0, 48},
      {"MatrixOfLanesThatAreNotThere", kMatrix, "", "", 0, 48, 0},
      {"MatrixOfLanesThatHaveLeft",
       "mov.u32 %r2, %laneid;\nsetp.ge.u32 %p1, %r2, 16;\n@%p1 exit;\n" + kMatrix, "", "", 0, 64,
       0},
      {"TransposedLanesThatAreNotThere",
       "ld.volatile.global.u32 %r3, [%mine];\n"
       "movmatrix.sync.aligned.m8n8.trans.b16 %r1, %r3;",
       "", "", 0, 48, 0},
      {"RegisterOfAFunction",
       "{ .param .b32 in, back;\nst.param.b32 [in], %r7;\ncall (back), peep, (in);\n"
       "ld.param.b32 %r1, [back];\n}",
       "",
       ".func (.param .b32 result) peep(.param .b32 in)\n{\n.reg .b32 %r<3>;\n.reg .pred %p;\n"
       "ld.param.b32 %r1, [in];\nsetp.ne.u32 %p, %r1, 0;\n@%p mov.u32 %r2, 3;\n"
       "st.param.b32 [result], %r2;\nret;\n}\n"},
  };
  std::ranges::move(half_filled_looks(), std::back_inserter(all));
  return all;
}

/// All modes, by constants and registers, in segments of 32, 16 and 4 lanes. Every second time only
/// odd lanes take part, and read from odd ones.
std::string many_shuffles(std::uint32_t& count) {
  std::string code;
  count = 0;
  for (const std::string_view mode : {"up", "down", "bfly", "idx"}) {
    for (const std::uint32_t lanes : {32u, 16u, 4u}) {
      for (const std::uint32_t by : {0u, 1u, 2u, 3u, 9u, 31u, 34u}) {
        const std::uint32_t clamp = (32 - lanes) << 8 | (mode == "up" ? 0 : 31);
        const bool keeps_parity = by % 2 == (mode == "idx" ? 1 : 0);
        const auto store = [&] {
          code += fmt::format(
              "selp.u32 %r1, %r1, 0, %p3;\nst.global.u32 [%mine+{}], %r1;\nmov.u32 %r1, 77;\n",
              4 * 64 * count++);
        };
        code += "setp.eq.u32 %p3, 0, 0;\n";
        if (keeps_parity) {
          code += fmt::format("@%odd shfl.sync.{}.b32 %r1|%p3, %v, {}, {}, 0xaaaaaaaa;\n", mode, by,
                              clamp);
          store();
        }
        code += fmt::format("shfl.sync.{}.b32 %r1, %v, {}, {}, -1;\n", mode, by, clamp);
        store();
        code += fmt::format(
            "mov.u32 %r2, {};\nmov.u32 %r3, {};\nmov.u32 %r1, %v;\n"
            "shfl.sync.{}.b32 %r1, %r1, %r2, %r3, -1;\n",
            by, clamp, mode);
        store();
      }
    }
  }
  return code;
}

TEST(FenceShuffleTest, ShufflesGiveTheSame) {
  if (kGpuLeaves && !cuda::driver_finds_a_gpu()) GTEST_SKIP() << "no GPU";
  auto device =
      kGpuLeaves ? cuda::open_cuda_device(0) : device::open_device("sim:sms=2,memory=256M,seed=5");
  ASSERT_TRUE(device) << device.error().message;
  std::uint32_t count = 0;
  const std::string shuffles = many_shuffles(count);
  for (const std::string_view leaves : {"", "setp.gt.u32 %p1, %t, 40;\n@%p1 ret;\n"}) {
    const std::string ptx = fmt::format(
        ".version 8.7\n.target sm_90\n.address_size 64\n.visible .entry look(.param .u64 out)\n{{\n"
        ".reg .pred %p<4>, %odd;\n.reg .b32 %r<4>, %t, %v;\n.reg .b64 %mine, %rd<2>;\n"
        "ld.param.u64 %mine, [out];\nmov.u32 %t, %tid.x;\nmul.wide.u32 %rd1, %t, 4;\n"
        "add.u64 %mine, %mine, %rd1;\nmad.lo.u32 %v, %t, 7, 3;\nand.b32 %r1, %t, 1;\n"
        "setp.ne.u32 %odd, %r1, 0;\n{}mov.u32 %r1, 77;\n{}ret;\n}}\n",
        leaves, shuffles);
    FormRunner plain(**device, ptx, 0), fenced(**device, ptx, 0, true);
    for (const injector::FenceVerdict& entry : fenced.fenced().entries)
      EXPECT_EQ(entry.why_not, "") << entry.name;
    const KernelCase kernel{
        .name = "shuffles",
        .entry = "look",
        .grid = {1, 1, 1},
        .block = {64, 1, 1},
        .arguments = {Argument::buffer(std::vector<std::uint32_t>(64 * count, 5))}};
    const std::vector<std::uint32_t> expected = words_of(plain.run_native(kernel)[0]);
    const auto compare = [&](const Outcome& outcome) {
      const std::vector<std::uint32_t> got = words_of(outcome[0]);
      ASSERT_EQ(got.size(), expected.size());
      for (std::size_t i = 0; i < expected.size(); ++i) {
        // 0 also comes from a lane that has left.
        EXPECT_TRUE(got[i] == expected[i] || (got[i] == 0 && !leaves.empty()))
            << "shuffle " << i / 64 << ", thread " << i % 64 << ": " << got[i] << ", not "
            << expected[i];
      }
    };
    compare(fenced.run_native(kernel));
    std::mt19937_64 random(3);
    compare(fenced.run_slices(kernel, random));
  }
}

/// The fence ends lane 20 before it has its number. What the others read of it must be nothing.
TEST(FenceShuffleTest, ALaneThatTheFenceHasEndedIsNotRead) {
  if (kGpuLeaves && !cuda::driver_finds_a_gpu()) GTEST_SKIP() << "no GPU";
  auto device = kGpuLeaves ? cuda::open_cuda_device(0)
                           : device::open_device("sim:sms=2,memory=256M,seed=5,leftovers=171");
  ASSERT_TRUE(device) << device.error().message;
  const std::string ptx = fmt::format(
      kLookModule, "", "",
      "mov.u32 %r2, %laneid;\nsetp.eq.u32 %p1, %r2, 20;\n"
      "selp.b64 %rd1, 16, %mine, %p1;\nld.volatile.global.u32 %r4, [%rd1];\n"
      "ld.volatile.global.u32 %r3, [%mine];\nshfl.sync.idx.b32 %r1, %r3, 20, 31, -1;\n");
  const KernelCase kernel{
      .name = "look",
      .entry = "look",
      .grid = {kLookBlocks, 1, 1},
      .block = {kLookThreads, 1, 1},
      .arguments = {Argument::buffer(std::vector<std::uint32_t>(kLookBlocks * kLookThreads)),
                    Argument::value(std::uint32_t{0})}};
  FormRunner runner(**device, ptx, 0, true, &kernel);
  const auto look = [&](std::string_view form, const Outcome& outcome) {
    const std::vector<std::uint32_t> words = words_of(outcome[0]);
    for (std::size_t i = 0; i < words.size(); ++i)
      ASSERT_EQ(words[i], 0u) << form << ", thread " << i;
  };
  std::mt19937_64 random(11);
  look("native", runner.run_native(kernel));
  look("bounded", runner.run_bounded(kernel).value_or(Outcome{{}}));
  look("slices", runner.run_slices(kernel, random));
  look("worker", runner.run_worker(kernel, random, {}));
}

/// The matrix product by whole warps and by parts of them, in every form.
TEST(FenceMatrixTest, OnlyWholeWarpsMultiply) {
  if (kGpuLeaves && !cuda::driver_finds_a_gpu()) GTEST_SKIP() << "no GPU";
  auto device =
      kGpuLeaves ? cuda::open_cuda_device(0) : device::open_device("sim:sms=2,memory=256M,seed=5");
  ASSERT_TRUE(device) << device.error().message;
  const std::string odd = "mov.u32 %r2, %laneid;\nsetp.eq.u32 %p1, %r2, 20;\n@%p1 exit;\n";
  const std::string guarded = "setp.ge.u32 %p1, %t, 32;\n@%p1 bra BEHIND;\n";
  struct Case {
    std::string name, body;
    std::uint32_t threads = 64;
    bool ends = false;
  };
  const Case cases[] = {{"AllLanes", kMatrix},
                        {"OneOfTwoWarps", guarded + kMatrix + "\nBEHIND:"},
                        {"HalfAWarp", kMatrix, 48, true},
                        {"OneLaneLess", odd + kMatrix, 64, true}};
  for (const Case& each : cases) {
    SCOPED_TRACE(each.name);
    const std::string ptx = fmt::format(kLookModule, "", "", "mov.u32 %r1, 5;\n" + each.body);
    const KernelCase kernel{
        .name = each.name,
        .entry = "look",
        .grid = {4, 1, 1},
        .block = {each.threads, 1, 1},
        .arguments = {Argument::buffer(std::vector<std::uint32_t>(4 * kLookThreads, 2)),
                      Argument::value(std::uint32_t{0})}};
    FormRunner plain(**device, ptx, 0), fenced(**device, ptx, 0, true, &kernel);
    const Outcome expected = each.ends ? Outcome{} : plain.run_native(kernel);
    const auto look = [&](std::string_view form, const Outcome& got) {
      const injector::FenceRecord record = fenced.take_record();
      EXPECT_EQ(record.state == injector::FenceRecord::kComplete, each.ends) << form;
      if (each.ends) {
        EXPECT_EQ(record.kind, static_cast<std::uint32_t>(injector::Violation::kWarp)) << form;
      } else {
        EXPECT_EQ(got, expected) << form;
      }
    };
    std::mt19937_64 random(11);
    const injector::KernelForms& forms = fenced.forms("look");
    look("native", fenced.run_native(kernel));
    if (!forms.slice.empty()) look("slices", fenced.run_slices(kernel, random));
    if (!forms.worker.empty()) look("worker", fenced.run_worker(kernel, random, {}));
    if (const auto bounded = fenced.run_bounded(kernel)) look("bounded", *bounded);
  }
}

/// Odd blocks end while copies of their shared memory are under way. The others fill theirs, wait a
/// while and count what is not theirs any more.
constexpr std::string_view kLeavesCopies = R"(.version 8.7
.target sm_90
.address_size 64
.extern .shared .align 128 .b8 dyn[];
.visible .entry leave(.param .u64 p_found, .param .u64 p_copied, .param .u32 p_pieces)
{{
	.reg .pred %p<4>;
	.reg .b32 %r<12>, %t, %i, %to, %bar;
	.reg .b64 %rd<6>, %mine, %end;
	ld.param.u64 %rd1, [p_copied];
	ld.param.u32 %r1, [p_pieces];
	mov.u32 %t, %tid.x;
	mov.u32 %r2, %ctaid.x;
	shl.b32 %r3, %r2, 1;
	rem.u32 %r3, %r3, %r1;
	mul.wide.u32 %rd2, %r3, 16384;
	add.u64 %mine, %rd1, %rd2;
	mov.u32 %bar, dyn;
	add.u32 %to, %bar, 128;
	and.b32 %r4, %r2, 1;
	setp.ne.u32 %p1, %r4, 0;
	selp.u32 %r5, 0x11111111, 0x22222222, %p1;
	mad.lo.u32 %i, %t, 4, %to;
	add.u32 %r6, %to, 32768;
FILL:
	st.volatile.shared.u32 [%i], %r5;
	add.u32 %i, %i, 1024;
	setp.lt.u32 %p2, %i, %r6;
	@%p2 bra FILL;
	setp.eq.u32 %p3, %t, 0;
	@%p3 mbarrier.init.shared.b64 [%bar], 1;
	fence.proxy.async.shared::cta;
	bar.sync 0;
	@!%p1 bra LOOK;
	{0}
	ret;
LOOK:
	mov.u64 %rd3, %clock64;
	add.u64 %end, %rd3, 20000;
WAIT:
	mov.u64 %rd3, %clock64;
	setp.lt.u64 %p2, %rd3, %end;
	@%p2 bra WAIT;
	mov.u32 %r7, 0;
	mad.lo.u32 %i, %t, 4, %to;
COUNT:
	ld.volatile.shared.u32 %r8, [%i];
	setp.ne.u32 %p2, %r8, %r5;
	@%p2 add.u32 %r7, %r7, 1;
	add.u32 %i, %i, 1024;
	setp.lt.u32 %p2, %i, %r6;
	@%p2 bra COUNT;
	ld.param.u64 %rd4, [p_found];
	red.global.add.u32 [%rd4], %r7;
	ret;
}}
)";

TEST(FenceCopyTest, WhatABlockLeavesUnderWayTouchesNoOthers) {
  if (kGpuLeaves && !cuda::driver_finds_a_gpu()) GTEST_SKIP() << "no GPU";
  auto device =
      kGpuLeaves ? cuda::open_cuda_device(0) : device::open_device("sim:sms=2,memory=256M,seed=5");
  ASSERT_TRUE(device) << device.error().message;
  constexpr std::uint32_t kShared = 128 + (32 << 10);
  const std::uint32_t pieces = kGpuLeaves ? 2048 : 64;  // of 16 KiB
  std::string loads = "@!%p3 ret;\n", stores = loads;
  for (int piece = 0; piece < 2; ++piece) {
    loads += fmt::format(
        "add.u64 %rd5, %mine, {0};\nadd.u32 %r9, %to, {0};\n"
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r9], [%rd5], 16384, "
        "[%bar];\n",
        piece << 14);
    stores += fmt::format(
        "add.u64 %rd5, %mine, {0};\nadd.u32 %r9, %to, {0};\n"
        "cp.async.bulk.global.shared::cta.bulk_group [%rd5], [%r9], 16384;\n",
        piece << 14);
  }
  stores += "cp.async.bulk.commit_group;\n";
  const std::string small =
      "mul.lo.u32 %r9, %t, 16;\nCOPY:\ncvt.u64.u32 %rd5, %r9;\nadd.u64 %rd5, %mine, %rd5;\n"
      "add.u32 %r10, %to, %r9;\ncp.async.cg.shared.global [%r10], [%rd5], 16;\n"
      "add.u32 %r9, %r9, 4096;\nsetp.lt.u32 %p2, %r9, 32768;\n@%p2 bra COPY;\n"
      "cp.async.commit_group;\n";
  const KernelCase kernel{
      .name = "leave",
      .entry = "leave",
      .grid = {kGpuLeaves ? 16384u : 16u, 1, 1},
      .block = {256, 1, 1},
      .shared_bytes = kShared,
      .arguments = {Argument::buffer(std::vector<std::uint32_t>(1)),
                    Argument::buffer(std::vector<std::uint32_t>(pieces * 4096 + 2 * 4096)),
                    Argument::value(pieces)}};
  for (const auto& [name, copies] :
       {std::pair("bulk loads", loads), std::pair("bulk stores", stores),
        std::pair("small loads", small)}) {
    FormRunner runner(**device, fmt::format(kLeavesCopies, copies), 0, true);
    for (const injector::FenceVerdict& entry : runner.fenced().entries)
      EXPECT_EQ(entry.why_not, "") << entry.name;
    const Outcome outcome = runner.run_native(kernel);
    EXPECT_EQ(runner.take_record().state, injector::FenceRecord::kFree) << name;
    EXPECT_EQ(words_of(outcome[0]).at(0), 0u) << name << " came to the next block's shared memory";
    EXPECT_EQ(std::ranges::count(words_of(outcome[1]), 0x22222222u), 0)
        << name << " took the next block's shared memory";
  }
}

INSTANTIATE_TEST_SUITE_P(All, FenceLeftoversTest, testing::ValuesIn(looks()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace slate::test
