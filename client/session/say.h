// Messages of libslate to the user of any program: one line on stderr, prefixed "slate: ". Not a
// log: the only setting is SLATE_VERBOSE. Any thread; never throws, never ends the program.
#pragma once

#include <string_view>

#include "base/result.h"

namespace slate::client {

void say(std::string_view text) noexcept;

/// Says each different text once per process.
void say_once(std::string_view text) noexcept;

/// Says why a call failed: each time if SLATE_VERBOSE is set, else once, and only an error that a
/// program cannot explain by its number alone.
void say_failure(const Error& error) noexcept;

/// Whether SLATE_VERBOSE is set to anything but 0: then every failed call is said, each time.
bool verbose() noexcept;

}  // namespace slate::client
