#include "client/session/code_image.h"

#include <elf.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <string_view>

namespace slate::client {
namespace {

constexpr std::uint32_t kWrapperMagic = 0x466243b1;
constexpr std::uint32_t kContainerMagic = 0xba55ed50;

template <typename T>
T read_at(const void* from, std::size_t offset = 0) {
  T value;
  std::memcpy(&value, static_cast<const std::byte*>(from) + offset, sizeof(value));
  return value;
}

/// Where the last thing that the headers of a cubin name ends.
std::size_t elf_bytes(const std::byte* elf) {
  const auto header = read_at<Elf64_Ehdr>(elf);
  std::size_t end = sizeof(header);
  end = std::max<std::size_t>(end, header.e_shoff + std::size_t{header.e_shnum} * sizeof(Elf64_Shdr));
  end = std::max<std::size_t>(end, header.e_phoff + std::size_t{header.e_phnum} * sizeof(Elf64_Phdr));
  for (std::size_t i = 0; i < header.e_shnum; ++i) {
    const auto section = read_at<Elf64_Shdr>(elf, header.e_shoff + i * sizeof(Elf64_Shdr));
    if (section.sh_type != SHT_NOBITS)
      end = std::max<std::size_t>(end, section.sh_offset + section.sh_size);
  }
  return end;
}

/// Every kernel of a cubin has a section of its own for its parameters.
void find_kernels_of_elf(std::span<const std::byte> elf, std::vector<std::string>& kernels) {
  constexpr std::string_view kPrefix = ".nv.constant0.";
  if (elf.size() < sizeof(Elf64_Ehdr)) return;
  const auto header = read_at<Elf64_Ehdr>(elf.data());
  const auto section_at = [&](std::size_t i, Elf64_Shdr& section) {
    const std::size_t at = header.e_shoff + i * sizeof(Elf64_Shdr);
    if (at > elf.size() || elf.size() - at < sizeof(Elf64_Shdr)) return false;
    section = read_at<Elf64_Shdr>(elf.data(), at);
    return true;
  };
  Elf64_Shdr names{}, section{};
  if (!section_at(header.e_shstrndx, names)) return;
  for (std::size_t i = 0; i < header.e_shnum && section_at(i, section); ++i) {
    const std::size_t at = names.sh_offset + section.sh_name;
    if (at >= elf.size()) continue;
    const char* const text = reinterpret_cast<const char*>(elf.data()) + at;
    const std::string_view name(text, ::strnlen(text, elf.size() - at));
    if (name.starts_with(kPrefix)) kernels.emplace_back(name.substr(kPrefix.size()));
  }
}

/// The words of PTX, without comments. Punctuation is words of one character.
class Words {
 public:
  explicit Words(std::string_view text) : text_(text) {}

  std::string_view next() {
    skip();
    if (at_ == text_.size()) return {};
    const std::size_t begin = at_;
    if (text_[at_] == '"') {
      at_ = std::min(text_.find('"', at_ + 1), text_.size() - 1) + 1;
      return text_.substr(begin, at_ - begin);
    }
    while (at_ < text_.size() && is_word(text_[at_])) ++at_;
    if (at_ == begin) ++at_;
    return text_.substr(begin, at_ - begin);
  }

 private:
  static bool is_word(char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           c == '$' || c == '%' || c == '.';
  }
  void skip() {
    while (at_ < text_.size()) {
      if (text_.substr(at_, 2) == "//") {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (text_.substr(at_, 2) == "/*") {
        const std::size_t end = text_.find("*/", at_ + 2);
        at_ = end == std::string_view::npos ? text_.size() : end + 2;
      } else if (static_cast<unsigned char>(text_[at_]) <= ' ') {
        ++at_;
      } else {
        return;
      }
    }
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

std::uint64_t number_of(std::string_view word) {
  std::uint64_t value = 0;
  std::from_chars(word.data(), word.data() + word.size(), value);
  return value;
}

/// Bytes of ".u32" and its kind.
std::uint64_t type_bytes(std::string_view word) {
  const std::size_t digits = word.find_first_of("0123456789");
  return digits == std::string_view::npos ? 0 : number_of(word.substr(digits)) / 8;
}

/// What follows `.attribute(.managed)`: [.align N] .type name[N]...
ManagedName read_managed(Words& words) {
  ManagedName managed;
  std::string_view word = words.next();
  std::uint64_t bytes = 1;
  while (word.starts_with(".")) {
    if (word == ".align") {
      (void)words.next();
    } else if (word == ".v2" || word == ".v4") {
      bytes *= number_of(word.substr(2));
    } else {
      bytes *= type_bytes(word);
    }
    word = words.next();
  }
  managed.name = word;
  for (word = words.next(); word == "["; word = words.next()) {
    bytes *= number_of(words.next());
    (void)words.next();
  }
  managed.bytes = bytes;
  return managed;
}

void find_names_of_ptx(std::string_view text, CodeNames& names) {
  Words words(text);
  for (std::string_view word = words.next(); !word.empty(); word = words.next()) {
    if (word == ".entry") names.kernels.emplace_back(words.next());
    if (word != ".attribute" || words.next() != "(" || words.next() != ".managed") continue;
    if (words.next() == ")") names.managed.push_back(read_managed(words));
  }
}

}  // namespace

Result<Image> image_of_code(const void* code, std::uint32_t capability) {
  if (code == nullptr) return fail(ErrorCode::kInvalidValue, "no code was given");
  const auto* const bytes = static_cast<const std::byte*>(code);
  if (std::memcmp(code, ELFMAG, SELFMAG) == 0) {
    Image image{ImageKind::kElf, 0, {}};
    image.bytes.assign(bytes, bytes + elf_bytes(bytes));
    return image;
  }
  const auto first = static_cast<unsigned char>(bytes[0]);
  const bool is_text = first == '.' || first == '/' || first <= ' ';
  if (is_text) {
    Image image{ImageKind::kPtx, 0, {}};
    image.bytes.assign(bytes, bytes + std::strlen(static_cast<const char*>(code)));
    return image;
  }
  const auto magic = read_at<std::uint32_t>(code);
  if (magic == kWrapperMagic) return image_of_wrapper(code, capability);
  if (magic != kContainerMagic)
    return fail(ErrorCode::kNoKernelImage, "code that is no fat binary, no cubin and no PTX");
  const auto container = container_at(code);
  if (!container) return std::unexpected(container.error());
  return choose_image(*container, capability);
}

CodeNames names_in(const Image& image) {
  CodeNames names;
  if (image.kind == ImageKind::kElf) {
    find_kernels_of_elf(image.bytes, names.kernels);
  } else {
    find_names_of_ptx({reinterpret_cast<const char*>(image.bytes.data()), image.bytes.size()},
                      names);
  }
  return names;
}

}  // namespace slate::client
