// What the program has said about its memory that other calls mind. Any thread.
#pragma once

namespace slate::driver {

/// Whether copies and fills that are no asynchronous ones have to be done when they return, also
/// where the host could not see it: the program asked for that for some of its memory.
bool synchronous_calls_wait();

}  // namespace slate::driver
