#include "device/sim/device_info.h"

#include <fmt/format.h>

#include <cstring>
#include <utility>

#include "device/sim/occupancy.h"

namespace slate::sim {
namespace {

// The driver's CUdevice_attribute numbers, under its names; attributes that are 0 here are left
// out.
enum Attribute : int {
  kMaxThreadsPerBlockAttribute = 1,
  kMaxBlockDimX = 2,
  kMaxBlockDimY = 3,
  kMaxBlockDimZ = 4,
  kMaxGridDimX = 5,
  kMaxGridDimY = 6,
  kMaxGridDimZ = 7,
  kMaxSharedMemoryPerBlock = 8,
  kTotalConstantMemory = 9,
  kWarpSizeAttribute = 10,
  kMaxPitch = 11,
  kMaxRegistersPerBlock = 12,
  kClockRate = 13,
  kTextureAlignment = 14,
  kGpuOverlap = 15,
  kSurfaceAlignment = 30,
  kConcurrentKernels = 31,
  kEccEnabled = 32,
  kMemoryClockRate = 36,
  kGlobalMemoryBusWidth = 37,
  kL2CacheSize = 38,
  kAsyncEngineCount = 40,
  kUnifiedAddressing = 41,
  kTexturePitchAlignment = 51,
  kComputeCapabilityMajor = 75,
  kComputeCapabilityMinor = 76,
  kStreamPrioritiesSupported = 78,
  kGlobalL1CacheSupported = 79,
  kLocalL1CacheSupported = 80,
  kMaxSharedMemoryPerMultiprocessor = 81,
  kMaxRegistersPerMultiprocessor = 82,
  kSingleToDoublePrecisionPerfRatio = 87,
  kComputePreemptionSupported = 90,
  kMaxSharedMemoryPerBlockOptin = 97,
  kHostRegisterSupported = 99,
  kVirtualMemoryManagementSupported = 102,
  kMaxBlocksPerMultiprocessor = 106,
  kReservedSharedMemoryPerBlock = 111,
};

struct Value {
  Attribute attribute;
  std::int64_t value;
};

constexpr Value kFixedValues[] = {
    {kMaxThreadsPerBlockAttribute, kMaxThreadsPerBlock},
    {kMaxBlockDimX, kMaxBlock.x},
    {kMaxBlockDimY, kMaxBlock.y},
    {kMaxBlockDimZ, kMaxBlock.z},
    {kMaxGridDimX, kMaxGrid.x},
    {kMaxGridDimY, kMaxGrid.y},
    {kMaxGridDimZ, kMaxGrid.z},
    {kMaxSharedMemoryPerBlock, kSharedPerBlock},
    {kTotalConstantMemory, 64 << 10},
    {kWarpSizeAttribute, 32},
    {kMaxPitch, 2147483647},
    {kMaxRegistersPerBlock, kRegistersPerSm},
    {kClockRate, 1'980'000},  // kHz
    {kTextureAlignment, 512},
    {kGpuOverlap, 1},
    {kSurfaceAlignment, 512},
    {kConcurrentKernels, 1},
    {kEccEnabled, 1},
    {kMemoryClockRate, 3'201'000},  // kHz
    {kGlobalMemoryBusWidth, 6144},
    {kL2CacheSize, 60 << 20},
    {kAsyncEngineCount, 3},
    {kUnifiedAddressing, 1},
    {kTexturePitchAlignment, 32},
    {kStreamPrioritiesSupported, 1},
    {kGlobalL1CacheSupported, 1},
    {kLocalL1CacheSupported, 1},
    {kMaxSharedMemoryPerMultiprocessor, kSharedPerSm},
    {kMaxRegistersPerMultiprocessor, kRegistersPerSm},
    {kSingleToDoublePrecisionPerfRatio, 2},
    {kComputePreemptionSupported, 1},
    {kMaxSharedMemoryPerBlockOptin, kSharedPerBlockOptIn},
    {kHostRegisterSupported, 1},
    {kVirtualMemoryManagementSupported, 1},
    {kMaxBlocksPerMultiprocessor, kBlocksPerSm},
    {kReservedSharedMemoryPerBlock, kReservedSharedPerBlock},
};

/// Limits of arrays, textures and surfaces by attribute number, as compute capability 9.0 has them.
constexpr std::pair<int, std::int32_t> kTextureLimits[] = {
    {21, 131072}, {22, 131072},  {23, 65536}, {24, 16384}, {25, 16384}, {26, 16384},   {27, 32768},
    {28, 32768},  {29, 2048},    {42, 32768}, {43, 2048},  {45, 32768}, {46, 32768},   {47, 8192},
    {48, 8192},   {49, 32768},   {52, 32768}, {53, 32768}, {54, 2046},  {55, 32768},   {56, 131072},
    {57, 65536},  {58, 16384},   {59, 16384}, {60, 16384}, {61, 32768}, {62, 2048},    {63, 32768},
    {64, 32768},  {65, 2048},    {66, 32768}, {67, 32768}, {68, 2046},  {69, 1 << 28}, {70, 131072},
    {71, 65000},  {72, 2097120}, {73, 32768}, {74, 32768}, {77, 32768}};

}  // namespace

DeviceInfo make_device_info(const Settings& settings) {
  DeviceInfo info{};
  fmt::format_to_n(info.name, sizeof(info.name) - 1, "slate sim ({} SM{})", settings.sms,
                   settings.sms == 1 ? "" : "s");
  constexpr char kUuid[] = "slate-simulator!";
  static_assert(sizeof(kUuid) == sizeof(info.uuid) + 1);
  std::memcpy(info.uuid, kUuid, sizeof(info.uuid));
  info.total_memory = settings.memory;
  info.driver_version = 13000;
  info.is_simulated = 1;
  for (const Value& each : kFixedValues) {
    info.attributes[each.attribute] = static_cast<std::int32_t>(each.value);
  }
  for (const auto& [attribute, value] : kTextureLimits) info.attributes[attribute] = value;
  info.attributes[kSmCountAttribute] = static_cast<std::int32_t>(settings.sms);
  info.attributes[kThreadsPerSmAttribute] = kThreadsPerSm;
  info.attributes[kComputeCapabilityMajor] = static_cast<std::int32_t>(settings.cc_major);
  info.attributes[kComputeCapabilityMinor] = static_cast<std::int32_t>(settings.cc_minor);
  state_what_slate_gives(info);
  return info;
}

}  // namespace slate::sim
