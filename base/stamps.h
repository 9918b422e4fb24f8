#pragma once
#include <x86intrin.h>
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <vector>
namespace slate {
struct Stamps {
  static constexpr int kN = 10;
  std::array<std::atomic<unsigned long long>, kN> at{};
  std::array<std::vector<double>, kN> deltas;
  unsigned long long n = 0;
  void stamp(int i) { at[i].store(__rdtsc(), std::memory_order_relaxed); }
  void next() {
    if (at[7].load() > at[0].load() && n++ > 100)
      for (int i = 1; i < kN; ++i)
        if (at[i].load() >= at[0].load()) deltas[i].push_back(double(at[i].load() - at[0].load()));
    stamp(0);
  }
  void print() {
    for (int i = 1; i < kN; ++i) {
      auto& d = deltas[i];
      if (d.empty()) continue;
      std::sort(d.begin(), d.end());
      std::fprintf(stderr, "STAMP %d n=%zu p10 %.0f median %.0f p90 %.0f cycles\n", i, d.size(), d[d.size() / 10], d[d.size() / 2], d[d.size() * 9 / 10]);
      d.clear();
    }
  }
};
inline Stamps g_stamps;
}  // namespace slate
