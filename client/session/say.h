// What libslate has to say to the user of a stranger's program: one line on stderr, prefixed
// "slate: ". Not a log: there is nothing to configure but SLATE_VERBOSE. Any thread; never throws,
// never ends the program.
#pragma once

#include <string_view>

namespace slate::client {

void say(std::string_view text) noexcept;

/// Says each different text once per process.
void say_once(std::string_view text) noexcept;

/// True when SLATE_VERBOSE is set to anything but 0: every failing call is said, each time.
bool verbose() noexcept;

}  // namespace slate::client
