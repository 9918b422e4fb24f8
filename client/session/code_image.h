// Code that a program hands over at run time: what it is, how long, and which
// kernels and managed variables it has. Looks no further into it; the daemon does.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "client/session/fatbin.h"

namespace slate::client {

/// The image for a device of this capability in what `code` points to: a fat binary (as nvcc embeds
/// or writes it), a cubin, or PTX that ends with a NUL or with the readable bytes. kInvalidValue
/// for null, kNoKernelImage. Nothing behind `readable` bytes is looked at; where nobody knows how
/// many there are, it is readable as far as it says of itself. `ptx_first`: as for choose_image().
Result<Image> image_of_code(const void* code, std::uint32_t capability,
                            std::size_t readable = ~std::size_t{0}, bool ptx_first = false);

struct ManagedName {
  std::string name;
  std::uint64_t bytes = 0;
};

struct CodeNames {
  std::vector<std::string> kernels;  // in the order of the image
  std::vector<ManagedName> managed;
};
/// Of damaged code, what is found.
CodeNames names_in(const Image& image);

}  // namespace slate::client
