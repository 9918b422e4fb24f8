// A compile cache in memory, in the place of slate_cache, whose entries a test can damage.
#pragma once

#include <cstddef>
#include <map>
#include <vector>

#include "injector/cache/cache.h"

namespace slate::test {

struct FakeCache {
  std::map<cache::Key, std::vector<std::byte>> entries;
  bool opens = true;   // CompileCache::open() succeeds
  bool stores = true;  // store() succeeds
};

/// The contents of every CompileCache. Not for several threads.
FakeCache& fake_cache();

}  // namespace slate::test
