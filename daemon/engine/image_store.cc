#include "daemon/engine/image_store.h"

#include <algorithm>

namespace slate::daemon {

Result<FoundFunction> SharedModule::find_function(const std::string& name) {
  const MutexLock lock(mutex_);
  if (const auto known = functions_.find(name); known != functions_.end()) return known->second;
  const auto function = device_.find_function(handle, name);
  if (!function) return std::unexpected(function.error());
  auto info = device_.function_info(*function);
  if (!info) return std::unexpected(info.error());
  return functions_.emplace(name, FoundFunction{*function, std::move(*info)}).first->second;
}

Result<void> SharedModule::set_attribute(device::Function function, FunctionAttribute attribute,
                                         std::int32_t value) {
  const bool allows = attribute == FunctionAttribute::kMaxDynamicShared ||
                      attribute == FunctionAttribute::kNonPortableClusters;
  if (!allows) return device_.set_attribute(function, attribute, value);
  const MutexLock lock(mutex_);
  std::int32_t& largest = allowed_[{function, attribute}];
  if (value <= largest) return {};
  auto done = device_.set_attribute(function, attribute, value);
  if (done) largest = value;
  return done;
}

Result<std::shared_ptr<SharedModule>> KnownImage::module_on(device::Device& device) {
  const MutexLock lock(mutex_);
  if (auto loaded = module_.lock()) return loaded;
  const auto module = device.load_module(device::ImageKind::kCubin, bytes);
  if (!module) return std::unexpected(module.error());
  auto shared = std::make_shared<SharedModule>(device, *module);
  module_ = shared;
  return shared;
}

ImageStore::Image ImageStore::take(const Key& key) {
  const auto found = known_.find(key);
  return found == known_.end() ? nullptr : found->second.lock();
}

/// Puts the image first, and drops as many of the last ones as are too many then.
void ImageStore::keep(const Image& image) {
  if (image->bytes.size() > most_bytes_) return;
  const auto at = std::ranges::find(kept_, image);
  if (at != kept_.end()) return kept_.splice(kept_.begin(), kept_, at);
  kept_.push_front(image);
  kept_bytes_ += image->bytes.size();
  while (kept_bytes_ > most_bytes_) {
    kept_bytes_ -= kept_.back()->bytes.size();
    kept_.pop_back();
  }
}

ImageStore::Image ImageStore::find(uid_t uid, std::uint32_t kind, const DigestBytes& digest) {
  const MutexLock lock(mutex_);
  auto image = take({uid, kind, digest});
  if (image) keep(image);
  return image;
}

ImageStore::Image ImageStore::add(uid_t uid, std::uint32_t kind, const DigestBytes& digest,
                                  std::vector<std::byte> bytes) {
  const MutexLock lock(mutex_);
  const Key key{uid, kind, digest};
  auto image = take(key);
  if (!image) {
    std::erase_if(known_, [](const auto& entry) { return entry.second.expired(); });
    image = std::make_shared<KnownImage>(kind, digest, std::move(bytes));
    known_.insert_or_assign(key, image);
  }
  keep(image);
  return image;
}

}  // namespace slate::daemon
