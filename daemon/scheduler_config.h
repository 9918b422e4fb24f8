// The [scheduler] table of slated's configuration: every knob of scheduler::Settings by name. The
// supervisor passes it on to the engine as the same text.
#pragma once

#include <string>

#include "scheduler/settings.h"

namespace slate::daemon {

/// `settings` as the TOML text of a [scheduler] table, for parse_config().
std::string scheduler_text(const scheduler::Settings& settings);

}  // namespace slate::daemon
