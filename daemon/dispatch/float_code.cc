#include "daemon/dispatch/float_code.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "base/elf.h"

namespace slate::daemon {
namespace {

constexpr std::uint64_t kInstructionBytes = 16;  // from sm_70 on
constexpr std::uint16_t kCudaMachine = 190;
constexpr std::uint32_t kOldestSm = 75, kNewestSm = 121;  // whose codes below are known
constexpr std::uint8_t kZeroRegister = 255;

/// The lower nine bits of an instruction, from sm_75 to sm_120. The next three say where the
/// operands are.
enum : std::uint32_t {
  kFmul = 0x020,
  kFfma = 0x023,
  kDmul = 0x028,
  kDfma = 0x02b,
  kHfma2 = 0x031,
  kHmul2 = 0x032,
  kHfma2Mma = 0x035,
};

enum class Kind : std::uint8_t { kMul32, kFma32, kMul64, kFma64, kMul16, kFma16 };

struct Code {
  std::uint64_t low = 0, high = 0;

  std::uint32_t opcode() const { return static_cast<std::uint32_t>(low & 0x1ff); }
  std::uint32_t operands() const { return static_cast<std::uint32_t>(low >> 9 & 7); }
  std::uint8_t first() const { return static_cast<std::uint8_t>(low >> 24); }
  std::uint8_t third() const { return static_cast<std::uint8_t>(high); }
  std::uint32_t literal() const { return static_cast<std::uint32_t>(low >> 32); }
  /// The second or the third operand is a literal.
  bool has_literal() const { return operands() == 2 || operands() == 4; }
};

/// Of two half floats each: these instructions also add (times one), multiply (plus zero) and move
/// constants (zero times).
std::optional<Kind> half_kind(const Code& code) {
  constexpr std::uint32_t kOnes = 0x3c003c00, kBfloatOnes = 0x3f803f80;
  constexpr std::uint32_t kSecondIsLiteral = 4;
  if (code.first() == kZeroRegister) return std::nullopt;
  const bool times_one = code.operands() == kSecondIsLiteral &&
                         (code.literal() == kOnes || code.literal() == kBfloatOnes);
  if (times_one) return std::nullopt;
  return code.third() == kZeroRegister ? Kind::kMul16 : Kind::kFma16;
}

std::optional<Kind> kind_of(const Code& code) {
  switch (code.opcode()) {
    case kFmul:
      return Kind::kMul32;
    case kFfma:
      return Kind::kFma32;
    case kDmul:
      return Kind::kMul64;
    case kDfma:
      return Kind::kFma64;
    case kHmul2:
      return Kind::kMul16;
    case kHfma2:
    case kHfma2Mma:
      return half_kind(code);
    default:
      return std::nullopt;
  }
}

/// How often each kind is there.
using Counts = std::map<Kind, std::uint64_t>;

Counts count(elf::Bytes code) {
  Counts counts;
  for (std::uint64_t at = 0; at + kInstructionBytes <= code.size(); at += kInstructionBytes) {
    const Code instruction{.low = *elf::read_at<std::uint64_t>(code, at),
                           .high = *elf::read_at<std::uint64_t>(code, at + 8)};
    if (const auto kind = kind_of(instruction)) ++counts[*kind];
  }
  return counts;
}

/// The machine code of an entry and of what it calls, which ptxas puts behind it.
std::optional<elf::Bytes> code_of(const CodeEntry& entry) {
  const std::uint32_t sm = architecture_of(entry.cubin);
  if (sm < kOldestSm || sm > kNewestSm) return std::nullopt;
  const std::string name = ".text." + std::string(entry.name);
  for (const elf::Section& section : elf::sections_of(entry.cubin)) {
    if (section.header.sh_type == SHT_PROGBITS && section.name == name && !section.bytes.empty()) {
      return section.bytes;
    }
  }
  return std::nullopt;
}

}  // namespace

std::uint32_t architecture_of(std::span<const std::byte> cubin) {
  const auto header = elf::read_at<Elf64_Ehdr>(cubin, 0);
  if (!elf::is_elf(cubin) || !header || header->e_machine != kCudaMachine) return 0;
  constexpr std::uint8_t kSecondByte = 8;  // from this version of the ABI on
  const std::uint32_t flags = header->e_flags;
  return (header->e_ident[EI_ABIVERSION] >= kSecondByte ? flags >> 8 : flags) & 0xff;
}

FloatMatch match_float_code(const CodeEntry& one, const CodeEntry& other) {
  const auto first = code_of(one);
  const auto second = code_of(other);
  if (!first || !second) return FloatMatch::kUnknown;
  if (std::ranges::equal(*first, *second)) return FloatMatch::kSameCode;
  return count(*first) == count(*second) ? FloatMatch::kSameCount : FloatMatch::kDiffers;
}

bool needs_own_entry(const injector::KernelForms& kernel, std::uint32_t native_sm) {
  return !kernel.analysis.may_fuse.empty() || native_sm != kernel.sm;
}

std::string why_bits_may_differ(const injector::KernelForms& kernel, std::string_view form,
                                std::span<const std::byte> native, std::span<const std::byte> own,
                                std::span<const std::byte> forms) {
  if (!needs_own_entry(kernel, architecture_of(native))) return {};
  const CodeEntry program{native, kernel.name};
  switch (match_float_code(program, {own, kernel.name})) {
    case FloatMatch::kUnknown:
      return "its machine code cannot be compared with that of its text";
    case FloatMatch::kDiffers:
      return kernel.analysis.may_fuse.empty()
                 ? "its machine code was made from another text"
                 : kernel.analysis.may_fuse + ", and the program's machine code has it otherwise";
    case FloatMatch::kSameCode:
    case FloatMatch::kSameCount:
      break;
  }
  if (!kernel.sums_open) return {};
  const FloatMatch match = match_float_code(program, {forms, form});
  if (match == FloatMatch::kSameCode || match == FloatMatch::kSameCount) return {};
  return kernel.analysis.may_fuse + ", and in this form it has others";
}

}  // namespace slate::daemon
