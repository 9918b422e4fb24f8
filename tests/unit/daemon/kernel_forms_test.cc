// Forms apart from their module: what is compiled, what is compiled again when a worker form takes
// too many registers, where addresses go, and how forms are kept.
#include "daemon/dispatch/kernel_forms.h"

#include <elf.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <string>

#include "daemon/dispatch/cubin.h"
#include "daemon/dispatch/device_dispatch.h"
#include "device/cuda/ptxas.h"
#include "tests/unit/daemon/elf_image.h"

namespace slate::daemon {
namespace {

constexpr const char* kText = R"(.version 8.8
.target sm_90
.address_size 64
.global .align 4 .u32 counter = 7;
.global .align 8 .b64 other;
.const .align 4 .b8 factors[16] = {1, 2, 3, 4};
.visible .entry other_kernel()
{
	ret;
}
.visible .entry k(.param .u64 a)
{
	.reg .b32 %r<4>;
	.shared .align 4 .b8 words[4096];
	mov.u32 %r1, %tid.x;
	st.shared.u32 [words], %r1;
	bar.sync 0;
	ld.const.u32 %r2, [factors+4];
	atom.global.add.u32 %r3, [counter], %r2;
	ret;
}
)";

struct Needs {
  std::uint32_t registers = 0, stack = 0;
};

/// An image that says of each kernel what it needs, as ptxas writes it, and has the table of
/// variables in its data.
std::vector<std::byte> cubin(const std::map<std::string, Needs>& kernels) {
  std::string strings(1, '\0'), info, data(24, '\0');
  std::vector<Elf64_Sym> symbols(1);
  const auto name = [&](const std::string& text) {
    const auto at = static_cast<std::uint32_t>(strings.size());
    strings += text + '\0';
    return at;
  };
  const auto attribute = [&](char which, std::uint32_t symbol, std::uint32_t value) {
    info += {4, which, 8, 0};
    info.append(reinterpret_cast<const char*>(&symbol), 4);
    info.append(reinterpret_cast<const char*>(&value), 4);
  };
  for (const auto& [kernel, needs] : kernels) {
    Elf64_Sym symbol{};
    symbol.st_name = name(kernel);
    attribute(0x2f, static_cast<std::uint32_t>(symbols.size()), needs.registers);
    attribute(0x12, static_cast<std::uint32_t>(symbols.size()), needs.stack);
    symbols.push_back(symbol);
  }
  Elf64_Sym table{};
  table.st_name = name("__slate_variables");
  table.st_shndx = 4;
  table.st_value = 8;
  table.st_size = 16;
  symbols.push_back(table);

  const std::uint32_t names[] = {name(".strtab"), name(".symtab"), name(".nv.info"),
                                 name(".nv.constant3")};
  const test::ElfPart parts[] = {
      {names[0], strings},
      {names[1],
       {reinterpret_cast<const char*>(symbols.data()), symbols.size() * sizeof(Elf64_Sym)}},
      {names[2], info},
      {names[3], data}};
  return test::elf_image(parts);
}

class KernelFormsTest : public testing::Test {
 protected:
  /// Made by a compiler whose worker form needs so much.
  MadeForms make(Needs worker, const std::string& kernel = "k", const char* text = kText) {
    texts_.clear();
    const auto module = ptx::parse(text);
    EXPECT_TRUE(module) << module.error().message;
    const auto native = cubin({{"k", native_}});
    const auto made =
        make_forms(writer_of(**module), {.kernel = kernel, .native = native, .profile = false},
                   [&](std::string_view ptx) -> Result<std::vector<std::byte>> {
                     texts_.emplace_back(ptx);
                     if (refuses_) return std::unexpected(*refuses_);
                     return cubin({{"k__slate_worker", worker},
                                   {"k__slate_slice", {}},
                                   {"k__slate_compact", compact_}});
                   });
    EXPECT_TRUE(made) << made.error().message;
    return made ? *made : MadeForms{};
  }
  static bool has(const std::string& text, std::string_view part) {
    return text.find(part) != std::string::npos;
  }

  Needs native_{.registers = 33}, compact_{.registers = 40};
  std::optional<Error> refuses_;
  std::vector<std::string> texts_;  // that were compiled
};

/// As KernelFormsTest, behind the fence, where the code has the kernel itself with such needs.
class FencedFormsTest : public KernelFormsTest {
 protected:
  MadeForms fence(Fencing what, Needs own = {.registers = 33}, const char* text = kText) {
    texts_.clear();
    const auto module = ptx::parse(text);
    EXPECT_TRUE(module) << module.error().message;
    const auto native = cubin({{"k", native_}});
    const auto made = make_forms(
        writer_of(**module),
        {.kernel = "k", .native = native, .fence = what, .reserved_shared = 1024},
        [&](std::string_view ptx) -> Result<std::vector<std::byte>> {
          texts_.emplace_back(ptx);
          return cubin(
              {{"k", own}, {"k__slate_bounded", bounded_}, {"k__slate_worker", {.registers = 30}}});
        });
    EXPECT_TRUE(made) << made.error().message;
    return made ? *made : MadeForms{};
  }

  Needs bounded_{.registers = 33};
};

TEST_F(FencedFormsTest, TheKernelItselfIsCompiledWithoutForms) {
  const MadeForms made = fence(Fencing::kKernel);
  EXPECT_EQ(made.why_none, "");
  ASSERT_EQ(texts_.size(), 1);
  EXPECT_TRUE(has(texts_[0], ".entry k(") && has(texts_[0], "__slate_fence["));
  EXPECT_FALSE(has(texts_[0], "__slate_worker"));
  EXPECT_EQ(made.functions.front(), "k");
  EXPECT_EQ(made.variables, (std::vector<std::string>{"counter", "factors"}));
  EXPECT_FALSE(has_any(made.forms));
}

TEST_F(FencedFormsTest, ItsFormsAreCompiledWithoutTheKernel) {
  const MadeForms made = fence(Fencing::kForms);
  ASSERT_FALSE(texts_.empty());
  EXPECT_FALSE(has(texts_[0], ".entry k("));
  EXPECT_TRUE(has(texts_[0], ".entry k__slate_worker(") && has(texts_[0], "__slate_fence["));
  EXPECT_EQ(made.forms.worker, "k__slate_worker");
}

TEST_F(FencedFormsTest, ALimitIsOnlyForBlocksThatWouldNotFit) {
  native_.registers = 33;
  fence(Fencing::kKernel, {.registers = 64});
  EXPECT_EQ(texts_.size(), 1) << "1024 threads still fit";
  fence(Fencing::kKernel, {.registers = 65});
  ASSERT_EQ(texts_.size(), 2);
  EXPECT_FALSE(has(texts_[0], ".maxnreg"));
  EXPECT_TRUE(has(texts_[1], ".maxnreg 64\n"));
  native_.registers = 120;
  fence(Fencing::kKernel, {.registers = 140});
  ASSERT_EQ(texts_.size(), 2);
  EXPECT_TRUE(has(texts_[1], ".maxnreg 120\n")) << "544 threads";
}

constexpr const char* kIndexed = R"(.version 8.8
.target sm_90
.address_size 64
.visible .entry k(.param .u64 a)
{
	.reg .b32 %r<4>;
	.reg .b64 %rd<4>;
	ld.param.u64 %rd1, [a];
	mov.u32 %r1, %tid.x;
	mul.wide.u32 %rd2, %r1, 4;
	add.s64 %rd3, %rd1, %rd2;
	st.global.u32 [%rd3], %r1;
	ret;
}
)";

TEST_F(FencedFormsTest, ABoundedCopyIsMadeWhereTheLaunchBoundsAnAccess) {
  const MadeForms made = fence(Fencing::kKernel, {.registers = 33}, kIndexed);
  ASSERT_EQ(texts_.size(), 1);
  EXPECT_TRUE(has(texts_[0], ".entry k__slate_bounded("));
  EXPECT_FALSE(made.bounds.claims.empty());
  const auto again = unpack(pack(made));
  ASSERT_TRUE(again);
  EXPECT_EQ(again->bounds.claims, made.bounds.claims);
  EXPECT_EQ(again->bounds.steps.size(), made.bounds.steps.size());
  // By name and within a variable, nothing needs a check in any case.
  EXPECT_TRUE(fence(Fencing::kKernel).bounds.claims.empty());
  EXPECT_FALSE(has(texts_[0], "__slate_bounded"));
  EXPECT_TRUE(fence(Fencing::kForms, {}, kIndexed).bounds.claims.empty());
}

TEST_F(FencedFormsTest, ABoundedCopyFitsWhereTheKernelDoes) {
  bounded_.registers = 65;
  fence(Fencing::kKernel, {.registers = 64}, kIndexed);
  ASSERT_EQ(texts_.size(), 2);
  EXPECT_TRUE(has(texts_[1], ".maxnreg 64\n"));
}

TEST_F(FencedFormsTest, WhatCannotBeFencedSaysWhy) {
  constexpr const char* kCallsItself = R"(.version 8.8
.target sm_90
.address_size 64
.func f() { call f; ret; }
.visible .entry k(.param .u64 a)
{
	call f;
	ret;
}
)";
  const MadeForms made = fence(Fencing::kKernel, {}, kCallsItself);
  EXPECT_TRUE(has(made.why_none, "cannot be fenced: calls f, which may call itself"))
      << made.why_none;
  EXPECT_TRUE(texts_.empty());
  const MadeForms forms = fence(Fencing::kForms, {}, kCallsItself);
  EXPECT_FALSE(has_any(forms.forms));
  EXPECT_NE(forms.why_none, "");
}

TEST_F(FencedFormsTest, WhatIsPackedIsUnpacked) {
  const MadeForms made = fence(Fencing::kKernel);
  const auto again = unpack(pack(made));
  ASSERT_TRUE(again);
  EXPECT_EQ(again->functions, made.functions);
  EXPECT_EQ(again->code, made.code);
}

TEST_F(KernelFormsTest, DispatchKernelsAreLinkedWithTheWorkerFormsWhereTheyAreWanted) {
  const auto module = ptx::parse(kText);
  std::vector<std::string> linked;
  int compiled = 0;
  const FormCompiler compile = [&](std::string_view) -> Result<std::vector<std::byte>> {
    ++compiled;
    return cubin({{"k__slate_worker", {}}, {"k__slate_slice", {}}, {"k__slate_compact", {}}});
  };
  FormOrder order{.kernel = "k", .native = {}, .profile = false};
  order.link = [&](std::span<const std::string> texts) {
    linked.assign(texts.begin(), texts.end());
    return compile("");
  };
  ASSERT_TRUE(make_forms(writer_of(**module), order, compile));
  EXPECT_EQ(compiled, 1);
  ASSERT_EQ(linked.size(), 3u);
  EXPECT_TRUE(has(linked[0], ".entry k__slate_worker"));
  EXPECT_TRUE(has(linked[1], ".entry " + dispatch_name("k__slate_worker") + "("));
  EXPECT_TRUE(has(linked[1], ".extern .entry k__slate_worker"));
  EXPECT_TRUE(has(linked[2], ".extern .entry k__slate_compact"));
  EXPECT_FALSE(has(linked[2], "slate_dispatch"));
  order.link = [](std::span<const std::string>) {
    return fail(ErrorCode::kInvalidPtx, "as the test wants it");
  };
  const auto made = make_forms(writer_of(**module), order, compile);
  ASSERT_TRUE(made);
  EXPECT_FALSE(made->code.empty()) << "the host can start workers, too";
}

TEST_F(KernelFormsTest, LinkedCodeSaysOfItselfWhatCodeOfOneTextSays) {
  const cuda::Ptxas assembler({.path = {}, .major = 9, .driver_version = 99000});
  if (!assembler.can_link()) GTEST_SKIP() << assembler.can_link().error().message;
  constexpr std::chrono::minutes kLimit{1};
  const FormCompiler compile = [&](std::string_view ptx) { return assembler.compile(ptx, kLimit); };
  const auto native = compile(kText);
  ASSERT_TRUE(native) << native.error().message;
  FormOrder order{.kernel = "k", .native = *native, .profile = true};
  const auto module = ptx::parse(kText);
  const auto apart = make_forms(writer_of(**module), order, compile);
  order.link = [&](std::span<const std::string> texts) { return assembler.link(texts, kLimit); };
  const auto linked = make_forms(writer_of(**module), order, compile);
  ASSERT_TRUE(apart && linked);
  EXPECT_EQ(linked->forms.worker, apart->forms.worker);
  EXPECT_EQ(linked->forms.compact_worker, apart->forms.compact_worker);
  EXPECT_EQ(linked->forms.slice, apart->forms.slice);
  EXPECT_EQ(linked->variables, apart->variables);
  for (const std::string& form : {linked->forms.worker, linked->forms.slice}) {
    ASSERT_TRUE(needs_of(linked->code, form)) << form;
    EXPECT_EQ(needs_of(linked->code, form)->stack_bytes, needs_of(apart->code, form)->stack_bytes);
  }
  EXPECT_TRUE(needs_of(linked->code, dispatch_name(linked->forms.worker)));
  EXPECT_FALSE(needs_of(apart->code, dispatch_name(linked->forms.worker)));
  const std::vector<device::Address> addresses(linked->variables.size(), 0x1234567890);
  const auto placed = code_with_addresses(*linked, addresses);
  ASSERT_TRUE(placed) << placed.error().message;
  EXPECT_NE(*placed, linked->code);
}

TEST_F(KernelFormsTest, OnlyTheFormsAndWhatTheyNeedAreCompiled) {
  const MadeForms made = make({.registers = 40});
  ASSERT_EQ(texts_.size(), 1u);
  EXPECT_TRUE(has(texts_[0], ".entry k__slate_worker("));
  EXPECT_TRUE(has(texts_[0], ".entry k__slate_slice("));
  EXPECT_FALSE(has(texts_[0], ".entry k("));
  EXPECT_FALSE(has(texts_[0], "other"));
  EXPECT_FALSE(has(texts_[0], "counter"));
  EXPECT_FALSE(has(texts_[0], "factors"));
  EXPECT_TRUE(has(texts_[0], "ld.global.nc.u32 %r2, [%slate_placed0+4];")) << texts_[0];
  EXPECT_EQ(made.variables, (std::vector<std::string>{"counter", "factors"}));
  EXPECT_EQ(made.forms.worker, "k__slate_worker");
  EXPECT_FALSE(made.code.empty());
  EXPECT_EQ(made.why_none, "");
}

TEST_F(KernelFormsTest, TooManyRegistersAreLimited) {
  EXPECT_EQ(make({.registers = 40}).forms.compact_worker.empty(), false) << "as many as 33 take";
  make({.registers = 41});
  ASSERT_EQ(texts_.size(), 2u);
  EXPECT_FALSE(has(texts_[0], ".maxnreg"));
  EXPECT_TRUE(has(texts_[1], ".maxnreg 40"));
  EXPECT_TRUE(has(texts_[1], "__slate_copies"));
}

TEST_F(KernelFormsTest, WhatSpillsUnderTheLimitBecomesLean) {
  const MadeForms made = make({.registers = 41, .stack = 8});
  ASSERT_EQ(texts_.size(), 3u);
  EXPECT_TRUE(has(texts_[2], ".maxnreg 40"));
  EXPECT_FALSE(has(texts_[2], "__slate_copies"));
  EXPECT_TRUE(made.forms.compact_worker.empty()) << "what is loaded has none";
}

TEST_F(KernelFormsTest, TheCompactFormCountsToo) {
  compact_ = {.registers = 48};
  make({.registers = 40});
  EXPECT_EQ(texts_.size(), 2u);
}

TEST_F(KernelFormsTest, WhatTheKernelItselfSpillsIsNoReason) {
  native_.stack = 8;
  make({.registers = 41, .stack = 8});
  EXPECT_EQ(texts_.size(), 2u);
}

TEST_F(KernelFormsTest, AKernelThatCostsTooMuchHasNone) {
  refuses_ = Error{ErrorCode::kLimit, "it took too much processor time"};
  const MadeForms made = make({});
  EXPECT_EQ(made.why_none, "it took too much processor time");
  EXPECT_EQ(made.forms.analysis.worker.why_not, made.why_none);
  EXPECT_TRUE(made.code.empty());
  EXPECT_TRUE(made.forms.worker.empty());
}

TEST_F(KernelFormsTest, AKernelThatNeedsItsModuleHasNone) {
  constexpr const char* kIndirect = R"(.version 8.8
.target sm_90
.address_size 64
.func f() { ret; }
.visible .entry k()
{
	.reg .b64 %rd<2>;
	mov.u64 %rd1, f;
	prototype : .callprototype _ ();
	call %rd1, (), prototype;
	ret;
}
)";
  const MadeForms made = make({}, "k", kIndirect);
  EXPECT_TRUE(has(made.why_none, "takes the address of a function")) << made.why_none;
  EXPECT_TRUE(texts_.empty());
}

TEST_F(KernelFormsTest, AddressesStandInTheCodesTable) {
  const MadeForms made = make({.registers = 40});
  const device::Address addresses[] = {0x123456789abc, 0x1000};
  auto code = code_with_addresses(made, addresses);
  ASSERT_TRUE(code) << code.error().message;
  const auto table = contents_of(*code, "__slate_variables");
  ASSERT_EQ(table.size(), sizeof(addresses));
  EXPECT_EQ(std::memcmp(table.data(), addresses, sizeof(addresses)), 0);
  EXPECT_FALSE(code_with_addresses(made, {})) << "there are two variables";
}

TEST_F(KernelFormsTest, AddressesStandInTextThatTheDeviceCompiles) {
  const auto module = ptx::parse(kText);
  const auto made =
      make_forms(writer_of(**module), {.kernel = "k", .native = {}, .profile = true}, {});
  ASSERT_TRUE(made) << made.error().message;
  const device::Address addresses[] = {0x1000, 0x2000};
  const auto code = code_with_addresses(*made, addresses);
  ASSERT_TRUE(code) << code.error().message;
  const std::string text(reinterpret_cast<const char*>(code->data()), code->size());
  EXPECT_TRUE(has(text, "__slate_variables[2] = {0x1000, 0x2000};")) << text;
  EXPECT_TRUE(ptx::parse(text));
  EXPECT_TRUE(has(text, ".entry k__slate_profile("));
}

TEST_F(KernelFormsTest, WhatIsPackedIsUnpacked) {
  MadeForms made = make({.registers = 40});
  made.forms.work = {{.flops = 1.5, .bytes = 2, .instructions = 3}};
  made.forms.analysis.needs_whole_rows = true;
  made.cost_ms = 12.5;
  const auto again = unpack(pack(made));
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->code, made.code);
  EXPECT_EQ(again->variables, made.variables);
  EXPECT_EQ(again->forms.worker, made.forms.worker);
  EXPECT_EQ(again->forms.compact_worker, made.forms.compact_worker);
  EXPECT_EQ(again->forms.slice, made.forms.slice);
  ASSERT_EQ(again->forms.work.size(), 1u);
  EXPECT_EQ(again->forms.work[0].flops, 1.5);
  EXPECT_TRUE(again->forms.analysis.needs_whole_rows);
  EXPECT_EQ(again->cost_ms, 12.5);
  // The rest of EntryAnalysis is the same: packed again, nothing is lost.
  EXPECT_EQ(pack(*again), pack(made));
}

TEST_F(KernelFormsTest, DamagedPackagesAreRefused) {
  auto bytes = pack(make({.registers = 40}));
  for (std::size_t size = 0; size < bytes.size(); size += 7) {
    EXPECT_FALSE(unpack(std::span(bytes).first(size))) << size;
  }
  EXPECT_FALSE(unpack(std::as_bytes(std::span("{}", 2))));
}

TEST(CubinTest, CutImagesGiveNothingWrong) {
  const auto image = cubin({{"k", {.registers = 33, .stack = 16}}});
  const auto needs = needs_of(image, "k");
  ASSERT_TRUE(needs);
  EXPECT_EQ(needs->registers, 33u);
  EXPECT_EQ(needs->stack_bytes, 16u);
  EXPECT_FALSE(needs_of(image, "other"));
  for (std::size_t size = 0; size < image.size(); size += 3) {
    std::vector<std::byte> cut(image.begin(), image.begin() + static_cast<std::ptrdiff_t>(size));
    const auto left = needs_of(cut, "k");
    EXPECT_TRUE(!left || left->registers == 33) << size;
    EXPECT_TRUE(contents_of(cut, "__slate_variables").empty());
  }
}

}  // namespace
}  // namespace slate::daemon
