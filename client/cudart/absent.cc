#include "client/cudart/absent.h"

#include <string>

#include "client/cudart/front.h"
#include "client/session/say.h"

namespace slate::cudart {

int absent(const char* name) noexcept {
  return answer([&]() -> Answer {
    client::say_once(std::string(name) + " is not supported yet");
    return deny(cudaErrorNotSupported);
  });
}

}  // namespace slate::cudart
