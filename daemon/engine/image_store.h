// ImageStore: code images that programs bring again and again, such as cuBLAS's, by their SHA-256.
// A user's sessions share them: what one has sent, the others only name. Another user's images are
// as good as not there. An image stays as long as a session uses it; the newest ones stay longer.
// One for all sessions of an engine. Thread-safe.
//
// KnownImage: such an image. SharedModule: one of machine code on the device, loaded once for all
// sessions that use it at a time.
#pragma once

#include <sys/types.h>

#include <compare>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/digest.h"
#include "base/mutex.h"
#include "device/device.h"

namespace slate::daemon {

/// A kernel, and what was known of it before any session set its attributes.
struct FoundFunction {
  device::Function function{};
  device::FunctionInfo info;
};

class SharedModule {
 public:
  /// Takes the module over. `device` outlives it.
  SharedModule(device::Device& device, device::Module module) : device_(device), handle(module) {}
  /// Unloads it. Requires: no unfinished work uses it.
  ~SharedModule() { device_.unload_module(handle); }
  SharedModule(const SharedModule&) = delete;
  SharedModule& operator=(const SharedModule&) = delete;

  /// As device::Device::find_function().
  Result<FoundFunction> find_function(const std::string& name);
  /// As device::Device::set_attribute(). An allowance that another session has set stays.
  Result<void> set_attribute(device::Function function, FunctionAttribute attribute,
                             std::int32_t value);

 private:
  device::Device& device_;

 public:
  const device::Module handle;

 private:
  Mutex mutex_;
  std::map<std::string, FoundFunction> functions_ SLATE_GUARDED_BY(mutex_);
  // The largest value so far of each allowance.
  std::map<std::pair<device::Function, FunctionAttribute>, std::int32_t> allowed_
      SLATE_GUARDED_BY(mutex_);
};

class KnownImage {
 public:
  KnownImage(std::uint32_t image_kind, const DigestBytes& its_digest,
             std::vector<std::byte> its_bytes)
      : kind(image_kind), digest(its_digest), bytes(std::move(its_bytes)) {}

  const std::uint32_t kind;  // ipc::kImagePtx or ipc::kImageElf
  const DigestBytes digest;  // SHA-256 of `bytes`
  const std::vector<std::byte> bytes;

  /// The module on the device, which the first session loads; others wait for that.
  /// Requires: machine code without variables, which every session would need for itself.
  Result<std::shared_ptr<SharedModule>> module_on(device::Device& device);

 private:
  Mutex mutex_;  // held while the module is loaded
  std::weak_ptr<SharedModule> module_ SLATE_GUARDED_BY(mutex_);
};

class ImageStore {
 public:
  using Image = std::shared_ptr<KnownImage>;

  /// `most_bytes`: the most memory for images that stay, whether a session uses them or not.
  explicit ImageStore(std::uint64_t most_bytes) : most_bytes_(most_bytes) {}

  /// The image that a session of this user has brought; null when there is none.
  Image find(uid_t uid, std::uint32_t kind, const DigestBytes& digest);
  /// Adds an image. Returns the one that is there already, if so. Requires: the digest is that of
  /// the bytes.
  Image add(uid_t uid, std::uint32_t kind, const DigestBytes& digest, std::vector<std::byte> bytes);

 private:
  struct Key {
    uid_t uid;
    std::uint32_t kind;
    DigestBytes digest;
    auto operator<=>(const Key&) const = default;
  };

  Image take(const Key& key) SLATE_REQUIRES(mutex_);
  void keep(const Image& image) SLATE_REQUIRES(mutex_);

  const std::uint64_t most_bytes_;
  Mutex mutex_;
  std::map<Key, std::weak_ptr<KnownImage>> known_ SLATE_GUARDED_BY(mutex_);
  std::list<Image> kept_ SLATE_GUARDED_BY(mutex_);  // the newest first
  std::uint64_t kept_bytes_ SLATE_GUARDED_BY(mutex_) = 0;
};

}  // namespace slate::daemon
