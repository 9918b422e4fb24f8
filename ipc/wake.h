// How the two ends of a channel wait for each other: awake for a while, then asleep until the other
// writes a byte into a FIFO. Private to ipc.
#pragma once

#include <atomic>
#include <cstdint>

namespace slate::ipc {

// Twice a FIFO round trip: past that, sleeping is as good.
inline constexpr std::int64_t kSpinNs = 20'000;
// While both sides wait awake for work on the device. Of what takes longer, waking up is less than
// a hundredth.
inline constexpr std::int64_t kAwakeNs = 10'000'000;

/// One byte into a FIFO whose reader may be gone, without a SIGPIPE for the process that hosts us.
/// A full FIFO is as good: the reader has plenty to wake up for.
void write_byte(int fd, char byte);

/// Wakes the other side by its FIFO if it `sleeps`, or is about to.
void wake(std::atomic<std::uint32_t>& sleeps, int fd);

}  // namespace slate::ipc
