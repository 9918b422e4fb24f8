#include "daemon/engine/image_uploads.h"

#include <fmt/format.h>

#include <utility>

#include "base/out_of_memory.h"

namespace slate::daemon {

Result<ImageUploads::Upload*> ImageUploads::begin(const ipc::ModuleLoad& chunk,
                                                  const Result<void>& may_begin) {
  if (!may_begin) return std::unexpected(may_begin.error());
  const bool is_source = chunk.image_kind == ipc::kImageSource;
  if (chunk.image_kind != ipc::kImagePtx && chunk.image_kind != ipc::kImageElf && !is_source)
    return fail(ErrorCode::kProtocol, fmt::format("image kind {}", chunk.image_kind));
  const auto known = uploads_.find(chunk.module);
  // Behind its source the image itself begins.
  const bool follows = known != uploads_.end() && known->second.kind == ipc::kImageSource &&
                       known->second.bytes.size() == known->second.total;
  if (known != uploads_.end() && (!follows || is_source))
    return fail(ErrorCode::kProtocol, "a module was begun twice");
  if (chunk.total_bytes > kMostBytes - bytes_) {
    return fail(ErrorCode::kLimit, fmt::format("a module image of {} bytes", chunk.total_bytes));
  }
  Upload& upload = uploads_[chunk.module];
  if (follows) {
    upload.source.assign(reinterpret_cast<const char*>(upload.bytes.data()), upload.bytes.size());
    upload.bytes = {};
  }
  upload.total = chunk.total_bytes;
  upload.kind = chunk.image_kind;
  upload.announced += chunk.total_bytes;
  bytes_ += chunk.total_bytes;
  return &upload;
}

Result<ImageUploads::Upload*> ImageUploads::find_or_begin(const ipc::ModuleLoad& chunk,
                                                          const Result<void>& may_begin) {
  if (chunk.offset == 0) return begin(chunk, may_begin);
  const auto known = uploads_.find(chunk.module);
  // Its first chunk was refused; that error has been told.
  if (known == uploads_.end()) return fail(ErrorCode::kInvalidHandle, "the module was refused");
  return &known->second;
}

Result<std::optional<ModuleImage>> ImageUploads::add(const ipc::ModuleLoad& chunk,
                                                     std::span<const std::byte> bytes,
                                                     const Result<void>& may_begin) {
  const auto appended = or_out_of_memory([&]() -> Result<Upload*> {
    const auto upload = find_or_begin(chunk, may_begin);
    if (!upload) return upload;
    Upload& image = **upload;
    if (chunk.offset != image.bytes.size() || chunk.total_bytes != image.total ||
        chunk.image_kind != image.kind || bytes.size() > image.total - image.bytes.size()) {
      return fail(ErrorCode::kProtocol, "module chunks out of order");
    }
    image.bytes.insert(image.bytes.end(), bytes.begin(), bytes.end());
    return &image;
  });
  if (!appended) {
    if (appended.error().code == ErrorCode::kOutOfMemory) drop(chunk.module);
    return std::unexpected(appended.error());
  }
  Upload& image = **appended;
  if (image.bytes.size() < image.total || image.kind == ipc::kImageSource) return std::nullopt;
  ModuleImage complete{image.kind, std::move(image.bytes), std::move(image.source)};
  drop(chunk.module);
  return complete;
}

void ImageUploads::drop(std::uint64_t module) {
  const auto found = uploads_.find(module);
  if (found == uploads_.end()) return;
  bytes_ -= found->second.announced;
  uploads_.erase(found);
}

void ImageUploads::clear() {
  uploads_.clear();
  bytes_ = 0;
}

}  // namespace slate::daemon
