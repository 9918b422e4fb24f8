// What CUDA's device runtime offers under plain function names: printf and assert. malloc and free
// are not here: slate brings its own (injector/link/heap.h).
#include <fmt/format.h>

#include <bit>
#include <cstring>

#include "base/print_format.h"
#include "device/sim/decode.h"
#include "device/sim/warp.h"

namespace slate::sim {
namespace {

constexpr std::size_t kMaxString = 64u << 10;

}  // namespace

std::uint64_t Warp::read_argument(const Argument& argument, const Frame& frame, int lane) const {
  std::uint64_t value = 0;
  if (argument.is_register) {
    std::memcpy(&value, at(argument.ref, frame) + argument.width * lane, argument.width);
  } else {
    std::memcpy(&value, frame.registers + argument.offset + piece_offset(0, lane), argument.bytes);
  }
  return value;
}

std::optional<std::string> Warp::read_string(std::uint64_t address, int lane) {
  std::string text;
  while (text.size() < kMaxString) {
    const std::uint64_t host = host_address(Space::kGeneric, address++, 1, Access::kRead, lane);
    if (host == 0) return std::nullopt;
    const char c = *reinterpret_cast<const char*>(host);
    if (c == '\0') break;
    text += c;
  }
  return text;
}

bool Warp::system_call(const CallSite& site, const Split& split, Mask exec) {
  const Frame& frame = *split.frame;
  ++stores_;
  for (Mask rest = exec; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    std::uint64_t result = 0;
    switch (site.system) {
      case SystemCall::kPrintf:
        if (!print(site, split, lane, result)) return false;
        break;
      case SystemCall::kAssertFail:
        if (!assert_fail(site, split, lane)) return false;
        break;
      case SystemCall::kNone:
        break;
    }
    if (site.returns.empty()) continue;
    const Argument& to = site.returns[0];
    std::byte* const place = to.is_register ? at(to.ref, frame) + to.width * lane
                                            : frame.registers + to.offset + piece_offset(0, lane);
    const std::uint32_t size = to.is_register ? to.width : to.bytes;
    std::memcpy(place, &result, std::min<std::uint32_t>(size, sizeof result));
  }
  if (site.system == SystemCall::kAssertFail) {
    fault(ErrorCode::kAssert, exec, split.pc, "assertion failed");
    return false;
  }
  return true;
}

bool Warp::print(const CallSite& site, const Split& split, int lane, std::uint64_t& result) {
  const std::uint64_t format_address = read_argument(site.arguments[0], *split.frame, lane);
  std::uint64_t list = read_argument(site.arguments[1], *split.frame, lane);
  const auto wild = [&](std::uint64_t address) {
    return bad_access(split, 1u << lane, address, 1, "printf cannot read it",
                      ErrorCode::kIllegalAddress);
  };
  const std::optional<std::string> format = read_string(format_address, lane);
  if (!format) return wild(format_address);
  std::optional<std::uint64_t> unreadable;
  const auto number = [&](std::uint32_t bytes) -> std::optional<std::uint64_t> {
    if (unreadable) return std::nullopt;
    list = (list + bytes - 1) / bytes * bytes;
    const std::uint64_t host = host_address(Space::kGeneric, list, bytes, Access::kRead, lane);
    if (host == 0) {
      unreadable = list;
      return std::nullopt;
    }
    std::uint64_t value = 0;
    std::memcpy(&value, reinterpret_cast<const void*>(host), bytes);
    list += bytes;
    ++result;
    return value;
  };
  const auto text = [&]() -> std::optional<std::string> {
    const auto address = number(8);
    if (!address) return std::nullopt;
    auto read = read_string(*address, lane);
    if (!read) unreadable = address;
    return read;
  };
  const std::string out = format_printed(*format, {number, text});
  if (unreadable) return wild(*unreadable);
  const KernelLaunch& launch = *block_->launch;
  if (launch.print && !out.empty()) {
    const MutexLock lock(launch.print_mutex);
    launch.print(out);
  }
  return true;
}

bool Warp::assert_fail(const CallSite& site, const Split& split, int lane) {
  const Frame& frame = *split.frame;
  const auto text = [&](std::size_t index) {
    return read_string(read_argument(site.arguments[index], frame, lane), lane).value_or("?");
  };
  const device::Dim3 block = block_->index;
  const device::Dim3 thread = block_->thread_of(index_, lane);
  const KernelLaunch& launch = *block_->launch;
  if (!launch.print) return true;
  const std::string message = fmt::format(
      "{}:{}: {}: block: [{},{},{}], thread: [{},{},{}] Assertion `{}` failed.\n", text(1),
      static_cast<std::uint32_t>(read_argument(site.arguments[2], frame, lane)), text(3), block.x,
      block.y, block.z, thread.x, thread.y, thread.z, text(0));
  const MutexLock lock(launch.print_mutex);
  launch.print(message);
  return true;
}

}  // namespace slate::sim
