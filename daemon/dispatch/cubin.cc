#include "daemon/dispatch/cubin.h"

#include <elf.h>

#include <algorithm>
#include <cstring>

#include "base/elf.h"

namespace slate::daemon {
namespace {

// Attributes of .nv.info, as `ptxas -v` confirms them: records of a format byte, an attribute byte
// and, in the format with a value of its own, a size. The attributes wanted here have a symbol's
// number and a number.
constexpr std::uint8_t kSizedValue = 4;
constexpr std::uint8_t kMinimalStack = 0x12;
constexpr std::uint8_t kRegisterCount = 0x2f;

/// A compiler's names do not overlap, so that comparing them all takes less than the file's bytes.
/// In a crafted image each of a million symbols could have one name of a megabyte.
constexpr std::uint64_t kStepsPerByte = 4;

class Image {
 public:
  explicit Image(std::span<const std::byte> bytes)
      : bytes_(bytes), steps_left_(kStepsPerByte * bytes.size()) {
    const auto header = elf::read_at<Elf64_Ehdr>(bytes, 0);
    if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) return;
    sections_at_ = header->e_shoff;
    count_ = header->e_shnum;
    names_ = section(header->e_shstrndx).value_or(Elf64_Shdr{});
  }

  std::size_t section_count() const { return count_; }

  std::optional<Elf64_Shdr> section(std::size_t index) const {
    if (index >= count_) return std::nullopt;
    return elf::read_at<Elf64_Shdr>(bytes_, sections_at_ + index * sizeof(Elf64_Shdr));
  }

  std::span<const std::byte> contents(const Elf64_Shdr& section) const {
    if (section.sh_type == SHT_NOBITS) return {};
    return elf::part_of(bytes_, section.sh_offset, section.sh_size);
  }

  /// Whether the name at `offset` of a table of strings is `wanted`. Reads up to the first byte
  /// that differs. False for all names once the image has cost its steps.
  bool is_named(const Elf64_Shdr& strings, std::uint32_t offset, std::string_view wanted) {
    const auto text = contents(strings);
    if (offset >= text.size() || text.size() - offset <= wanted.size()) return false;
    const auto name = text.subspan(offset, wanted.size());
    const auto differs = std::ranges::mismatch(name, std::as_bytes(std::span(wanted))).in1;
    const auto steps = static_cast<std::uint64_t>(differs - name.begin()) + 1;
    steps_left_ -= std::min(steps_left_, steps);
    return steps_left_ > 0 && differs == name.end() && text[offset + wanted.size()] == std::byte{0};
  }

  std::optional<Elf64_Shdr> find_section(std::string_view name) {
    for (std::size_t i = 0; i < count_ && steps_left_ > 0; ++i) {
      const auto each = section(i);
      if (each && is_named(names_, each->sh_name, name)) return each;
    }
    return std::nullopt;
  }

  struct Found {
    Elf64_Sym symbol;
    std::uint32_t number = 0;
  };
  std::optional<Found> find_symbol(std::string_view name) {
    const auto table = find_section(".symtab");
    const auto strings = table ? section(table->sh_link) : std::nullopt;
    if (!strings) return std::nullopt;
    const auto bytes = contents(*table);
    for (std::uint32_t i = 0; i < bytes.size() / sizeof(Elf64_Sym) && steps_left_ > 0; ++i) {
      const auto symbol = *elf::read_at<Elf64_Sym>(bytes, i * sizeof(Elf64_Sym));
      if (is_named(*strings, symbol.st_name, name)) return Found{symbol, i};
    }
    return std::nullopt;
  }

 private:
  std::span<const std::byte> bytes_;
  std::uint64_t sections_at_ = 0;
  std::size_t count_ = 0;
  Elf64_Shdr names_{};
  std::uint64_t steps_left_;  // bytes of names that may still be compared
};

}  // namespace

std::optional<CodeNeeds> needs_of(std::span<const std::byte> cubin, std::string_view kernel) {
  Image image(cubin);
  const auto found = image.find_symbol(kernel);
  const auto section = image.find_section(".nv.info");
  if (!found || !section) return std::nullopt;
  std::optional<CodeNeeds> needs;
  std::uint32_t stack = 0;
  auto rest = image.contents(*section);
  while (rest.size() >= 4) {
    const auto format = static_cast<std::uint8_t>(rest[0]);
    const auto attribute = static_cast<std::uint8_t>(rest[1]);
    const std::size_t size = format == kSizedValue ? *elf::read_at<std::uint16_t>(rest, 2) : 0;
    rest = rest.subspan(4);
    if (size > rest.size()) return std::nullopt;
    const auto symbol = elf::read_at<std::uint32_t>(rest.first(size), 0);
    const auto value = elf::read_at<std::uint32_t>(rest.first(size), 4);
    rest = rest.subspan(size);
    if (!symbol || !value || *symbol != found->number) continue;
    if (attribute == kRegisterCount) needs = CodeNeeds{.registers = *value, .stack_bytes = 0};
    if (attribute == kMinimalStack) stack = *value;
  }
  if (needs) needs->stack_bytes = stack;
  return needs;
}

std::span<std::byte> contents_of(std::span<std::byte> cubin, std::string_view variable) {
  Image image(cubin);
  const auto found = image.find_symbol(variable);
  const auto section = found ? image.section(found->symbol.st_shndx) : std::nullopt;
  if (!section) return {};
  const auto contents = image.contents(*section);
  const Elf64_Sym& symbol = found->symbol;
  if (symbol.st_value > contents.size() || symbol.st_size > contents.size() - symbol.st_value)
    return {};
  return cubin.subspan(section->sh_offset + symbol.st_value, symbol.st_size);
}

}  // namespace slate::daemon
