// The frame of a reader's process: limits, sandbox, and one question after the other, until the
// engine closes the socket. Every message on it is its size (8 bytes) and its bytes; the first one
// is the text. The process answers one message before any question: empty, or why it cannot read.
#pragma once

#include <string_view>

namespace slate::daemon {

/// The one argument of a reader's process.
inline constexpr std::string_view kReaderArgument = "--reader";
/// The socket's descriptor in a reader's process. All others lead nowhere.
inline constexpr int kReaderFd = 3;
/// The most bytes of a text.
inline constexpr std::size_t kMostReadBytes = std::size_t{1} << 30;

/// Returns at the process's end, with its exit status.
int run_reader();

}  // namespace slate::daemon
