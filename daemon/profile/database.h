// Database: opens slate's SQLite file in the state directory, handles its failures, and runs
// statements on it. The schema is in schema.h. What the tables mean is in profile_store.h and
// program_store.h.
// Thread: one object is for one thread at a time. Several processes may have the file open.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

struct sqlite3;
struct sqlite3_stmt;

namespace slate::daemon {

/// The first that is there:
/// - `configured`; "none" is the empty path,
/// - $SLATE_STATE_DIR,
/// - /var/lib/slate for root,
/// - $XDG_STATE_HOME/slate,
/// - ~/.local/state/slate.
/// The empty path: nothing is kept.
std::filesystem::path state_directory(const std::string& configured);

/// A prepared statement. After a failed bind or step it stays failed; ok() tells it after the last
/// row.
class Statement {
 public:
  Statement() = default;
  /// Binds the next parameter; the first one after prepare() or again().
  Statement& bind(std::int64_t value);
  Statement& bind(std::uint64_t value) { return bind(static_cast<std::int64_t>(value)); }
  Statement& bind(std::uint32_t value) { return bind(static_cast<std::int64_t>(value)); }
  Statement& bind(std::int32_t value) { return bind(static_cast<std::int64_t>(value)); }
  Statement& bind(double value);
  Statement& bind(std::string_view value);
  template <typename T>
  Statement& bind(const std::optional<T>& value) {
    return value ? bind(*value) : bind_null();
  }
  Statement& bind_null();
  /// True when there is a row to be read; false at the end and after a failure.
  bool step();
  /// Runs the statement to its end.
  Result<void> run();
  Result<void> ok() const;
  /// Makes the statement ready for other values.
  Statement& again();

  std::int64_t integer(int column) const;
  std::uint64_t bits(int column) const { return static_cast<std::uint64_t>(integer(column)); }
  std::uint32_t small(int column) const { return static_cast<std::uint32_t>(integer(column)); }
  double real(int column) const;
  std::string text(int column) const;
  bool is_null(int column) const;

 private:
  friend class Database;
  std::shared_ptr<sqlite3_stmt> body_;
  int next_ = 1;
  int status_ = 0;
};

class Database {
 public:
  enum class Missing { kCreate, kFail };

  /// Opens slate.db in `directory`. A missing directory is made (0700). A damaged file is moved
  /// aside with a warning, and a new one begun.
  /// Errors:
  /// - kNotSupported: the file is a newer slate's; it stays as it is.
  /// - kIo, kPermission: the system refuses, or the directory is not the caller's alone.
  /// - kIo with kFail: there is no file yet; nothing is made.
  static Result<Database> open(const std::filesystem::path& directory,
                               Missing missing = Missing::kCreate);

  Result<Statement> prepare(std::string_view sql);
  /// Runs one statement or several, without values or rows.
  Result<void> run(const char* sql);

 private:
  friend class Transaction;
  std::shared_ptr<sqlite3> body_;
};

/// A transaction: undone unless committed. Waits up to two seconds for another writer.
class Transaction {
 public:
  static Result<Transaction> begin(Database& database);
  Transaction(Transaction&&) noexcept = default;
  Transaction& operator=(Transaction&&) = delete;
  ~Transaction();
  Result<void> commit();

 private:
  explicit Transaction(std::shared_ptr<sqlite3> body) : body_(std::move(body)) {}
  std::shared_ptr<sqlite3> body_;  // null once committed
};

}  // namespace slate::daemon
