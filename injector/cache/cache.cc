#include "injector/cache/cache.h"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <utility>

#include "base/mutex.h"
#include "base/unique_fd.h"
#include "injector/cache/directory.h"
#include "injector/cache/entry.h"

namespace slate::cache {

struct CompileCache::State {
  UniqueFd directory;
  std::uint64_t most_bytes = 0;
  std::atomic<std::uint64_t> hits = 0, misses = 0, stores = 0, damaged = 0, evicted = 0;

  Mutex mutex;
  // Bytes that may still be stored before the directory is looked at again.
  std::uint64_t room SLATE_GUARDED_BY(mutex) = 0;

  void sweep_locked(std::string_view keep) SLATE_REQUIRES(mutex) {
    const Swept swept = sweep(directory.get(), most_bytes, keep);
    evicted += swept.evicted;
    // An eighth of what is free: others may be storing too, unseen by us.
    room = swept.bytes < most_bytes ? (most_bytes - swept.bytes) / 8 : 0;
  }
};

Result<std::unique_ptr<CompileCache>> CompileCache::open(std::filesystem::path directory,
                                                         std::uint64_t most_bytes) {
  auto opened = open_directory(directory);
  if (!opened) return std::unexpected(std::move(opened.error()));
  std::unique_ptr<CompileCache> cache(new CompileCache);
  cache->state_ = std::make_unique<State>();
  cache->state_->directory = std::move(*opened);
  cache->state_->most_bytes = most_bytes;
  const MutexLock lock(cache->state_->mutex);
  cache->state_->sweep_locked({});
  return cache;
}

CompileCache::~CompileCache() = default;

std::optional<std::vector<std::byte>> CompileCache::find(const Key& key) {
  ReadEntry entry = read_entry(state_->directory.get(), key);
  if (entry.found == Found::kGood) {
    ++state_->hits;
    return std::move(entry.value);
  }
  ++state_->misses;
  if (entry.found == Found::kDamaged) {
    ++state_->damaged;
    // Should a good one have taken its place just now, that one is compiled once more.
    ::unlinkat(state_->directory.get(), entry_name(key).c_str(), 0);
  }
  return std::nullopt;
}

Result<void> CompileCache::store(const Key& key, std::span<const std::byte> value) {
  const std::uint64_t bytes = kHeaderBytes + value.size();
  if (bytes > state_->most_bytes) {
    return fail(ErrorCode::kLimit, fmt::format("compile cache: an entry of {} bytes, more than {}",
                                               bytes, state_->most_bytes));
  }
  if (auto written = write_entry(state_->directory.get(), key, value); !written) return written;
  ++state_->stores;
  const MutexLock lock(state_->mutex);
  if (bytes <= state_->room) {
    state_->room -= bytes;
  } else {
    state_->sweep_locked(entry_name(key));
  }
  return {};
}

Statistics CompileCache::statistics() const {
  return {.hits = state_->hits,
          .misses = state_->misses,
          .stores = state_->stores,
          .damaged = state_->damaged,
          .evicted = state_->evicted};
}

}  // namespace slate::cache
