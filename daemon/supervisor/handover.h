// Handover: what a slated passes on to the newer one that takes its process over (exec), as JSON
// with descriptors. Both have the same kLinkVersion. Thread: the supervisor's.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"

namespace slate::daemon {

class Handover {
 public:
  /// What the environment calls the descriptor of the state.
  static constexpr const char* kVariable = "SLATE_HANDOVER";

  /// Has the descriptor stay open in the next program. Returns its number, for the state. The
  /// descriptor stays the caller's.
  int pass(int fd);
  /// Runs `program` with these arguments in place of this one, which leaves the state to it.
  /// Returns only on failure; then nothing has changed. Errors: kIo.
  Error run(const std::string& program, const std::vector<std::string>& arguments,
            const nlohmann::json& state);

  /// The state that another slated has left for this one; null: none has. Forgets where it was.
  /// Errors: kIo, kProtocol.
  static Result<nlohmann::json> received();
  /// Takes a descriptor over that was passed on; none for -1.
  static UniqueFd take(const nlohmann::json& number);

 private:
  void keep_all();

  std::vector<int> passed_;
};

}  // namespace slate::daemon
