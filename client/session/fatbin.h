// Fat binaries: finds the image that suits a device, and unpacks it. Knows nvcc's container format
// (entries of PTX, ELF and LTO-IR, plain or packed with LZ4 or zstd), and nothing of the images.
// Everything is checked against the container's own size: a damaged container gives an error, never
// a crash.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"

namespace slate::client {

inline constexpr std::uint32_t kWrapperMagic = 0x466243b1;
inline constexpr std::uint32_t kContainerMagic = 0xba55ed50;
inline constexpr std::uint64_t kContainerHeaderBytes = 16;

/// What nvcc's registration code passes: where the container is.
struct FatBinaryWrapper {
  std::uint32_t magic = kWrapperMagic;
  std::uint32_t version = 1;
  const void* data = nullptr;
  const void* const* containers = nullptr;  // version 2: ends with null
};
static_assert(sizeof(FatBinaryWrapper) == 24);

enum class ImageKind : std::uint32_t { kPtx = 1, kElf = 2 };  // as in ipc::ModuleLoad

enum class Packing { kNone, kLz4, kZstd };

struct FatBinaryEntry {
  ImageKind kind = ImageKind::kPtx;
  std::uint32_t architecture = 0;  // 90 for compute_90 and sm_90
  Packing packing = Packing::kNone;
  std::span<const std::byte> payload;
  std::uint64_t unpacked_bytes = 0;  // size of the unpacked bytes, if packed
  /// PTX: the most registers that its kernels were compiled for; 0: no limit.
  std::uint32_t most_registers = 0;
  /// PTX: whether it needs assembler options that change the code's behaviour (caching).
  bool needs_options = false;
};

struct Image {
  ImageKind kind = ImageKind::kPtx;
  std::uint32_t architecture = 0;
  std::vector<std::byte> bytes;  // PTX: without terminating NULs
  /// Beside PTX: machine code by the program's compiler for the device; empty: none.
  std::vector<std::byte> code = {};
};

/// The bytes of the container at `start`, by its own header. kInvalidValue if there is no
/// container.
Result<std::span<const std::byte>> container_at(const void* start);

/// The PTX and ELF entries of a container, in order; other kinds are skipped.
Result<std::vector<FatBinaryEntry>> list_entries(std::span<const std::byte> container);

/// Unpacks an entry. PTX gets its limit of registers as text.
Result<Image> unpack(const FatBinaryEntry& entry);

/// The newest code for `capability` (90 for 9.0), by the driver's rules:
/// - PTX of an architecture up to the device's,
/// - ELF of the same major version, and a minor version up to the device's.
/// Of two alike it takes the PTX, which can be rewritten, with the ELF as its `code`. With
/// `ptx_first`, for a device that runs only PTX, it takes PTX of any age alone. Error:
/// kNoKernelImage lists what there is.
Result<Image> choose_image(std::span<const std::byte> container, std::uint32_t capability,
                           bool ptx_first = false);

/// The image of what the registration calls pass. That is one container, or for device-linked code
/// (nvcc -rdc=true) those of the machine code and of its objects. The objects' PTX is linked anew
/// if possible, so that the program can be rewritten. Its `code` is the linked machine code.
Result<Image> image_of_wrapper(const void* wrapper, std::uint32_t capability,
                               bool ptx_first = false);

}  // namespace slate::client
