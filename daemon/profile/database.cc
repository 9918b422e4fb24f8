#include "daemon/profile/database.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sqlite3.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <system_error>

#include "base/log.h"
#include "base/unique_fd.h"
#include "daemon/profile/schema.h"

namespace slate::daemon {
namespace {

namespace fs = std::filesystem;

constexpr int kBusyMilliseconds = 2000;

std::unexpected<Error> fail_sqlite(sqlite3* database, int status) {
  const char* const text = database != nullptr ? sqlite3_errmsg(database) : sqlite3_errstr(status);
  return fail(ErrorCode::kIo, fmt::format("slate's database: {}", text));
}

bool is_damage(int status) {
  return (status & 0xff) == SQLITE_CORRUPT || (status & 0xff) == SQLITE_NOTADB;
}

fs::path environment_path(const char* variable) {
  const char* const value = ::secure_getenv(variable);
  return value == nullptr ? "" : value;
}

Result<void> check_directory(const fs::path& directory) {
  std::error_code error;
  if (!fs::exists(directory, error)) {
    fs::create_directories(directory.parent_path(), error);
    if (::mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST)
      return fail_errno("state directory " + directory.string());
  }
  struct stat facts {};
  if (::lstat(directory.c_str(), &facts) != 0)
    return fail_errno("state directory " + directory.string());
  if (!S_ISDIR(facts.st_mode) || facts.st_uid != ::geteuid() ||
      (facts.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return fail(ErrorCode::kPermission,
                directory.string() + " is not a directory that slated alone may write to");
  }
  return {};
}

/// SQLite's status; the value of a statement that gives one number or text.
int ask(sqlite3* database, const char* sql, std::string& answer) {
  sqlite3_stmt* statement = nullptr;
  int status = sqlite3_prepare_v2(database, sql, -1, &statement, nullptr);
  if (status == SQLITE_OK && (status = sqlite3_step(statement)) == SQLITE_ROW) {
    const auto* const text = reinterpret_cast<const char*>(sqlite3_column_text(statement, 0));
    answer = text != nullptr ? text : "";
    status = SQLITE_OK;
  }
  sqlite3_finalize(statement);
  return status;
}

int execute(sqlite3* database, const char* sql) {
  return sqlite3_exec(database, sql, nullptr, nullptr, nullptr);
}

enum class Found { kGood, kDamaged, kNewer, kUnusable };

/// Looks before anything is written: the version first, for a newer slate's file stays untouched.
Found inspect(sqlite3* database, int& status, int& version) {
  std::string answer;
  status = ask(database, "PRAGMA user_version", answer);
  if (status == SQLITE_OK) {
    version = std::atoi(answer.c_str());
    if (version > kSchemaVersion) return Found::kNewer;
    status = ask(database, "PRAGMA quick_check(1)", answer);
    if (status == SQLITE_OK && answer != "ok") return Found::kDamaged;
  }
  if (is_damage(status)) return Found::kDamaged;
  return status == SQLITE_OK ? Found::kGood : Found::kUnusable;
}

int set_up(sqlite3* database, int version) {
  int status = execute(database,
                       "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;"
                       "PRAGMA foreign_keys = ON");
  if (status != SQLITE_OK || version == kSchemaVersion) return status;
  if ((status = execute(database, "BEGIN IMMEDIATE")) != SQLITE_OK) return status;
  if (version == 0) status = execute(database, kSchema);
  for (int from = version; from > 0 && from < kSchemaVersion && status == SQLITE_OK; ++from)
    status = execute(database, kMigrations[from - 1]);
  if (status == SQLITE_OK)
    status = execute(database, fmt::format("PRAGMA user_version = {}", kSchemaVersion).c_str());
  if (status == SQLITE_OK) status = execute(database, "COMMIT");
  if (status != SQLITE_OK) execute(database, "ROLLBACK");
  return status;
}

void move_aside(const fs::path& file) {
  const std::string aside = fmt::format("{}.damaged-{}", file.string(), std::time(nullptr));
  std::error_code error;
  fs::rename(file, aside, error);
  for (const char* part : {"-wal", "-shm"}) fs::remove(file.string() + part, error);
  log_warning("{} is damaged: moved to {}, and begun anew", file.string(), aside);
}

}  // namespace

fs::path state_directory(const std::string& configured) {
  if (!configured.empty()) return configured == "none" ? fs::path() : fs::path(configured);
  if (auto given = environment_path("SLATE_STATE_DIR"); !given.empty()) return given;
  if (::geteuid() == 0) return "/var/lib/slate";
  // By the XDG rules a path that is not absolute counts as none.
  if (const auto xdg = environment_path("XDG_STATE_HOME"); xdg.is_absolute()) return xdg / "slate";
  if (const auto home = environment_path("HOME"); home.is_absolute())
    return home / ".local" / "state" / "slate";
  return {};
}

Result<Database> Database::open(const fs::path& directory, Missing missing) {
  if (directory.empty()) return fail(ErrorCode::kIo, "no state directory is known");
  const fs::path file = directory / "slate.db";
  std::error_code error;
  if (missing == Missing::kFail && !fs::exists(file, error))
    return fail(ErrorCode::kIo, "there is no " + file.string());
  if (auto usable = check_directory(directory); !usable) return std::unexpected(usable.error());
  // One process at a time looks whether the file is sound, and makes it.
  const UniqueFd lock(
      ::open((directory / "slate.lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!lock || ::flock(lock.get(), LOCK_EX) != 0)
    return fail_errno((directory / "slate.lock").string());
  for (const bool again : {false, true}) {
    sqlite3* raw = nullptr;
    int status =
        sqlite3_open_v2(file.c_str(), &raw,
                        SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, nullptr);
    std::shared_ptr<sqlite3> body(raw, sqlite3_close_v2);
    if (status != SQLITE_OK) return fail_sqlite(raw, status);
    sqlite3_busy_timeout(raw, kBusyMilliseconds);
    int version = 0;
    const Found found = inspect(raw, status, version);
    if (found == Found::kNewer) {
      return fail(ErrorCode::kNotSupported,
                  fmt::format("{} is of a newer slate (schema {}, this one knows {})",
                              file.string(), version, kSchemaVersion));
    }
    if (found == Found::kUnusable) return fail_sqlite(raw, status);
    if (found == Found::kDamaged && again) return fail_sqlite(raw, status);
    if (found == Found::kDamaged) {
      body.reset();
      move_aside(file);
      continue;
    }
    if ((status = set_up(raw, version)) != SQLITE_OK) return fail_sqlite(raw, status);
    Database database;
    database.body_ = std::move(body);
    return database;
  }
  return fail(ErrorCode::kInternal, "slate's database");  // the loop always returns
}

Result<Statement> Database::prepare(std::string_view sql) {
  sqlite3_stmt* raw = nullptr;
  const int status =
      sqlite3_prepare_v2(body_.get(), sql.data(), static_cast<int>(sql.size()), &raw, nullptr);
  Statement statement;
  statement.body_.reset(raw, sqlite3_finalize);
  if (status != SQLITE_OK) return fail_sqlite(body_.get(), status);
  return statement;
}

Result<void> Database::run(const char* sql) {
  if (const int status = execute(body_.get(), sql); status != SQLITE_OK)
    return fail_sqlite(body_.get(), status);
  return {};
}

Statement& Statement::bind(std::int64_t value) {
  if (const int status = sqlite3_bind_int64(body_.get(), next_++, value)) status_ = status;
  return *this;
}

Statement& Statement::bind(double value) {
  if (const int status = sqlite3_bind_double(body_.get(), next_++, value)) status_ = status;
  return *this;
}

Statement& Statement::bind(std::string_view value) {
  const int status = sqlite3_bind_text(body_.get(), next_++, value.data(),
                                       static_cast<int>(value.size()), SQLITE_TRANSIENT);
  if (status != SQLITE_OK) status_ = status;
  return *this;
}

Statement& Statement::bind_null() {
  if (const int status = sqlite3_bind_null(body_.get(), next_++)) status_ = status;
  return *this;
}

bool Statement::step() {
  if (status_ != SQLITE_OK) return false;
  const int status = sqlite3_step(body_.get());
  if (status != SQLITE_ROW && status != SQLITE_DONE) status_ = status;
  return status == SQLITE_ROW;
}

Result<void> Statement::run() {
  while (step()) {
  }
  return ok();
}

Result<void> Statement::ok() const {
  if (status_ == SQLITE_OK) return {};
  return fail_sqlite(sqlite3_db_handle(body_.get()), status_);
}

Statement& Statement::again() {
  sqlite3_reset(body_.get());
  status_ = SQLITE_OK;
  next_ = 1;
  return *this;
}

std::int64_t Statement::integer(int column) const {
  return sqlite3_column_int64(body_.get(), column);
}

double Statement::real(int column) const {
  return sqlite3_column_double(body_.get(), column);
}

std::string Statement::text(int column) const {
  const auto* const text = reinterpret_cast<const char*>(sqlite3_column_text(body_.get(), column));
  if (text == nullptr) return {};
  return {text, static_cast<std::size_t>(sqlite3_column_bytes(body_.get(), column))};
}

bool Statement::is_null(int column) const {
  return sqlite3_column_type(body_.get(), column) == SQLITE_NULL;
}

Result<Transaction> Transaction::begin(Database& database) {
  if (auto begun = database.run("BEGIN IMMEDIATE"); !begun) return std::unexpected(begun.error());
  return Transaction(database.body_);
}

Transaction::~Transaction() {
  if (body_) execute(body_.get(), "ROLLBACK");
}

Result<void> Transaction::commit() {
  if (const int status = execute(body_.get(), "COMMIT"); status != SQLITE_OK)
    return fail_sqlite(body_.get(), status);
  body_.reset();
  return {};
}

}  // namespace slate::daemon
