#include "tools/code_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string_view>

#include "client/session/fatbin.h"

namespace slate::tools {
namespace {

using Bytes = std::span<const std::byte>;

constexpr std::size_t kAlignment = 8;  // of containers, in sections and files

std::string_view text_of(Bytes bytes) {
  std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  while (text.ends_with('\0')) text.remove_suffix(1);
  return text;
}

bool begins_container(Bytes bytes) {
  std::uint32_t magic = 0;
  if (bytes.size() < client::kContainerHeaderBytes) return false;
  std::memcpy(&magic, bytes.data(), sizeof(magic));
  return magic == client::kContainerMagic;
}

/// PTX says its version before anything but comments, and is text throughout.
bool is_ptx(std::string_view text) {
  return text.find(".version") != std::string_view::npos &&
         text.find('\0') == std::string_view::npos;
}

std::size_t container_bytes(Bytes at) {
  std::uint16_t header = 0;
  std::uint64_t payload = 0;
  std::memcpy(&header, at.data() + 6, sizeof(header));
  std::memcpy(&payload, at.data() + 8, sizeof(payload));
  const std::size_t room = at.size() - std::min<std::size_t>(header, at.size());
  return std::min<std::size_t>(header, at.size()) + std::min<std::uint64_t>(payload, room);
}

}  // namespace

Result<std::vector<PtxImage>> ptx_in(Bytes file) {
  std::vector<PtxImage> images;
  if (const std::string_view text = text_of(file); is_ptx(text)) {
    images.push_back({0, std::string(text)});
    return images;
  }
  std::size_t containers = 0;
  for (std::size_t at = 0; at + client::kContainerHeaderBytes <= file.size(); at += kAlignment) {
    const Bytes rest = file.subspan(at);
    if (!begins_container(rest)) continue;
    const auto entries = client::list_entries(rest.first(container_bytes(rest)));
    if (!entries) continue;  // those four bytes may mean anything
    ++containers;
    for (const client::FatBinaryEntry& entry : *entries) {
      if (entry.kind != client::ImageKind::kPtx) continue;
      const auto image = client::unpack(entry);
      if (!image) return std::unexpected(image.error());
      images.push_back({image->architecture, std::string(text_of(image->bytes))});
    }
  }
  if (!images.empty()) return images;
  return fail(ErrorCode::kNoKernelImage,
              containers == 0 ? std::string("neither PTX nor a fat binary")
                              : fmt::format("{} fat binaries, none with PTX", containers));
}

Result<std::vector<PtxImage>> ptx_in_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return fail_errno(path);
  std::ostringstream contents;
  contents << in.rdbuf();
  const std::string bytes = contents.str();
  auto images = ptx_in(std::as_bytes(std::span(bytes)));
  if (!images) return fail(images.error().code, path + ": " + images.error().message);
  return images;
}

}  // namespace slate::tools
