#include "daemon/profile/program_store.h"

#include <fmt/format.h>

#include "base/log.h"

namespace slate::daemon {
namespace {

constexpr std::int64_t kMostOfAUser = 256;

Result<std::optional<KeptSettings>> look_up(Database& database, const std::string& program,
                                            std::uint32_t uid) {
  auto found = database.prepare(
      "SELECT weight, priority, by_administrator FROM program WHERE name = ? AND uid = ?");
  if (!found) return std::unexpected(found.error());
  found->bind(program).bind(uid);
  if (!found->step()) {
    if (auto ok = found->ok(); !ok) return std::unexpected(ok.error());
    return std::nullopt;
  }
  KeptSettings kept;
  if (!found->is_null(0)) kept.weight = found->real(0);
  if (!found->is_null(1)) kept.priority = static_cast<std::int32_t>(found->integer(1));
  kept.by_administrator = found->integer(2) != 0;
  return kept;
}

}  // namespace

Result<Database*> ProgramStore::open(Database::Missing missing) {
  if (!database_) {
    auto opened = Database::open(directory_, missing);
    if (!opened) return std::unexpected(opened.error());
    database_.emplace(std::move(*opened));
  }
  return &*database_;
}

std::optional<KeptSettings> ProgramStore::find(const std::string& program, std::uint32_t uid) {
  std::error_code error;
  if (directory_.empty() || !std::filesystem::exists(directory_ / "slate.db", error))
    return std::nullopt;
  const auto database = open(Database::Missing::kFail);
  auto kept = database ? look_up(**database, program, uid)
                       : Result<std::optional<KeptSettings>>(std::unexpected(database.error()));
  if (kept) return *kept;
  if (!warned_) log_warning("settings of programs are not read: {}", kept.error().message);
  warned_ = true;
  return std::nullopt;
}

Result<void> ProgramStore::keep(const std::string& program, std::uint32_t uid,
                                const KeptSettings& settings) {
  if (directory_.empty())
    return fail(ErrorCode::kNotSupported, "slated keeps nothing (state_dir = \"none\")");
  const auto database = open(Database::Missing::kCreate);
  if (!database) return std::unexpected(database.error());
  auto transaction = Transaction::begin(**database);
  if (!transaction) return std::unexpected(transaction.error());
  auto count = (*database)->prepare("SELECT count(*) FROM program WHERE uid = ? AND name <> ?");
  if (!count) return std::unexpected(count.error());
  if (count->bind(uid).bind(program).step() && count->integer(0) >= kMostOfAUser) {
    return fail(ErrorCode::kLimit, fmt::format("settings of {} programs of uid {} are kept already",
                                               kMostOfAUser, uid));
  }
  auto insert = (*database)->prepare("INSERT OR REPLACE INTO program VALUES (?, ?, ?, ?, ?)");
  if (!insert) return std::unexpected(insert.error());
  const std::int32_t flag = settings.by_administrator ? 1 : 0;
  insert->bind(program).bind(uid).bind(settings.weight).bind(settings.priority).bind(flag);
  if (auto done = insert->run(); !done) return done;
  return transaction->commit();
}

Result<bool> ProgramStore::forget(const std::string& program, std::uint32_t uid) {
  if (!find(program, uid)) return false;
  const auto database = open(Database::Missing::kFail);
  if (!database) return std::unexpected(database.error());
  auto remove = (*database)->prepare("DELETE FROM program WHERE name = ? AND uid = ?");
  if (!remove) return std::unexpected(remove.error());
  remove->bind(program).bind(uid);
  if (auto done = remove->run(); !done) return std::unexpected(done.error());
  return true;
}

}  // namespace slate::daemon
