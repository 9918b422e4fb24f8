#include "device/cuda/image.h"

#include <elf.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace slate::cuda {
namespace {

std::unexpected<Error> bad_ptx(const char* why) {
  return fail(ErrorCode::kInvalidPtx, std::string("this is not PTX: ") + why);
}

std::unexpected<Error> bad_cubin(const char* why) {
  return fail(ErrorCode::kNoKernelImage, std::string("this is not a cubin: ") + why);
}

bool inside(std::uint64_t offset, std::uint64_t bytes, std::uint64_t size) {
  return offset <= size && bytes <= size - offset;
}

Result<void> check_ptx(std::string& text) {
  while (!text.empty() && text.back() == '\0') text.pop_back();
  const std::size_t start = text.find_first_not_of(" \t\r\n\f\v");
  if (start == std::string::npos) return bad_ptx("it is empty");
  if (text.find('\0') != std::string::npos) return bad_ptx("it has a NUL inside");
  // The driver goes by the first bytes, not by what we call it: a directive or a comment, or it may
  // take the text for a binary whose offsets nobody has checked.
  if (text[start] != '.' && text[start] != '/') return bad_ptx("it begins with no directive");
  return {};
}

/// CUDA has section types of its own, some with a size but no bytes in the file: those are left to
/// the driver.
bool has_bytes(std::uint32_t section_type) {
  return section_type == SHT_PROGBITS || section_type == SHT_SYMTAB || section_type == SHT_STRTAB ||
         section_type == SHT_RELA || section_type == SHT_REL;
}

Result<void> check_cubin(const std::string& image) {
  Elf64_Ehdr header;
  if (image.size() < sizeof(header)) return bad_cubin("it is shorter than an ELF header");
  std::memcpy(&header, image.data(), sizeof(header));
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return bad_cubin("it is not an ELF file");
  if (header.e_ident[EI_CLASS] != ELFCLASS64) return bad_cubin("it is not 64-bit");
  if (header.e_phnum != 0 &&
      (header.e_phentsize != sizeof(Elf64_Phdr) ||
       !inside(header.e_phoff, std::uint64_t{header.e_phnum} * header.e_phentsize, image.size()))) {
    return bad_cubin("its program headers lie outside of it");
  }
  if (header.e_shnum == 0 || header.e_shentsize != sizeof(Elf64_Shdr) ||
      !inside(header.e_shoff, std::uint64_t{header.e_shnum} * header.e_shentsize, image.size())) {
    return bad_cubin("its section headers lie outside of it");
  }
  if (header.e_shstrndx >= header.e_shnum) return bad_cubin("it has no section names");
  for (std::uint64_t i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr section;
    std::memcpy(&section, image.data() + header.e_shoff + i * sizeof(section), sizeof(section));
    if (has_bytes(section.sh_type) && !inside(section.sh_offset, section.sh_size, image.size())) {
      return bad_cubin("a section lies outside of it");
    }
  }
  return {};
}

}  // namespace

Result<std::string> checked_image(device::ImageKind kind, std::span<const std::byte> image) {
  std::string copy(reinterpret_cast<const char*>(image.data()), image.size());
  auto checked = kind == device::ImageKind::kPtx ? check_ptx(copy) : check_cubin(copy);
  if (!checked) return std::unexpected(checked.error());
  return copy;
}

bool has_device_launches(std::span<const std::byte> image) {
  // From CUDA 12 on, and before.
  constexpr std::string_view kNames[] = {"__cudaCDP", "cudaLaunchDevice"};
  const std::string_view text(reinterpret_cast<const char*>(image.data()), image.size());
  return std::ranges::any_of(kNames, [text](std::string_view name) { return text.contains(name); });
}

}  // namespace slate::cuda
