#include "daemon/dispatch/variable_home.h"

#include <elf.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/elf.h"
#include "base/sizes.h"
#include "injector/forms/placed_variables.h"

namespace slate::daemon {
namespace {

// No variable has the home's own address, which is that of an allocation.
constexpr std::uint64_t kFirst = 256;
constexpr std::uint64_t kSectionAlign = 256;
constexpr std::uint64_t kTextAlign = 16;
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 40;

// Relocations as compilers write them in data, found with readelf: 64 bits of an address, in
// global and in generic space. Both spaces have the same addresses for global memory.
constexpr std::uint32_t kNoRelocation = 0, kGlobalAddress = 2, kGenericAddress = 4;

/// A section of variables, and its offset in the home.
struct Part {
  std::size_t section = 0;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  bool is_constant = false;
};

bool has_constants(const std::vector<Part>& parts) {
  return std::ranges::any_of(parts, &Part::is_constant);
}

/// What has contents first, so that zeros are behind it. Nothing where a kind has several sections,
/// which no compiler writes.
std::vector<Part> parts_of(const std::vector<elf::Section>& sections) {
  std::vector<Part> parts;
  const bool pads = std::ranges::any_of(sections, [](const elf::Section& section) {
    return section.name == ".nv.constant3" && section.header.sh_size > 0;
  });
  std::uint64_t end = pads ? kAroundConstants : kFirst;
  for (const std::string_view name : {".nv.global.init", ".nv.constant3", ".nv.global"}) {
    for (std::size_t i = 0; i < sections.size(); ++i) {
      const std::uint64_t bytes = sections[i].header.sh_size;
      if (sections[i].name != name || bytes == 0) continue;
      if (!parts.empty() && sections[parts.back().section].name == name) return {};
      parts.push_back({.section = i,
                       .offset = end,
                       .bytes = std::min(bytes, kMostBytes),
                       .is_constant = name == ".nv.constant3"});
      end = round_up(end + parts.back().bytes, kSectionAlign);
    }
  }
  return parts;
}

std::uint64_t end_of(const std::vector<Part>& parts) {
  if (parts.empty()) return 0;
  const std::uint64_t end = round_up(parts.back().offset + parts.back().bytes, kSectionAlign);
  return has_constants(parts) ? end + kAroundConstants : end;
}

std::unexpected<Error> stays(std::string why) {
  return fail(ErrorCode::kNotSupported, std::move(why));
}

/// Writes addresses of the home into machine code.
class CubinMover {
 public:
  CubinMover(std::span<const std::byte> cubin, device::Address home)
      : home_(home), sections_(elf::sections_of(cubin)), parts_(parts_of(sections_)) {
    result_.code.assign(cubin.begin(), cubin.end());
  }

  Result<HomedCode> move() {
    // A second copy of the code, for the driver to finish, which has its own relocations.
    const auto is_second = [](const auto& each) { return each.name.starts_with(".nv.capmerc"); };
    if (std::ranges::any_of(sections_, is_second)) return stays("its code is there twice");
    for (std::size_t i = 0; i < sections_.size(); ++i) {
      const auto& [name, header, bytes] = sections_[i];
      const bool has_variables =
          name.starts_with(".nv.global") || name.starts_with(".nv.constant3");
      if (has_variables && header.sh_size > 0 && part_of(i) == nullptr)
        return stays("it has variables of another kind");
    }
    if (const auto done = find_symbols(); !done) return std::unexpected(done.error());
    for (std::size_t i = 0; i < sections_.size(); ++i) {
      const std::uint32_t type = sections_[i].header.sh_type;
      if (type != SHT_RELA && type != SHT_REL) continue;
      if (const auto done = relocate(sections_[i], type == SHT_RELA); !done)
        return std::unexpected(done.error());
    }
    for (const Part& part : parts_) {
      if (const auto done = take_contents(part); !done) return std::unexpected(done.error());
    }
    return std::move(result_);
  }

 private:
  const Part* part_of(std::size_t section) const {
    const auto found = std::ranges::find(parts_, section, &Part::section);
    return found == parts_.end() ? nullptr : &*found;
  }

  template <typename T>
  void write(std::uint64_t offset, const T& value) {
    std::memcpy(result_.code.data() + offset, &value, sizeof(value));
  }

  Result<void> find_symbols() {
    const auto table = std::ranges::find(sections_, std::uint32_t{SHT_SYMTAB},
                                         [](const auto& each) { return each.header.sh_type; });
    if (table == sections_.end() || table->header.sh_link >= sections_.size())
      return stays("it has no table of symbols");
    const elf::Bytes names = sections_[table->header.sh_link].bytes;
    const std::size_t count = table->bytes.size() / sizeof(Elf64_Sym);
    // Names do not overlap in what a compiler writes.
    std::uint64_t budget = 4 * std::uint64_t{result_.code.size()};
    symbols_.resize(count);
    for (std::size_t i = 0; i < count; ++i) {
      symbols_[i] = *elf::read_at<Elf64_Sym>(table->bytes, i * sizeof(Elf64_Sym));
      const Part* const part = part_of(symbols_[i].st_shndx);
      if (part == nullptr || ELF64_ST_TYPE(symbols_[i].st_info) != STT_OBJECT) continue;
      const std::string_view name = elf::text_at(names, symbols_[i].st_name);
      budget -= std::min<std::uint64_t>(budget, name.size() + 1);
      if (budget == 0) return stays("its names overlap");
      if (const auto added = add(name, symbols_[i], *part); !added) return added;
      if (sections_[part->section].header.sh_type == SHT_NOBITS)
        vacate(table->header.sh_offset + i * sizeof(Elf64_Sym), symbols_[i]);
    }
    return {};
  }

  Result<void> add(std::string_view name, const Elf64_Sym& symbol, const Part& part) {
    const auto [value, bytes] = std::pair(symbol.st_value, symbol.st_size);
    if (value > part.bytes || part.bytes - value < bytes) return stays("a variable has no place");
    const device::AddressRange range{home_ + part.offset + value, bytes};
    if (!result_.variables.emplace(name, range).second)
      return stays(fmt::format("it has several variables {}", name));
    const bool is_known = std::ranges::any_of(
        result_.banks, [&](const auto& bank) { return bank.home.base == home_ + part.offset; });
    if (part.is_constant && !is_known && bytes > 0) {
      result_.banks.push_back({.home = {home_ + part.offset, part.bytes},
                               .anchor = std::string(name),
                               .offset = value});
    }
    return {};
  }

  /// The driver gives the variable no memory.
  void vacate(std::uint64_t offset, Elf64_Sym symbol) {
    symbol.st_value = symbol.st_size = 0;
    write(offset, symbol);
  }

  Result<void> relocate(const elf::Section& list, bool has_addends) {
    const std::size_t target = list.header.sh_info;
    if (target >= sections_.size()) return stays("relocations of no section");
    const elf::Section& section = sections_[target];
    const std::size_t size = has_addends ? sizeof(Elf64_Rela) : sizeof(Elf64_Rel);
    const bool is_ours = part_of(target) != nullptr;
    const bool is_code = (section.header.sh_flags & SHF_EXECINSTR) != 0;
    for (std::uint64_t at = 0; at + size <= list.bytes.size(); at += size) {
      Elf64_Rela entry{};
      std::memcpy(&entry, list.bytes.data() + at, size);
      const std::size_t index = ELF64_R_SYM(entry.r_info);
      if (index >= symbols_.size()) return stays("a relocation without a symbol");
      const Part* const to = part_of(symbols_[index].st_shndx);
      if (to == nullptr) {
        if (is_ours) return stays("a variable begins with an address that is not a variable's");
        continue;
      }
      if ((section.header.sh_flags & SHF_ALLOC) == 0) continue;  // for debuggers
      // Instructions that name a place in the bank of constants.
      if (is_code && to->is_constant) continue;
      const std::uint32_t type = ELF64_R_TYPE(entry.r_info);
      const bool is_address = type == kGlobalAddress || type == kGenericAddress;
      if (is_code || !is_address) return stays("its machine code has addresses in another way");
      const auto old = elf::read_at<std::uint64_t>(section.bytes, entry.r_offset);
      if (!old) return stays("a relocation of nothing");
      const std::uint64_t addend = has_addends ? static_cast<std::uint64_t>(entry.r_addend) : *old;
      write(section.header.sh_offset + entry.r_offset,
            home_ + to->offset + symbols_[index].st_value + addend);
      const std::uint64_t info = ELF64_R_INFO(index, kNoRelocation);
      write(list.header.sh_offset + at + offsetof(Elf64_Rela, r_info), info);
    }
    return {};
  }

  /// What has no contents is left out of the image.
  Result<void> take_contents(const Part& part) {
    const elf::Section& section = sections_[part.section];
    if (section.header.sh_type == SHT_NOBITS) {
      if (part.is_constant) return stays("its constants have no contents");
      const auto header = *elf::read_at<Elf64_Ehdr>(result_.code, 0);
      Elf64_Shdr empty = section.header;
      empty.sh_size = 0;
      write(header.e_shoff + part.section * sizeof(Elf64_Shdr), empty);
      return {};
    }
    if (section.bytes.size() != part.bytes) return stays("a section is not in the image");
    const auto contents = std::span(result_.code).subspan(section.header.sh_offset, part.bytes);
    result_.contents.resize(part.offset + part.bytes);
    std::ranges::copy(contents,
                      result_.contents.begin() + static_cast<std::ptrdiff_t>(part.offset));
    return {};
  }

  const device::Address home_;
  const std::vector<elf::Section> sections_;
  const std::vector<Part> parts_;
  std::vector<Elf64_Sym> symbols_;
  HomedCode result_;
};

}  // namespace

std::uint64_t home_bytes(std::span<const std::byte> cubin, Constants constants) {
  const std::vector<Part> parts = parts_of(elf::sections_of(cubin));
  return constants == Constants::kStay && has_constants(parts) ? 0 : end_of(parts);
}

std::uint64_t home_bytes_of_text(std::uint64_t variables) {
  if (variables == 0) return 0;
  return round_up(std::min(variables, kMostBytes), kSectionAlign) + 2 * kAroundConstants;
}

Result<HomedCode> move_home(std::span<const std::byte> cubin, device::Address home) {
  return CubinMover(cubin, home).move();
}

Result<HomedCode> move_home(const ptx::Module& module, device::AddressRange home) {
  HomedCode result;
  std::vector<injector::PlacedVariable> placed;
  std::uint64_t end = kAroundConstants;
  for (const bool constants : {false, true}) {
    if (constants) end = round_up(end, kSectionAlign);
    for (const ptx::Variable& variable : module.variables) {
      const ptx::Space space = constants ? ptx::Space::kConst : ptx::Space::kGlobal;
      if (variable.space != space) continue;
      if (variable.is_extern || variable.is_managed || variable.bytes == 0)
        return stays(fmt::format("{} is no plain variable of the module", variable.name));
      if (constants && !variable.fixups.empty())
        return stays(fmt::format("{} begins with an address", variable.name));
      const std::uint64_t offset =
          round_up(end, std::max<std::uint64_t>(variable.align, kTextAlign));
      const std::uint64_t room = difference(home.bytes, kAroundConstants);
      if (offset > room || room - offset < variable.bytes)
        return stays(fmt::format("the home has no room for {}", variable.name));
      end = offset + variable.bytes;
      const device::AddressRange range{home.base + offset, variable.bytes};
      const std::string name(variable.name);
      result.variables.emplace(name, range);
      if (constants) {
        result.banks.push_back({.home = range, .anchor = name, .offset = 0});
      } else {
        placed.push_back({name, range.base});
      }
    }
  }
  for (const ptx::Variable& variable : module.variables) {
    const auto at = result.variables.find(variable.name);
    if (at == result.variables.end()) continue;
    const std::vector<std::byte> initial = injector::placed_contents(variable, placed);
    if (std::ranges::all_of(initial, [](std::byte each) { return each == std::byte{0}; })) continue;
    const std::uint64_t offset = at->second.base - home.base;
    result.contents.resize(std::max<std::size_t>(result.contents.size(), offset + initial.size()));
    std::ranges::copy(initial, result.contents.begin() + static_cast<std::ptrdiff_t>(offset));
  }
  const auto text = injector::place_variables(module, placed);
  if (!text) return stays(text.error().message);
  const auto bytes = std::as_bytes(std::span(*text));
  result.code.assign(bytes.begin(), bytes.end());
  return result;
}

bool keeps_to(const HomedCode& code, device::AddressRange home) {
  const auto is_inside = [&](device::AddressRange range) {
    return home.contains(range.base, range.bytes);
  };
  return code.contents.size() <= home.bytes &&
         std::ranges::all_of(code.variables,
                             [&](const auto& each) { return is_inside(each.second); }) &&
         std::ranges::all_of(code.banks, [&](const HomedCode::Bank& bank) {
           return is_inside(bank.home) && bank.offset <= bank.home.bytes;
         });
}

bool takes_constants_addresses(std::string_view text) {
  constexpr std::string_view kWays[] = {"cvta.const", "cvta.to.const", "isspacep.const",
                                        ".ptr .const"};
  return std::ranges::any_of(kWays, [&](auto way) { return text.find(way) != text.npos; });
}

}  // namespace slate::daemon
