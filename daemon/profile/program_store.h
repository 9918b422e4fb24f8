// ProgramStore: the weights and priorities that `slatectl set --program` keeps, by program and
// user. Supervisor thread only. Reads and writes at once, as it is asked once a session.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "base/result.h"
#include "daemon/profile/database.h"

namespace slate::daemon {

struct KeptSettings {
  std::optional<double> weight;
  std::optional<std::int32_t> priority;
  bool by_administrator = false;
};

class ProgramStore {
 public:
  /// `directory` as in state_directory(); empty: nothing can be kept. Opens no file yet.
  explicit ProgramStore(std::filesystem::path directory) : directory_(std::move(directory)) {}

  /// What is kept for the program. nullopt for nothing, and when the database cannot be read, which
  /// is logged once.
  std::optional<KeptSettings> find(const std::string& program, std::uint32_t uid);
  /// Replaces what is kept. kLimit when the user has kept too many.
  Result<void> keep(const std::string& program, std::uint32_t uid, const KeptSettings& settings);
  /// False when nothing was kept.
  Result<bool> forget(const std::string& program, std::uint32_t uid);

 private:
  Result<Database*> open(Database::Missing missing);

  const std::filesystem::path directory_;
  std::optional<Database> database_;  // the open file, from its first use on
  bool warned_ = false;
};

}  // namespace slate::daemon
