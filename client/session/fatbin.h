// Fat binaries: finds the image in one that suits a device, and unpacks it. Knows nvcc's container
// format (entries of PTX, ELF and LTO-IR, plain or packed with LZ4 or zstd), nothing of what is
// inside an image. Everything is bounds-checked against the container's own size: a damaged one
// gives an error, never a crash.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"

namespace slate::client {

enum class ImageKind : std::uint32_t { kPtx = 1, kElf = 2 };  // as in ipc::ModuleLoad

enum class Packing { kNone, kLz4, kZstd };

struct FatBinaryEntry {
  ImageKind kind = ImageKind::kPtx;
  std::uint32_t architecture = 0;  // 90 for compute_90 and sm_90
  Packing packing = Packing::kNone;
  std::span<const std::byte> payload;
  std::uint64_t unpacked_bytes = 0;  // when packed
  /// Of PTX: the most registers that its kernels were compiled for; 0: as many as they like.
  std::uint32_t most_registers = 0;
  /// PTX that is to be assembled with other options that change what it does: caching.
  bool needs_options = false;
};

struct Image {
  ImageKind kind = ImageKind::kPtx;
  std::uint32_t architecture = 0;
  std::vector<std::byte> bytes;  // PTX: without terminating NULs
  /// Beside PTX: what the program's compiler made of it for the device; empty: there is none.
  std::vector<std::byte> code = {};
};

/// The bytes of the container that begins at `start`, by its own header. kInvalidValue if it is
/// none.
Result<std::span<const std::byte>> container_at(const void* start);

/// The PTX and ELF entries of a container, in order; other kinds are skipped.
Result<std::vector<FatBinaryEntry>> list_entries(std::span<const std::byte> container);

/// PTX says itself how many registers its kernels may have.
Result<Image> unpack(const FatBinaryEntry& entry);

/// The newest code for `capability` (90 for 9.0), as the driver takes it: PTX of an architecture up
/// to that, ELF of the same major version and a minor one up to the device's. Of both alike PTX,
/// which can be rewritten, with the ELF as its `code`; with `ptx_first`, for a device that runs
/// nothing else, PTX of any age, alone.
/// kNoKernelImage names what there is.
Result<Image> choose_image(std::span<const std::byte> container, std::uint32_t capability,
                           bool ptx_first = false);

/// What the registration calls hand over: one container, or (device-linked, nvcc -rdc=true) that of
/// the machine code and the containers of the objects it was linked from. Of those the PTX is
/// linked anew if that can be done, so that the program is rewritten as any other; its `code` is
/// the machine code as it was linked.
Result<Image> image_of_wrapper(const void* wrapper, std::uint32_t capability,
                               bool ptx_first = false);

}  // namespace slate::client
