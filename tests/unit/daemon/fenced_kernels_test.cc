// Bounded copies of a kernel behind the fence: further ones, for blocks that the first one is not
// for, and those of code that no compiler wrote.
#include "daemon/engine/fenced_kernels.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "daemon/engine/module_store.h"
#include "device/device.h"
#include "tests/unit/daemon/elf_image.h"
#include "tests/unit/daemon/forwarding_device.h"
#include "tests/unit/daemon/temporary_directory.h"

namespace slate::daemon {
namespace {

/// Each thread reads what another one has stored in shared memory, by the size of the block. Then
/// it reads global memory in a loop of so many turns, by an index that nothing bounds.
constexpr std::string_view kReverses = R"(.version 8.8
.target sm_90
.address_size 64
.extern .shared .align 4 .b8 tile[];
.visible .entry k(.param .u64 p, .param .u32 turns)
{
	.reg .b64 %rd<4>;
	.reg .b32 %r<12>;
	.reg .pred %p<3>;
	ld.param.u64 %rd1, [p];
	mov.u32 %r1, %tid.x;
	mov.u32 %r2, tile;
	mad.lo.u32 %r3, %r1, 4, %r2;
	st.shared.u32 [%r3], %r1;
	bar.sync 0;
	mov.u32 %r4, %ntid.x;
	sub.u32 %r5, %r4, %r1;
	sub.u32 %r5, %r5, 1;
	mad.lo.u32 %r6, %r5, 4, %r2;
	ld.shared.u32 %r7, [%r6];
	mul.wide.u32 %rd2, %r1, 4;
	add.u64 %rd3, %rd1, %rd2;
	st.global.u32 [%rd3], %r7;
	ld.param.u32 %r8, [turns];
	setp.eq.u32 %p1, %r8, 0;
	@%p1 ret;
	mov.u32 %r9, 0;
	mov.u32 %r10, 0;
LOOP:
	mad.wide.u32 %rd2, %r9, 65536, %rd1;
	ld.global.u32 %r11, [%rd2];
	add.u32 %r10, %r10, 1;
	add.u32 %r9, %r9, %r8;
	setp.lt.u32 %p2, %r10, %r8;
	@%p2 bra LOOP;
	ret;
}
)";

/// Each thread stores a constant.
constexpr std::string_view kStoresConstant = R"(.version 8.8
.target sm_90
.address_size 64
.visible .const .align 4 .u32 weight = 5;
.visible .entry k(.param .u64 p)
{
	.reg .b64 %rd<4>;
	.reg .b32 %r<3>;
	ld.param.u64 %rd1, [p];
	mov.u32 %r1, %tid.x;
	mul.wide.u32 %rd2, %r1, 4;
	add.u64 %rd3, %rd1, %rd2;
	ld.const.u32 %r2, [weight];
	st.global.u32 [%rd3], %r2;
	ret;
}
)";

/// Machine code that has the constant of kStoresConstant as a variable. It has no constants.
std::vector<std::byte> code_without_constants() {
  const std::string names("\0weight\0.nv.global\0.symtab\0.strtab", 34);
  const auto name = [&](std::string_view text) {
    return static_cast<std::uint32_t>(names.find(text));
  };
  std::array<Elf64_Sym, 2> symbols{};
  symbols[1].st_name = name("weight");
  symbols[1].st_info = ELF64_ST_INFO(STB_LOCAL, STT_OBJECT);
  symbols[1].st_shndx = 3;
  symbols[1].st_size = 4;
  const std::array<test::ElfPart, 3> parts{{
      {name(".strtab"), names, SHT_STRTAB},
      {name(".symtab"),
       {reinterpret_cast<const char*>(symbols.data()), sizeof(symbols)},
       SHT_SYMTAB},
      {name(".nv.global"), "", SHT_NOBITS, SHF_ALLOC | SHF_WRITE, 0, 0, 64},
  }};
  return test::elf_image(parts);
}

/// A device that takes all machine code for that of kStoresConstant, but for what its compiler
/// makes, if it has one. That has the text in a section.
class MachineCodeDevice : public ForwardingDevice {
 public:
  MachineCodeDevice(std::unique_ptr<device::Device> inner, bool compiles)
      : ForwardingDevice(std::move(inner)), compiles_(compiles) {}
  Result<std::string> compiler_identity() const override {
    if (compiles_) return std::string("text");
    return ForwardingDevice::compiler_identity();
  }
  Result<std::vector<std::byte>> compile(std::string_view ptx, std::chrono::milliseconds) override {
    const std::array<test::ElfPart, 2> parts{
        {{1, std::string("\0.strtab\0", 9), SHT_STRTAB}, {0, std::string(ptx)}}};
    std::vector<std::byte> code = test::elf_image(parts);
    const std::lock_guard lock(mutex_);
    texts_[code] = ptx;
    return code;
  }
  Result<device::Module> load_module(device::ImageKind kind,
                                     std::span<const std::byte> image) override {
    if (kind != device::ImageKind::kCubin) return ForwardingDevice::load_module(kind, image);
    const std::lock_guard lock(mutex_);
    const auto text = texts_.find(std::vector(image.begin(), image.end()));
    return ForwardingDevice::load_module(
        device::ImageKind::kPtx,
        std::as_bytes(text == texts_.end() ? std::span(kStoresConstant) : std::span(text->second)));
  }

 private:
  const bool compiles_;
  std::mutex mutex_;
  std::map<std::vector<std::byte>, std::string> texts_;  // by the machine code
};

class FencedKernelsTest : public testing::Test {
 protected:
  explicit FencedKernelsTest(bool compiles = false)
      : device_(std::make_unique<MachineCodeDevice>(
            std::move(*device::open_device("sim:sms=2,memory=256M")), compiles)),
        compiler_(*device_, open_cache(*device_, directory_.path(), std::uint64_t{64} << 20)),
        maker_(compiler_, {}),
        fence_(
            std::make_shared<FenceMemory>(*device_, FenceChoice::kAlways, UnfencedChoice::kRun)) {
    store_ = std::make_unique<ModuleStore>(
        *device_, compiler_, &maker_, 1, [](device::Address, std::uint64_t) { return false; },
        std::make_shared<ImageStore>(0), Loader(), &fence_);
    add_kernel();
  }
  ~FencedKernelsTest() override {
    fence_.release();
    store_->release();
  }

  void add_kernel() {
    EXPECT_TRUE(store_->add_chunk({1, kReverses.size(), 0, ipc::kImagePtx, 0},
                                  std::as_bytes(std::span(kReverses))));
    EXPECT_TRUE(store_->add_function(1, 1, "k"));
  }
  injector::LaunchValues launch_of(std::uint32_t threads) {
    std::memcpy(parameters_, &kLow, sizeof(kLow));
    std::memcpy(parameters_ + sizeof(kLow), &turns_, sizeof(turns_));
    return {.parameters = parameters_,
            .block = {threads, 1, 1},
            .shared_bytes = 4 * threads,
            .low = kLow,
            .bytes = extent_};
  }
  FunctionRecord& fenced(std::uint32_t threads) {
    const auto found = store_->fenced(1, **store_->find_function(1),
                                      [this, threads] { return launch_of(threads); });
    EXPECT_TRUE(found);
    return **found;
  }
  bool serves(const FunctionRecord& kernel, std::uint32_t threads) {
    return std::ranges::any_of(kernel.bounded, [&](const std::shared_ptr<BoundedCopy>& copy) {
      return copy->serves(launch_of(threads));
    });
  }
  /// Launches until a copy has come, or for 100 ms where none is to come.
  bool launch_unserved(FunctionRecord& kernel, std::uint32_t threads, int launches, bool comes) {
    const std::size_t before = kernel.bounded.size();
    const auto limit =
        std::chrono::steady_clock::now() + std::chrono::milliseconds(comes ? 30'000 : 100);
    for (int i = 0; i < launches; ++i) store_->attend_unserved(1, kernel, launch_of(threads));
    while (kernel.bounded.size() == before && std::chrono::steady_clock::now() < limit) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      if (comes) store_->attend_unserved(1, kernel, launch_of(threads));
    }
    return kernel.bounded.size() > before;
  }

  static constexpr std::uint64_t kLow = 0x4000'0000;
  std::uint64_t extent_ = 1 << 20;
  std::uint32_t turns_ = 0;
  std::byte parameters_[sizeof(kLow) + sizeof(turns_)];
  TemporaryDirectory directory_;
  std::unique_ptr<device::Device> device_;
  Compiler compiler_;
  FormMaker maker_;
  SessionFence fence_;
  std::unique_ptr<ModuleStore> store_;
};

TEST_F(FencedKernelsTest, BlocksThatComeAgainGetACopyOfTheirOwn) {
  FunctionRecord& kernel = fenced(64);
  ASSERT_EQ(kernel.bounded.size(), 1u);
  ASSERT_TRUE(serves(kernel, 64));
  ASSERT_FALSE(serves(kernel, 96));
  ASSERT_TRUE(launch_unserved(kernel, 96, 2, true));
  EXPECT_TRUE(serves(kernel, 96));
  EXPECT_TRUE(serves(kernel, 64));
  EXPECT_FALSE(serves(kernel, 32));
}

TEST_F(FencedKernelsTest, BlocksThatComeOnceGetNone) {
  FunctionRecord& kernel = fenced(64);
  for (std::uint32_t threads = 96; threads <= 160; threads += 32)
    EXPECT_FALSE(launch_unserved(kernel, threads, 1, false));
}

TEST_F(FencedKernelsTest, WithoutAnExtentNoCopyIsMade) {
  FunctionRecord& kernel = fenced(64);
  extent_ = 0;
  EXPECT_FALSE(launch_unserved(kernel, 64, 9, false));
}

TEST_F(FencedKernelsTest, AKernelHasOnlyCopiesForSoManyBlocks) {
  FunctionRecord& kernel = fenced(32);
  int copies = 0;
  for (std::uint32_t threads = 64; threads <= 288; threads += 32)
    copies += launch_unserved(kernel, threads, 2, true) ? 1 : 0;
  EXPECT_EQ(copies, 8);
  EXPECT_FALSE(launch_unserved(kernel, 320, 9, false));
  EXPECT_FALSE(serves(kernel, 320));
}

TEST_F(FencedKernelsTest, ACopyThatIsNotForOtherValuesIsNotTheLastOne) {
  FunctionRecord& kernel = fenced(64);
  // With another number of turns the copy's claims do not hold.
  turns_ = 6;
  ASSERT_FALSE(serves(kernel, 64));
  ASSERT_TRUE(launch_unserved(kernel, 64, 2, true));
  EXPECT_TRUE(serves(kernel, 64));
  turns_ = 0;
  EXPECT_TRUE(serves(kernel, 64));
}

TEST_F(FencedKernelsTest, BlocksHaveOnlySoManyCopies) {
  FunctionRecord& kernel = fenced(64);
  for (const int copies : {1, 2, 3, 4}) {
    // As if the last one did not serve them.
    EXPECT_TRUE(launch_unserved(kernel, 96, 2, true)) << copies;
  }
  EXPECT_FALSE(launch_unserved(kernel, 96, 9, false));
}

TEST_F(FencedKernelsTest, TheModulesOfFurtherCopiesGoWithTheKernels) {
  FunctionRecord& kernel = fenced(64);
  ASSERT_TRUE(launch_unserved(kernel, 96, 2, true));
  const auto gone = store_->forget(1);
  ASSERT_TRUE(gone);
  EXPECT_EQ(gone->modules.size(), 3u) << "the program's, and one for each copy";
}

/// The cache keeps what is made.
class KeptCopiesTest : public FencedKernelsTest {
 protected:
  KeptCopiesTest() : FencedKernelsTest(true) {}
};

TEST_F(KeptCopiesTest, CopiesOfAnEarlierRunServeTheFirstLaunch) {
  FunctionRecord& earlier = fenced(64);
  ASSERT_TRUE(launch_unserved(earlier, 96, 2, true));
  turns_ = 6;
  ASSERT_TRUE(launch_unserved(earlier, 96, 2, true));
  ASSERT_TRUE(store_->forget(1));
  add_kernel();
  FunctionRecord& kernel = fenced(64);
  ASSERT_EQ(kernel.bounded.size(), 1u);
  store_->attend_unserved(1, kernel, launch_of(96));
  EXPECT_TRUE(serves(kernel, 96));
  EXPECT_EQ(kernel.bounded.size(), 3u) << "also the one for other turns, which came first";
}

TEST_F(FencedKernelsTest, MachineCodeNeedNotHaveTheConstantsOfItsText) {
  constexpr std::uint64_t kBytes = 2 << 20;
  const auto base = device_->reserve(kBytes);
  ASSERT_TRUE(base);
  const device::AddressRange memory{*base, kBytes};
  ASSERT_TRUE(device_->map(memory));
  store_->give_homes({.take = [&](std::uint64_t) -> Result<device::Address> { return *base; },
                      .give_back = [](device::Address) {}});
  const std::vector<std::byte> code = code_without_constants();
  const auto source = std::as_bytes(std::span(kStoresConstant));
  ASSERT_TRUE(store_->add_chunk({2, source.size(), 0, ipc::kImageSource, 0}, source));
  ASSERT_TRUE(store_->add_chunk({2, code.size(), 0, ipc::kImageElf, 0}, code));
  ASSERT_TRUE(store_->add_function(2, 2, "k"));
  const auto weight = store_->find_global(2, "weight");
  ASSERT_TRUE(weight);
  ASSERT_TRUE(memory.base < weight->base && weight->base < memory.base + kBytes) << "at home";
  const auto kernel =
      store_->fenced(2, **store_->find_function(2), [this] { return launch_of(64); });
  ASSERT_TRUE(kernel);
  EXPECT_EQ((*kernel)->bounded.size(), 1u);
  fence_.release();
  store_->release();
  ASSERT_TRUE(device_->unmap(memory));
  device_->unreserve(memory);
}

}  // namespace
}  // namespace slate::daemon
