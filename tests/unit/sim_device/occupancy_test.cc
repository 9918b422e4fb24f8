// Expected numbers: what cudaOccupancyMaxActiveBlocksPerMultiprocessor answers for compute
// capability 9.0.
#include "device/sim/occupancy.h"

#include <gtest/gtest.h>

namespace slate::sim {
namespace {

device::FunctionInfo function_of(std::uint32_t registers, std::uint32_t static_shared = 0) {
  device::FunctionInfo info;
  info.name = "f";
  info.max_threads_per_block = 1024;
  info.registers = registers;
  info.static_shared_bytes = static_shared;
  info.max_dynamic_shared_bytes = kSharedPerBlock - static_shared;
  return info;
}

struct Known {
  std::uint32_t registers, threads, shared, blocks;
};

TEST(OccupancyTest, EqualsCudas) {
  constexpr Known kKnown[] = {
      {16, 32, 0, 32},     {32, 256, 0, 8},      {32, 1024, 0, 2},    {33, 1024, 0, 1},
      {40, 256, 0, 6},     {64, 1024, 0, 1},     {65, 1024, 0, 0},    {128, 256, 0, 2},
      {128, 96, 0, 5},     {168, 384, 0, 1},     {255, 64, 0, 4},     {255, 256, 0, 1},
      {255, 288, 0, 0},    {32, 128, 16384, 13}, {32, 256, 49152, 4}, {32, 64, 101376, 2},
      {32, 64, 116736, 1}, {32, 64, 232448, 1},  {24, 33, 1000, 32},  {72, 160, 3000, 5},
  };
  for (const Known& known : kKnown) {
    EXPECT_EQ(block_cost(function_of(known.registers), known.threads, known.shared).occupancy,
              known.blocks)
        << known.registers << " registers, " << known.threads << " threads, " << known.shared
        << " bytes";
  }
}

ErrorCode refusal(const device::FunctionInfo& info, device::Dim3 grid, device::Dim3 block,
                  std::uint32_t shared = 0, device::Dim3 required = {0, 0, 0}) {
  const auto cost = check_launch(info, grid, block, shared, required);
  return cost ? ErrorCode::kNone : cost.error().code;
}

TEST(OccupancyTest, DimensionsOutsideTheLimitsAreInvalidConfigurations) {
  const auto info = function_of(32);
  EXPECT_EQ(refusal(info, {1, 1, 1}, {1, 1, 1}), ErrorCode::kNone);
  EXPECT_EQ(refusal(info, {2147483647, 1, 1}, {1024, 1, 1}), ErrorCode::kNone);
  EXPECT_EQ(refusal(info, {1, 65535, 65535}, {16, 1, 64}), ErrorCode::kNone);
  for (const device::Dim3 grid : {device::Dim3{0, 1, 1},
                                  {1, 0, 1},
                                  {1, 1, 0},
                                  {2147483648, 1, 1},
                                  {1, 65536, 1},
                                  {1, 1, 65536}}) {
    EXPECT_EQ(refusal(info, grid, {32, 1, 1}), ErrorCode::kInvalidConfiguration);
  }
  for (const device::Dim3 block : {device::Dim3{0, 1, 1},
                                   {1, 0, 1},
                                   {1, 1, 0},
                                   {1025, 1, 1},
                                   {1, 1025, 1},
                                   {1, 1, 65},
                                   {32, 33, 1},
                                   {65536, 65536, 1}}) {
    EXPECT_EQ(refusal(info, {1, 1, 1}, block), ErrorCode::kInvalidConfiguration);
  }
}

TEST(OccupancyTest, LaunchBoundsOfTheKernelHold) {
  auto info = function_of(32);
  info.max_threads_per_block = 128;
  EXPECT_EQ(refusal(info, {1, 1, 1}, {128, 1, 1}), ErrorCode::kNone);
  EXPECT_EQ(refusal(info, {1, 1, 1}, {129, 1, 1}), ErrorCode::kInvalidConfiguration);
}

TEST(OccupancyTest, AKernelForOneShapeOfBlocksTakesNoOther) {
  const auto info = function_of(32);
  for (const device::Dim3 block : {device::Dim3{64, 2, 1}, {32, 1, 1}, {128, 1, 1}, {2, 64, 1}}) {
    EXPECT_EQ(refusal(info, {1, 1, 1}, block, 0, {64, 2, 1}),
              block.y == 2 ? ErrorCode::kNone : ErrorCode::kInvalidConfiguration);
  }
}

TEST(OccupancyTest, TooManyRegistersAreOutOfResources) {
  EXPECT_EQ(refusal(function_of(64), {1, 1, 1}, {1024, 1, 1}), ErrorCode::kNone);
  EXPECT_EQ(refusal(function_of(65), {1, 1, 1}, {1024, 1, 1}), ErrorCode::kOutOfResources);
  EXPECT_EQ(refusal(function_of(255), {1, 1, 1}, {256, 1, 1}), ErrorCode::kNone);
}

TEST(OccupancyTest, DynamicSharedMemoryBeyondTheFunctionsLimitIsInvalid) {
  auto info = function_of(32, 1024);
  EXPECT_EQ(refusal(info, {1, 1, 1}, {32, 1, 1}, kSharedPerBlock - 1024), ErrorCode::kNone);
  EXPECT_EQ(refusal(info, {1, 1, 1}, {32, 1, 1}, kSharedPerBlock - 1023), ErrorCode::kInvalidValue);
  info.max_dynamic_shared_bytes = kSharedPerBlockOptIn - 1024;
  EXPECT_EQ(refusal(info, {1, 1, 1}, {32, 1, 1}, kSharedPerBlockOptIn - 1024), ErrorCode::kNone);
  EXPECT_EQ(refusal(info, {1, 1, 1}, {32, 1, 1}, kSharedPerBlockOptIn), ErrorCode::kInvalidValue);
}

}  // namespace
}  // namespace slate::sim
