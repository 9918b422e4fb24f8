// printf's formats as kernels use them: which arguments a format takes, and the text of a call.
// Sizes are those of C's variable arguments on a 64-bit machine; `%n` is not known. Formats and
// arguments come from kernels, so nothing in them makes this crash, hang or allocate without bound.
// Thread: any.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace slate {

/// The arguments of one call, in order. Each function returns nullopt when there are no more.
struct PrintArguments {
  /// A number of 4 or 8 bytes.
  std::function<std::optional<std::uint64_t>(std::uint32_t bytes)> number;
  std::function<std::optional<std::string>()> text;
};

/// The text that C's printf would write. An unknown conversion, or one without argument, is written
/// as it stands. A width or precision beyond 4096 ends the text.
std::string format_printed(std::string_view format, const PrintArguments& arguments);

}  // namespace slate
