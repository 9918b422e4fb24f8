// Database: slate's SQLite file, in the state directory: opening it with all that can be wrong with
// it, and statements on it. The schema is in schema.h; what the tables mean is in profile_store.h
// and program_store.h. One object is for one thread at a time; several processes may have the file
// open.
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

/// `configured` if not empty (then "none" is the empty path), else $SLATE_STATE_DIR, else
/// /var/lib/slate for root, else $XDG_STATE_HOME/slate, else ~/.local/state/slate. The empty path:
/// nothing is kept.
std::filesystem::path state_directory(const std::string& configured);

/// A prepared statement. A failing bind or step leaves it failed: ok() says so after the last row.
class Statement {
 public:
  Statement() = default;
  /// Binds the next parameter, from the first one on after prepare() or again().
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
  /// Runs it to its end.
  Result<void> run();
  Result<void> ok() const;
  /// Ready for other values.
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

  /// Opens slate.db in `directory`, which is made (0700) where there is none and must be the
  /// caller's alone. A damaged file is moved aside with a warning, and a new one begun.
  /// kNotSupported for the file of a newer slate, which stays as it is; kIo and kPermission for
  /// what the system refuses. With kFail, kIo also when there is no file yet, and nothing is made.
  static Result<Database> open(const std::filesystem::path& directory,
                               Missing missing = Missing::kCreate);

  Result<Statement> prepare(std::string_view sql);
  /// One statement or several, without values or rows.
  Result<void> run(const char* sql);

 private:
  friend class Transaction;
  std::shared_ptr<sqlite3> body_;
};

/// All of it or nothing: undone unless committed. Waits for another writer for up to two seconds.
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
