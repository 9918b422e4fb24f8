// What CUDA's device runtime offers under plain function names: printf, malloc, free, assert.
#include <fmt/format.h>

#include <array>
#include <bit>
#include <cstdio>
#include <cstring>

#include "device/sim/decode.h"
#include "device/sim/warp.h"

namespace slate::sim {
namespace {

constexpr std::size_t kMaxString = 64u << 10;

/// One conversion of a printf format: "%-8.3lld" -> flags "-8.3", size 8, kind 'd'.
struct Conversion {
  std::string flags;
  int stars = 0;
  bool is_wide = false;  // an 8-byte integer
  char kind = 0;         // 0: malformed
  std::size_t end = 0;   // index after it
};

Conversion parse_conversion(const std::string& format, std::size_t at) {
  Conversion result;
  std::size_t i = at + 1;
  while (i < format.size() && std::strchr("-+ #0123456789.*", format[i]) != nullptr) {
    result.stars += format[i] == '*';
    result.flags += format[i++];
  }
  int longs = 0;
  while (i < format.size() && std::strchr("hlLqjzt", format[i]) != nullptr) {
    if (format[i] == 'h') --longs;
    if (format[i] != 'h') ++longs;
    ++i;
  }
  result.is_wide = longs > 0;
  result.end = i;
  if (i == format.size() || result.stars > 2 || result.flags.size() > 32) return result;
  result.kind = format[i];
  result.end = i + 1;
  return result;
}

/// Widths and precisions beyond this would let a kernel make the host allocate at will.
constexpr int kMaxField = 4096;

template <typename T>
std::string print_one(const Conversion& conversion, const char* length,
                      const std::array<int, 2>& stars, T value) {
  std::string format = "%" + conversion.flags + length + conversion.kind;
  std::string out(512, '\0');
  for (int attempt = 0; attempt < 2; ++attempt) {
    int written = 0;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    if (conversion.stars == 0)
      written = std::snprintf(out.data(), out.size(), format.c_str(), value);
    if (conversion.stars == 1) {
      written = std::snprintf(out.data(), out.size(), format.c_str(), stars[0], value);
    }
    if (conversion.stars == 2) {
      written = std::snprintf(out.data(), out.size(), format.c_str(), stars[0], stars[1], value);
    }
#pragma GCC diagnostic pop
    if (written < 0) return "";
    const auto size = static_cast<std::size_t>(written);
    if (size < out.size()) {
      out.resize(size);
      return out;
    }
    out.resize(size + 1);
  }
  return "";
}

/// False if a literal width or precision is beyond kMaxField.
bool reasonable(const Conversion& conversion) {
  int number = 0;
  for (const char c : conversion.flags) {
    number = c >= '0' && c <= '9' ? number * 10 + (c - '0') : 0;
    if (number > kMaxField) return false;
  }
  return true;
}

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
    const std::uint64_t first = read_argument(site.arguments[0], frame, lane);
    switch (site.system) {
      case SystemCall::kPrintf:
        if (!print(site, split, lane, result)) return false;
        break;
      case SystemCall::kMalloc:
        if (block_->launch->heap) result = block_->launch->heap->allocate(first);
        break;
      case SystemCall::kFree:
        if (first != 0 && (!block_->launch->heap || !block_->launch->heap->release(first))) {
          fault(ErrorCode::kLaunchFailed, 1u << lane, split.pc,
                fmt::format("free of {:#x}, which malloc did not give", first));
          return false;
        }
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
  bool failed = false;
  const auto next = [&](std::uint32_t bytes) {
    list = (list + bytes - 1) / bytes * bytes;
    const std::uint64_t host = host_address(Space::kGeneric, list, bytes, Access::kRead, lane);
    std::uint64_t value = 0;
    if (host == 0) failed = true;
    if (host != 0) std::memcpy(&value, reinterpret_cast<const void*>(host), bytes);
    if (!failed) list += bytes;
    ++result;
    return value;
  };
  std::string out;
  for (std::size_t i = 0; i < format->size() && !failed;) {
    if ((*format)[i] != '%') {
      out += (*format)[i++];
      continue;
    }
    const Conversion conversion = parse_conversion(*format, i);
    i = conversion.end;
    if (conversion.kind == '%') {
      out += '%';
      continue;
    }
    if (conversion.kind == 0 || !reasonable(conversion)) break;
    std::array<int, 2> stars = {};
    for (int star = 0; star < conversion.stars; ++star) {
      stars[star] = std::clamp(static_cast<int>(next(4)), -kMaxField, kMaxField);
    }
    if (std::strchr("diuoxX", conversion.kind) != nullptr) {
      const std::uint64_t value = next(conversion.is_wide ? 8 : 4);
      if (conversion.is_wide) {
        out += print_one(conversion, "ll", stars, static_cast<long long>(value));
      } else {
        out += print_one(conversion, "", stars, static_cast<int>(value));
      }
    } else if (conversion.kind == 'c') {
      out += print_one(conversion, "", stars, static_cast<int>(next(4)));
    } else if (std::strchr("fFeEgGaA", conversion.kind) != nullptr) {
      out += print_one(conversion, "", stars, std::bit_cast<double>(next(8)));
    } else if (conversion.kind == 'p') {
      out += print_one(conversion, "", stars, reinterpret_cast<void*>(next(8)));
    } else if (conversion.kind == 's') {
      const std::uint64_t address = next(8);
      const std::optional<std::string> text = failed ? std::nullopt : read_string(address, lane);
      if (!text) return wild(failed ? list : address);
      out += print_one(conversion, "", stars, text->c_str());
    } else {
      out += format->substr(i - 2, 2);
    }
  }
  if (failed) return wild(list);
  const KernelLaunch& launch = *block_->launch;
  if (launch.print && !out.empty()) {
    const std::lock_guard lock(launch.print_mutex);
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
  const std::lock_guard lock(launch.print_mutex);
  launch.print(message);
  return true;
}

}  // namespace slate::sim
