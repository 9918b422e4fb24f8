// slatectl end, suspend, resume, renew and upgrade: what becomes of running sessions.
#pragma once

#include <string>

#include "base/result.h"
#include "ipc/messages.h"

namespace slate::tools {

/// What slated's answer to one of these verbs says to people.
Result<std::string> session_text(ipc::ControlVerb verb, const std::string& json_text);

/// Has slated serve `verb` for `target`: a session, process or program. A session that is suspended
/// is waited for until it has left its engine; kRenew and kUpgrade wait until that is done. Exit
/// status: 0, or 1 with a sentence on stderr.
int session_command(const std::string& runtime_dir, ipc::ControlVerb verb,
                    const std::string& target);

}  // namespace slate::tools
