// Writing a file so that nobody ever finds half of it. Any thread.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace slate::tools {

/// Beside `path` and renamed; of a symbolic link, beside what it leads to. What is there and is no
/// regular file, such as /dev/stdout or a FIFO, is written to directly, and so is what a link leads
/// to that does not exist yet.
Result<void> write_whole(const std::string& path, std::string_view text);

}  // namespace slate::tools
