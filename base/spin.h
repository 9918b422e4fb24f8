// Waiting awake for what takes less time than falling asleep does.
#pragma once

#include <mutex>

namespace slate {

/// False where a thread that spins may keep the one that it waits for from running: on machines of
/// two cores or fewer.
bool may_spin();

/// Locks a mutex that is held for microseconds only: waits awake about that long, then asleep.
std::unique_lock<std::mutex> lock_soon(std::mutex& mutex);

}  // namespace slate
