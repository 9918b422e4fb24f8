// SLATE_CHECK: a broken invariant of slate itself ends the process, with a message. For the daemon
// and its tests only: libslate must never end its host, so client/ does not use it.
#pragma once

#include <cstdio>
#include <cstdlib>

#define SLATE_CHECK(condition)                                                               \
  do {                                                                                       \
    if (!(condition)) [[unlikely]] {                                                         \
      std::fprintf(stderr, "%s:%d: broken invariant: %s\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                                          \
    }                                                                                        \
  } while (0)
