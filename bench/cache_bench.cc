// The compile cache: what a warm start pays for an entry (key and find), and what a cold one adds
// to its compilation (store). Sizes: 100 KB is the machine code of a typical module.
#include <benchmark/benchmark.h>

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bench/place.h"
#include "injector/cache/cache.h"

namespace slate::cache {
namespace {

/// A cache in a directory that goes with it.
struct CachePlace : bench::Place {
  explicit CachePlace(std::uint64_t most_bytes) {
    auto opened = CompileCache::open(path, most_bytes);
    if (!opened) std::abort();
    cache = std::move(*opened);
  }
  std::unique_ptr<CompileCache> cache;
};

Key key_of(std::uint64_t number) {
  return KeyBuilder().add("number", std::to_string(number)).finish();
}

std::vector<std::byte> some_code(const benchmark::State& state) {
  return std::vector<std::byte>(static_cast<std::size_t>(state.range(0)), std::byte{0x5a});
}

void count_bytes(benchmark::State& state) {
  state.SetBytesProcessed(state.iterations() * state.range(0));
}

void make_key(benchmark::State& state) {
  const std::string ptx(static_cast<std::size_t>(state.range(0)), 'x');
  for (auto _ : state) {
    benchmark::DoNotOptimize(KeyBuilder().add("compiler", "cuda 13000").add("ptx", ptx).finish());
  }
  count_bytes(state);
}
BENCHMARK(make_key)->Arg(10'000)->Arg(100'000)->Arg(10'000'000);

void find(benchmark::State& state) {
  const CachePlace place(1 << 30);
  if (!place.cache->store(key_of(1), some_code(state))) std::abort();
  for (auto _ : state) benchmark::DoNotOptimize(place.cache->find(key_of(1)));
  count_bytes(state);
}
BENCHMARK(find)->Arg(10'000)->Arg(100'000)->Arg(10'000'000)->Unit(benchmark::kMicrosecond);

void find_nothing(benchmark::State& state) {
  const CachePlace place(1 << 30);
  for (auto _ : state) benchmark::DoNotOptimize(place.cache->find(key_of(1)));
}
BENCHMARK(find_nothing)->Unit(benchmark::kMicrosecond);

/// Into a directory with room.
void store(benchmark::State& state) {
  const CachePlace place(std::uint64_t{1} << 40);
  const std::vector<std::byte> code = some_code(state);
  std::uint64_t number = 0;
  for (auto _ : state) {
    // A thousand keys in turn: the disk must not fill up.
    if (!place.cache->store(key_of(number++ % 1000), code)) std::abort();
  }
  count_bytes(state);
}
BENCHMARK(store)->Arg(10'000)->Arg(100'000)->Unit(benchmark::kMicrosecond);

/// Into a full directory of 1000 entries, from which old ones have to go.
void store_and_evict(benchmark::State& state) {
  const CachePlace place(static_cast<std::uint64_t>(state.range(0)) * 1000);
  const std::vector<std::byte> code = some_code(state);
  std::uint64_t number = 0;
  while (number < 1000) {
    if (!place.cache->store(key_of(number++), code)) std::abort();
  }
  for (auto _ : state) {
    if (!place.cache->store(key_of(number++), code)) std::abort();
  }
  count_bytes(state);
}
BENCHMARK(store_and_evict)->Arg(100'000)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace slate::cache

BENCHMARK_MAIN();
