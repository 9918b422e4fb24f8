#include "client/driver/absent.h"

#include <string>

#include "client/driver/front.h"
#include "client/session/say.h"

namespace slate::driver {

CUresult absent(const char* name, const char* reason) noexcept {
  if (Life::usable() == CUDA_ERROR_DEINITIALIZED) return CUDA_ERROR_DEINITIALIZED;
  return answer([&]() -> Answer {
    std::string text = std::string(name) + " is not supported yet";
    if (*reason != '\0') text.append(": ").append(reason);
    client::say_once(text);
    // A count that does not arrive changes nothing for the program, nor does a daemon that is gone.
    if (Session* const session = Process::get().current()) (void)session->report_unsupported(name);
    return deny(CUDA_ERROR_NOT_SUPPORTED);
  });
}

}  // namespace slate::driver
