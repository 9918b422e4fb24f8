#include "device/cuda/sm_probe.h"

#include <fmt/core.h>

#include <span>
#include <string_view>
#include <utility>

#include "device/cuda/modules.h"

namespace slate::cuda {
namespace {

// Its blocks stay for about ten microseconds, so that one SM cannot take them all in turn.
constexpr std::string_view kPtx = R"(
.version 6.0
.target sm_50
.address_size 64

.visible .global .align 4 .u32 seen[4096];

.visible .entry find_sms() {
  .reg .pred %p;
  .reg .b32 %r<3>;
  .reg .b64 %d<6>;
  mov.u32 %r1, %smid;
  setp.ge.u32 %p, %r1, 4096;
  @%p bra done;
  mul.wide.u32 %d1, %r1, 4;
  mov.u64 %d2, seen;
  add.u64 %d2, %d2, %d1;
  mov.u32 %r2, 1;
  st.global.u32 [%d2], %r2;
  mov.u64 %d3, %clock64;
again:
  mov.u64 %d4, %clock64;
  sub.u64 %d5, %d4, %d3;
  setp.lt.u64 %p, %d5, 20000;
  @%p bra again;
done:
  ret;
}
)";

constexpr std::uint32_t kBlocksPerSm = 64;
constexpr std::uint32_t kThreads = 32;
constexpr int kTries = 20;

}  // namespace

Result<SmProbe> SmProbe::make(Context& context) {
  const auto module = load_module(context, device::ImageKind::kPtx, std::as_bytes(std::span(kPtx)));
  if (!module) return std::unexpected(module.error());
  SmProbe probe(context, *module);
  const auto function = find_function(context, *module, "find_sms");
  if (!function) return std::unexpected(function.error());
  probe.function_ = *function;
  const auto seen = find_global(context, *module, "seen");
  if (!seen) return std::unexpected(seen.error());
  probe.seen_ = *seen;
  return probe;
}

SmProbe::SmProbe(SmProbe&& other) noexcept
    : context_(other.context_),
      module_(std::exchange(other.module_, nullptr)),
      function_(other.function_),
      seen_(other.seen_) {}

SmProbe::~SmProbe() {
  if (module_ == nullptr) return;
  std::ignore = context_->call(context_->driver().cuModuleUnload, module_);
}

Result<void> SmProbe::launch(CUstream stream, std::uint32_t blocks) {
  return context_->call(context_->driver().cuLaunchKernel, function_, blocks, 1, 1, kThreads, 1, 1,
                        0, stream, nullptr, nullptr);
}

Result<std::vector<std::uint32_t>> SmProbe::find(CUstream stream, std::uint32_t count) {
  const Driver& driver = context_->driver();
  std::vector<std::uint32_t> words(seen_.bytes / sizeof(std::uint32_t));
  std::vector<std::uint32_t> sms;
  Result<void> done = context_->call(driver.cuMemsetD32Async, seen_.base, 0, words.size(), stream);
  for (int i = 0; done && sms.size() < count && i < kTries; ++i) {
    done = launch(stream, kBlocksPerSm * count);
    if (done) {
      done =
          context_->call(driver.cuMemcpyDtoHAsync, words.data(), seen_.base, seen_.bytes, stream);
    }
    // Also after a refusal: `words` must not be written to once it is gone.
    const auto finished = context_->call(driver.cuStreamSynchronize, stream);
    if (done) done = finished;
    sms.clear();
    for (std::uint32_t sm = 0; sm < words.size(); ++sm) {
      if (words[sm] != 0) sms.push_back(sm);
    }
  }
  if (!done) return std::unexpected(done.error());
  if (sms.size() != count) {
    return fail(sms.size() < count ? ErrorCode::kOutOfResources : ErrorCode::kNotSupported,
                fmt::format("a group of {} SMs ran its blocks on {}", count, sms.size()));
  }
  return sms;
}

}  // namespace slate::cuda
