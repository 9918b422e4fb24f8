#include "client/cudart/absent.h"

#include <string>

#include "client/cudart/front.h"
#include "client/session/say.h"

namespace slate::cudart {

int absent(const char* name, const char* reason) noexcept {
  return answer([&]() -> Answer {
    client::say_once(std::string(name) + " is not supported yet: " + reason);
    // A count that does not arrive changes nothing for the program, nor does a daemon that is gone.
    if (auto session = Process::get().session()) (void)(*session)->report_unsupported(name);
    return deny(cudaErrorNotSupported);
  });
}

}  // namespace slate::cudart
