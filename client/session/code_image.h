// Code that a program passes at run time: its kind and length, and its kernels and managed
// variables. The daemon checks the rest.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "client/session/fatbin.h"

namespace slate::client {

/// The image for a device of this capability in `code`: a fat binary (as nvcc embeds or writes it),
/// a cubin, or PTX. PTX ends with a NUL or with the readable bytes. kInvalidValue for null,
/// kNoKernelImage.
/// Reads at most `readable` bytes; without the number, as many as the code says it has.
/// `ptx_first`: as for choose_image().
Result<Image> image_of_code(const void* code, std::uint32_t capability,
                            std::size_t readable = ~std::size_t{0}, bool ptx_first = false);

/// Whether `code` begins as one of these does.
bool is_code(const void* code, std::size_t readable = ~std::size_t{0});
/// Whether it begins as nvcc's wrapper of a fat binary.
bool is_wrapper(const void* code);
/// Whether `code`, of which is_code() holds, is PTX as text.
bool is_ptx_text(const void* code);
/// Whether the text says that its version is above `major`.`minor`.
bool is_newer_ptx(std::string_view text, unsigned major, unsigned minor);
/// Whether the wrapper's fat binary has machine code for several devices.
bool has_several_codes(const void* wrapper);

struct ManagedName {
  std::string name;
  std::uint64_t bytes = 0;
};

struct CodeNames {
  std::vector<std::string> kernels;    // in the order of the image
  std::vector<std::string> variables;  // plain ones, in memory of the device
  std::vector<ManagedName> managed;
};
/// The names in an image; for damaged code, those that are found.
CodeNames names_in(const Image& image);

}  // namespace slate::client
