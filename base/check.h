// SLATE_CHECK: ends the process with a message when an invariant of slate itself is broken. Not for
// wrong input, which gives an Error (base/result.h). For the daemon and its tests only: libslate
// must never end its host, so client/ does not use it. Thread: any.
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
