// The table of slated's configuration: one row for each key. The reader of the TOML file, the
// command line, the text for an engine and the installed slated.toml all use it. Nothing here knows
// TOML.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.h"
#include "daemon/config.h"

namespace slate::daemon {

/// A value, or a combination of values, that the configuration may not have.
inline std::unexpected<Error> bad(std::string message) {
  return fail(ErrorCode::kInvalidValue, std::move(message));
}

/// A value as it was written, before its key says what it has to be. Nothing: another type.
using KeyValue =
    std::variant<std::monostate, bool, std::int64_t, double, std::string, std::vector<std::string>>;

/// What a value may be, for messages and for readers that have only text.
enum class KeyType : std::uint8_t { kText, kFlag, kWhole, kReal, kNames };

/// A key of an `Owner`, which is Config or ProgramSettings.
template <typename Owner>
struct Key {
  std::string_view table;  // "": the file's top; "scheduler": [scheduler]
  std::string_view name;
  std::string_view help;       // sentences for an administrator; the first one is the summary
  double least = 0, most = 0;  // bounds of a number
  KeyType type = KeyType::kText;
  /// Sets the value. The message of kInvalidValue says what was expected.
  Result<void> (*set)(Owner& owner, const Key& key, const KeyValue& value) = nullptr;
  /// The value as the file has it.
  std::string (*text)(const Owner& owner) = nullptr;
  /// All possible values; nothing where they are too many.
  std::vector<std::string_view> (*choices)() = nullptr;

  /// "scheduler.quantum_ms".
  std::string path() const;
  /// "0 to 1", or "auto, native, worker, slice"; empty where there is no bound.
  std::string bounds() const;
};

/// The keys in the order of the file; the keys of a table stand together.
std::span<const Key<Config>> config_keys();
/// The keys of a [[program]] table.
std::span<const Key<ProgramSettings>> program_keys();
/// The keys of a [[user]] and a [[group]] table.
std::span<const Key<UserSettings>> user_keys();
/// What a table of the file is about.
struct TableHelp {
  std::string_view table;
  std::string_view help;
};
/// The tables of the file, without its top.
std::span<const TableHelp> config_tables();
/// Null for an unknown key.
const Key<Config>* find_config_key(std::string_view table, std::string_view name);

/// A command line's `text` as a value for a key of this type.
KeyValue value_of(KeyType type, std::string_view text);

/// Checks what must hold between keys. The error's message begins with the key's path.
Result<void> check_config(const Config& config);

}  // namespace slate::daemon
