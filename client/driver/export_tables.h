// The export tables: functions without names that the vendor's own libraries take from libcuda by
// the UUID of a table. Served are those that cudart, cuBLASLt and cuFFT cannot do without. A table
// has one address for the whole process, as cudart's integrity check covers addresses.
//
// Word 0 of a table is its size in bytes; functions follow. Context-local storage alone has no such
// word. An entry that nobody was seen to need answers CUDA_ERROR_NOT_SUPPORTED.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#ifndef __CUDA_API_VERSION_INTERNAL
#define __CUDA_API_VERSION_INTERNAL  // NOLINT: as front.h
#endif
#include <cuda.h>

#include "client/driver/contexts.h"

namespace slate::driver {

using Unserved = CUresult (*)();

struct CudartInterface {
  std::size_t bytes;
  Unserved entry_1;
  /// The primary context's handle, without retaining it.
  CUresult (*primary_context)(CUcontext* context, CUdevice device);
  std::array<Unserved, 10> others;
};
static_assert(sizeof(CudartInterface) == 13 * sizeof(void*));

/// Flags of the calls that tools want to hear of; all zero, as there are no tools. The caller keeps
/// their address.
struct ToolsHooks {
  using FlagsOf = void (*)(std::size_t** flags, std::size_t* count);
  std::size_t bytes;
  Unserved entry_1;
  FlagsOf functions;
  std::array<Unserved, 3> others;
  FlagsOf events;
};
static_assert(sizeof(ToolsHooks) == 7 * sizeof(void*));

struct ToolsThread {
  std::size_t bytes;
  Unserved entry_1;
  /// The calling thread's current context; null when there is none.
  CUresult (*current_context)(CUcontext* context, std::uint64_t zero);
};
static_assert(sizeof(ToolsThread) == 3 * sizeof(void*));

/// A null context is the current one. CUDA_ERROR_INVALID_CONTEXT when there is none, or when it is
/// unknown or has ended. CUDA_ERROR_INVALID_HANDLE for an unknown key.
struct ContextStorage {
  CUresult (*put)(CUcontext context, void* key, void* value, LocalStorage::Destructor destructor);
  CUresult (*remove)(CUcontext context, void* key);
  CUresult (*get)(void** value, CUcontext context, void* key);
};
static_assert(sizeof(ContextStorage) == 3 * sizeof(void*));

/// Says that there is nothing that cudart would have to mind.
struct ContextCheck {
  std::size_t bytes;
  Unserved entry_1;
  CUresult (*check)(CUcontext context, std::uint32_t* result, void** more);
  std::uint32_t (*check_all)();
  std::array<Unserved, 11> others;
};
static_assert(sizeof(ContextCheck) == 15 * sizeof(void*));

struct IntegrityCheck {
  std::size_t bytes;
  /// See handshake.h; `seconds` since 1970.
  CUresult (*answer)(std::uint32_t version, std::uint64_t seconds, std::uint64_t* two_words);
  Unserved entry_2;
};
static_assert(sizeof(IntegrityCheck) == 3 * sizeof(void*));

struct ToolsContext {
  std::size_t bytes;
  std::array<Unserved, 2> before;
  CUresult (*device)(CUcontext context, std::uint32_t* device);
  /// The number that cuCtxGetId() tells.
  CUresult (*number)(CUcontext context, std::uint64_t* number);
  std::array<Unserved, 34> between;
  // cuBLAS asks these two for the key of a stream's workspace, when the program has set none.
  /// The number of a stream that stream_object() told. Different for each stream.
  CUresult (*stream_number)(CUcontext context, std::uint64_t object, std::uint64_t* number);
  std::array<Unserved, 11> behind;
  /// What stands for a stream in the other entries. `per_thread`: 1 if the handle is that of the
  /// thread's own default stream.
  CUresult (*stream_object)(CUcontext context, CUstream stream, std::uint64_t* object,
                            std::uint32_t per_thread);
  std::array<Unserved, 41> others;
};
static_assert(offsetof(ToolsContext, stream_number) == 39 * sizeof(void*));
static_assert(offsetof(ToolsContext, stream_object) == 51 * sizeof(void*));
static_assert(sizeof(ToolsContext) == 93 * sizeof(void*));

/// cuBLASLt calls entries 4 and 13, and does without what they would say. It needs the table.
struct SmTopology {
  std::size_t bytes;
  std::array<Unserved, 16> others;
};
static_assert(sizeof(SmTopology) == 17 * sizeof(void*));

struct ToolsModule {
  using FunctionVisitor = void (*)(void* user, CUfunction function);
  std::size_t bytes;
  std::array<Unserved, 6> before;
  /// Calls back once for each function of the module. Returns their number; 0 is a failure.
  std::size_t (*enumerate)(CUcontext context, CUmodule module, FunctionVisitor visitor, void* user);
  std::array<Unserved, 91> others;
};
static_assert(sizeof(ToolsModule) == 99 * sizeof(void*));

}  // namespace slate::driver
