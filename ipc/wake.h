// The wake bytes of a channel, and how long a side waits awake before it sleeps. Private to ipc.
// Thread: any.
#pragma once

#include <atomic>
#include <cstdint>

namespace slate::ipc {

// Longest wait awake, in ns: twice a FIFO round trip. Past that, sleeping is as good.
inline constexpr std::int64_t kSpinNs = 20'000;
// Longest wait awake, in ns, while both sides wait for work on the device. For longer work, waking
// up takes less than a hundredth of its time.
inline constexpr std::int64_t kAwakeNs = 10'000'000;

/// Writes one byte into a FIFO whose reader may be gone, without SIGPIPE for the host process. A
/// full FIFO is ignored: the reader has bytes to wake up for.
void write_byte(int fd, char byte);

/// Wakes the other side through its FIFO if `sleeps` is set, and clears it.
void wake(std::atomic<std::uint32_t>& sleeps, int fd);

}  // namespace slate::ipc
