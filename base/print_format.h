// printf's formats as kernels use them: which arguments a format takes, and the text that comes of
// them. The sizes are those of C's variable arguments on a 64-bit machine; `%n` is not known. What
// formats and arguments say is a kernel's, so nothing in them makes this crash, hang or allocate
// without bound. Any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace slate {

/// The arguments of one call, in order. Nothing: there is no more.
struct PrintArguments {
  std::function<std::optional<std::uint64_t>(std::uint32_t bytes)> number;  // of 4 or 8 bytes
  std::function<std::optional<std::string>()> text;
};

/// What C's printf would write. A conversion that is none, or whose argument is missing, is written
/// as it stands; a width or precision beyond 4096 ends the text.
std::string format_printed(std::string_view format, const PrintArguments& arguments);

}  // namespace slate
