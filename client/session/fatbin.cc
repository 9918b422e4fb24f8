#include "client/session/fatbin.h"

#include <lz4.h>
#include <zstd.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <string>
#include <string_view>

#include "client/session/raw_bytes.h"
#include "client/session/say.h"
#include "injector/link/link.h"
#include "injector/link/registers.h"

namespace slate::client {
namespace {

constexpr std::uint32_t kWrapperLinked = 2;
constexpr std::uint32_t kEntryHeaderBytes = 64;
constexpr std::uint64_t kFlagLz4 = 0x2000;
constexpr std::uint64_t kFlagZstd = 0x8000;
constexpr std::uint64_t kMostUnpackedBytes = 1ull << 30;  // an image claiming more is damaged

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::vector<std::byte> bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

std::unexpected<Error> damaged(const char* what) {
  return fail(ErrorCode::kInvalidValue, std::string("damaged fat binary: ") + what);
}

struct Parsed {
  std::uint16_t kind;
  std::uint64_t total_bytes;
  FatBinaryEntry entry;
};

/// Of the assembler's options, behind the header's fields, those that the code may count on.
void read_options(std::span<const std::byte> header, FatBinaryEntry& entry) {
  const std::string_view text = text_of(header);
  constexpr std::string_view kCaching[] = {"dlcm", "dscm", "def-load-cache", "def-store-cache"};
  entry.needs_options = std::ranges::any_of(
      kCaching, [text](std::string_view option) { return text.contains(option); });
  constexpr std::string_view kRegisters = "maxrregcount";
  const std::size_t at = text.find(kRegisters);
  if (at == text.npos) return;
  const std::string_view value = text.substr(at + kRegisters.size());
  const std::size_t digits = value.find_first_not_of("= ");
  const auto [end, error] = std::from_chars(value.data() + std::min(digits, value.size()),
                                            value.data() + value.size(), entry.most_registers);
  if (error != std::errc()) entry.needs_options = true;
}

Result<Parsed> parse_entry(std::span<const std::byte> rest) {
  if (rest.size() < kEntryHeaderBytes) return damaged("an entry's header is cut off");
  const auto header_bytes = read_raw<std::uint32_t>(rest.data(), 4);
  const auto payload_bytes = read_raw<std::uint64_t>(rest.data(), 8);
  const auto packed_bytes = read_raw<std::uint32_t>(rest.data(), 16);
  const auto flags = read_raw<std::uint64_t>(rest.data(), 40);
  if (header_bytes < kEntryHeaderBytes || header_bytes > rest.size()) {
    return damaged("an entry's header has an impossible size");
  }
  if (payload_bytes > rest.size() - header_bytes) return damaged("an entry is cut off");
  if (packed_bytes > payload_bytes) return damaged("an entry is shorter than its contents");

  Parsed parsed{read_raw<std::uint16_t>(rest.data(), 0), header_bytes + payload_bytes, {}};
  FatBinaryEntry& entry = parsed.entry;
  entry.kind = parsed.kind == 1 ? ImageKind::kPtx : ImageKind::kElf;
  entry.architecture = read_raw<std::uint32_t>(rest.data(), 28);
  if (flags & kFlagZstd) entry.packing = Packing::kZstd;
  if (flags & kFlagLz4) entry.packing = Packing::kLz4;
  if (entry.kind == ImageKind::kPtx) read_options(rest.first(header_bytes), entry);
  entry.payload = rest.subspan(header_bytes, payload_bytes);
  if (entry.packing != Packing::kNone) {
    entry.payload = entry.payload.first(packed_bytes);
    entry.unpacked_bytes = read_raw<std::uint64_t>(rest.data(), 56);
    if (entry.unpacked_bytes > kMostUnpackedBytes) return damaged("an entry claims too much");
  }
  return parsed;
}

bool unpack_into(const FatBinaryEntry& entry, std::vector<std::byte>& out) {
  out.resize(entry.unpacked_bytes);
  if (entry.packing == Packing::kZstd) {
    return ZSTD_decompress(out.data(), out.size(), entry.payload.data(), entry.payload.size()) ==
           out.size();
  }
  if (entry.payload.size() > LZ4_MAX_INPUT_SIZE) return false;
  return LZ4_decompress_safe(reinterpret_cast<const char*>(entry.payload.data()),
                             reinterpret_cast<char*>(out.data()),
                             static_cast<int>(entry.payload.size()),
                             static_cast<int>(out.size())) == static_cast<int>(out.size());
}

/// Higher is better, 0 is unusable. Older PTX than the machine code may be other code, under
/// __CUDA_ARCH__, than what runs without slate.
std::uint32_t suitability(const FatBinaryEntry& entry, std::uint32_t capability, bool ptx_first) {
  if (entry.architecture > capability) return 0;
  const std::uint32_t age = 2 * entry.architecture;
  if (entry.kind == ImageKind::kPtx) {
    if (ptx_first) return age + 0x10000;
    // Machine code of the same age has been assembled with its options, which we drop.
    return entry.needs_options ? age - 1 : age + 1;
  }
  return entry.architecture / 10 == capability / 10 ? age : 0;
}

/// Machine code that was made of PTX of this architecture, if the device takes it.
std::vector<std::byte> code_beside(const std::vector<FatBinaryEntry>& entries,
                                   std::uint32_t architecture, std::uint32_t capability) {
  for (const FatBinaryEntry& entry : entries) {
    if (entry.kind != ImageKind::kElf || entry.architecture != architecture) continue;
    if (suitability(entry, capability, false) == 0) continue;
    if (auto code = unpack(entry)) return std::move(code->bytes);
  }
  return {};
}

std::string describe(const std::vector<FatBinaryEntry>& entries) {
  if (entries.empty()) return "nothing";
  std::string text;
  for (const FatBinaryEntry& entry : entries) {
    if (!text.empty()) text += ", ";
    text +=
        (entry.kind == ImageKind::kPtx ? "compute_" : "sm_") + std::to_string(entry.architecture);
  }
  return text;
}

/// The PTX of all objects of a device-linked program, linked into one module. kNotSupported when
/// one is machine code only, as the library that dynamic parallelism needs.
Result<Image> linked_image(const void* const* containers, std::uint32_t capability,
                           bool ptx_first) {
  std::vector<Image> images;
  for (; containers != nullptr && *containers != nullptr; ++containers) {
    auto container = container_at(*containers);
    if (!container) return std::unexpected(container.error());
    auto image = choose_image(*container, capability, ptx_first);
    if (!image) return image;
    if (image->kind != ImageKind::kPtx) {
      return fail(ErrorCode::kNotSupported, "an object of the program has no PTX, or older one");
    }
    images.push_back(std::move(*image));
  }
  if (images.empty()) return fail(ErrorCode::kNotSupported, "the program has no objects");
  std::vector<std::string_view> texts;
  Image linked{ImageKind::kPtx, 0, {}};
  for (const Image& image : images) {
    texts.push_back(text_of(image.bytes));
    linked.architecture = std::max(linked.architecture, image.architecture);
  }
  auto text = ptx::link(texts);
  if (!text) return std::unexpected(text.error());
  linked.bytes = bytes_of(*text);
  return linked;
}

}  // namespace

Result<std::span<const std::byte>> container_at(const void* start) {
  if (start == nullptr) return damaged("there is none");
  const std::span header(static_cast<const std::byte*>(start), kContainerHeaderBytes);
  if (read_raw<std::uint32_t>(header.data(), 0) != kContainerMagic) return damaged("no container");
  return std::span(header.data(), read_raw<std::uint16_t>(header.data(), 6) +
                                      read_raw<std::uint64_t>(header.data(), 8));
}

Result<std::vector<FatBinaryEntry>> list_entries(std::span<const std::byte> container) {
  if (container.size() < kContainerHeaderBytes) return damaged("the container is cut off");
  if (read_raw<std::uint32_t>(container.data(), 0) != kContainerMagic)
    return damaged("no container");
  const auto header_bytes = read_raw<std::uint16_t>(container.data(), 6);
  const auto bytes = read_raw<std::uint64_t>(container.data(), 8);
  if (header_bytes < kContainerHeaderBytes || header_bytes > container.size() ||
      bytes > container.size() - header_bytes) {
    return damaged("the container is cut off");
  }
  std::vector<FatBinaryEntry> entries;
  for (auto rest = container.subspan(header_bytes, bytes); !rest.empty();) {
    auto parsed = parse_entry(rest);
    if (!parsed) return std::unexpected(parsed.error());
    if (parsed->kind == 1 || parsed->kind == 2) entries.push_back(parsed->entry);
    rest = rest.subspan(parsed->total_bytes);
  }
  return entries;
}

Result<Image> unpack(const FatBinaryEntry& entry) {
  Image image{entry.kind, entry.architecture, {}};
  if (entry.packing == Packing::kNone) {
    image.bytes.assign(entry.payload.begin(), entry.payload.end());
  } else if (!unpack_into(entry, image.bytes)) {
    return damaged("an image does not unpack");
  }
  if (entry.kind == ImageKind::kPtx) {
    image.bytes.erase(std::find(image.bytes.begin(), image.bytes.end(), std::byte{0}),
                      image.bytes.end());
    if (entry.most_registers == 0) return image;
    const auto limited = ptx::limit_registers(text_of(image.bytes), entry.most_registers);
    if (!limited) return std::unexpected(limited.error());
    image.bytes = bytes_of(*limited);
  }
  return image;
}

Result<Image> choose_image(std::span<const std::byte> container, std::uint32_t capability,
                           bool ptx_first) {
  auto entries = list_entries(container);
  if (!entries) return std::unexpected(entries.error());
  const auto best = [&] {
    return std::max_element(
        entries->begin(), entries->end(), [&](const FatBinaryEntry& a, const FatBinaryEntry& b) {
          return suitability(a, capability, ptx_first) < suitability(b, capability, ptx_first);
        });
  };
  auto chosen = best();
  if (chosen == entries->end() || suitability(*chosen, capability, ptx_first) == 0) {
    return fail(ErrorCode::kNoKernelImage,
                "the program has code for " + describe(*entries) + ", and the device is sm_" +
                    std::to_string(capability) + ": compile with PTX for it or an older one");
  }
  auto image = unpack(*chosen);
  if (image && image->kind == ImageKind::kPtx && !ptx_first) {
    image->code = code_beside(*entries, image->architecture, capability);
  }
  if (image || chosen->most_registers == 0) return image;
  // PTX that we cannot read cannot be told of its limit; machine code has it.
  chosen->most_registers = 0;
  chosen->needs_options = true;
  return unpack(*best());
}

Result<Image> image_of_wrapper(const void* wrapper, std::uint32_t capability, bool ptx_first) {
  if (wrapper == nullptr) return damaged("no wrapper");
  FatBinaryWrapper header;
  std::memcpy(&header, wrapper, sizeof(header));
  if (header.magic != kWrapperMagic) return damaged("no wrapper");
  if (header.version == kWrapperLinked) {
    auto image = linked_image(header.containers, capability, ptx_first);
    if (image && !ptx_first) {
      const auto linked = container_at(header.data);
      const auto entries = linked ? list_entries(*linked) : std::unexpected(linked.error());
      if (entries) image->code = code_beside(*entries, image->architecture, capability);
    }
    if (image) return image;
    if (verbose())
      say("the program's PTX does not link, its machine code is taken: " + image.error().message);
  }
  auto container = container_at(header.data);
  if (!container) return std::unexpected(container.error());
  return choose_image(*container, capability, ptx_first);
}

}  // namespace slate::client
