// Reading and writing slated's TOML text by the rows of config_table.h. An unknown key or a wrong
// type is an error with its line, so that a typing mistake is not silently a default.
#include "daemon/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>

#include "daemon/config_table.h"

#define TOML_EXCEPTIONS 0
// Its assertions end the process at some wrong files ("[[\\"). Without them it answers with an
// error.
#define TOML_ASSERT(expression) static_cast<void>(0)
#define TOML_ENABLE_FORMATTERS 0
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wnull-dereference"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wconversion"
#include <toml++/toml.h>
#pragma GCC diagnostic pop

namespace slate::daemon {
namespace {

constexpr std::size_t kColumns = 118;  // of a comment's text
constexpr std::string_view kProgram = "program", kUser = "user", kGroup = "group";

std::unexpected<Error> bad(std::string message) {
  return fail(ErrorCode::kInvalidValue, std::move(message));
}

/// "file:line: " of a part of the file.
std::string place_of(const toml::source_region& source, const std::string& file) {
  return fmt::format("{}:{}: ", file, source.begin.line);
}

KeyValue value_of(const toml::node& node) {
  if (const auto flag = node.value_exact<bool>()) return *flag;
  if (const auto whole = node.value_exact<std::int64_t>()) return *whole;
  if (const auto real = node.value_exact<double>()) return *real;
  if (auto text = node.value_exact<std::string>()) return std::move(*text);
  if (!node.is_array()) return {};
  std::vector<std::string> texts;
  for (const toml::node& part : *node.as_array()) {
    auto text = part.value_exact<std::string>();
    if (!text) return {};
    texts.push_back(std::move(*text));
  }
  return texts;
}

bool is_table_of_file(std::string_view path) {
  return std::ranges::any_of(config_keys(), [&](const auto& key) { return key.table == path; });
}

class Reader {
 public:
  explicit Reader(const std::string& file) : file_(file) {}

  Result<Config> read(const toml::table& top) {
    if (const auto done = read_table(top, ""); !done) return std::unexpected(done.error());
    if (const auto good = check_config(config_); !good) {
      const auto where = top.at_path(
          std::string_view(good.error().message).substr(0, good.error().message.find(':')));
      return bad((where ? place_of(where.node()->source(), file_) : file_ + ": ") +
                 good.error().message);
    }
    return std::move(config_);
  }

 private:
  /// Any error, with its place in front.
  Result<void> at(const toml::key& key, const Result<void>& done) const {
    if (done) return done;
    return bad(
        fmt::format("{}{}: {}", place_of(key.source(), file_), key.str(), done.error().message));
  }

  Result<void> read_table(const toml::table& table, const std::string& path) {
    for (const auto& [key, node] : table) {
      if (const auto done = read_key(key, node, path); !done) return done;
    }
    return {};
  }

  Result<void> read_key(const toml::key& key, const toml::node& node, const std::string& path) {
    if (const auto* const row = find_config_key(path, key.str()))
      return at(key, row->set(config_, *row, value_of(node)));
    if (path.empty() && key.str() == kProgram)
      return read_tables(key, node, program_keys(), config_.programs);
    if (path.empty() && key.str() == kUser)
      return read_tables(key, node, user_keys(), config_.users);
    if (path.empty() && key.str() == kGroup)
      return read_tables(key, node, user_keys(), config_.groups);
    const std::string inner =
        path.empty() ? std::string(key.str()) : fmt::format("{}.{}", path, key.str());
    if (!is_table_of_file(inner)) return at(key, bad("unknown key"));
    if (!node.is_table()) return at(key, bad("expected a table"));
    return read_table(*node.as_table(), inner);
  }

  /// Tables of one kind, each of which has a name.
  template <typename Settings>
  Result<void> read_tables(const toml::key& key, const toml::node& node,
                           std::span<const Key<Settings>> keys, std::vector<Settings>& into) {
    if (!node.is_array_of_tables())
      return at(key, bad(fmt::format("expected [[{}]] tables", key.str())));
    for (const toml::node& part : *node.as_array()) {
      Settings settings;
      for (const auto& [name, value] : *part.as_table()) {
        const auto row = std::ranges::find(keys, name.str(), &Key<Settings>::name);
        const auto done =
            row != keys.end() ? row->set(settings, *row, value_of(value)) : bad("unknown key");
        if (const auto told = at(name, done); !told) return told;
      }
      if (settings.name.empty()) {
        return bad(place_of(part.source(), file_) +
                   fmt::format("a [[{}]] without name", key.str()));
      }
      into.push_back(std::move(settings));
    }
    return {};
  }

  const std::string& file_;
  Config config_;
};

/// The line of the first letter beyond ASCII that stands neither in quotes nor in a comment; none
/// where there is no such letter. TOML has none there, and the parser (toml++ 3.3) has undefined
/// behaviour for it.
std::optional<std::size_t> line_of_stray_letter(std::string_view text) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  std::size_t line = 1;
  std::string_view quotes;  // what ends the string here; empty: in no string
  bool comments = false;
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  while (!text.empty()) {
    const char letter = text.front();
    std::size_t taken = 1;
    if (letter == '\n') {
      ++line;
      comments = false;
      if (quotes.size() == 1) quotes = {};  // an error, of which the parser knows
    } else if (!quotes.empty() && text.starts_with(quotes)) {
      // Up to two quotes more belong to a string of several lines.
      const std::size_t end = std::min(text.find_first_not_of(letter), text.size());
      taken = quotes.size() == 1 ? 1 : std::min(end, quotes.size() + 2);
      quotes = {};
    } else if (!quotes.empty()) {
      if (letter == '\\' && quotes.front() == '"' && !text.substr(1).starts_with('\n')) taken = 2;
    } else if (!comments && (letter == '"' || letter == '\'')) {
      const std::string_view three = letter == '"' ? R"(""")" : "'''";
      quotes = text.starts_with(three) ? three : three.substr(2);
      taken = quotes.size();
    } else if (letter == '#') {
      comments = true;
    } else if (!comments && (static_cast<unsigned char>(letter) & 0x80) != 0) {
      return line;
    }
    text.remove_prefix(std::min(taken, text.size()));
  }
  return std::nullopt;
}

/// A number, with K, M, G or T behind it if `units`; none for anything else or more than 64 bits.
std::optional<std::uint64_t> parse_number(std::string_view text, bool units) {
  std::uint64_t number = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  if (status != std::errc{}) return std::nullopt;
  if (unit.empty()) return number;
  const auto position = std::string_view("KMGT").find(unit);
  if (!units || unit.size() > 1 || position == std::string_view::npos) return std::nullopt;
  const int shift = 10 * (static_cast<int>(position) + 1);
  if (number > std::numeric_limits<std::uint64_t>::max() >> shift) return std::nullopt;
  return number << shift;
}

/// Comment lines of `text`, broken at spaces.
std::string comment(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    std::size_t end = text.size();
    if (end > kColumns) {
      end = text.rfind(' ', kColumns);
      if (end == std::string_view::npos) end = std::min(text.find(' '), text.size());
    }
    out += fmt::format("# {}\n", text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

template <typename Owner>
std::string help_of(const Key<Owner>& key) {
  std::string text(key.help);
  if (const std::string bounds = key.bounds(); !bounds.empty())
    text += fmt::format("{}{}.", key.choices != nullptr ? " One of: " : " From ", bounds);
  return comment(text);
}

std::string help_of_table(std::string_view table) {
  const auto found = std::ranges::find(config_tables(), table, &TableHelp::table);
  return found != config_tables().end() ? comment(found->help) : std::string();
}

/// As comments: every slated has programs and users of its own.
template <typename Settings>
std::string documented_tables(std::string_view kind, std::span<const Key<Settings>> keys,
                              const Settings& settings) {
  std::string text = help_of_table(kind);
  std::string example = fmt::format("# [[{}]]\n", kind);
  for (const auto& key : keys) {
    text += comment(fmt::format("{}:", key.name)) + help_of(key);
    example += fmt::format("# {} = {}\n", key.name, key.text(settings));
  }
  return text + example;
}

/// With its help where that is wanted.
std::string text_of(const Config& config, bool documented) {
  std::string text;
  std::string_view table;
  for (const Key<Config>& key : config_keys()) {
    if (key.table != table) {
      table = key.table;
      if (documented) text += "\n" + help_of_table(table);
      text += fmt::format("[{}]\n", table);
    }
    if (documented) text += "\n" + help_of(key);
    text += fmt::format("{} = {}\n", key.name, key.text(config));
  }
  return text;
}

}  // namespace

std::uint64_t MemoryLimit::bytes_of(std::uint64_t total) const {
  if (!is_percent) return std::min(value, total);
  return total / 100 * value + total % 100 * value / 100;
}

Result<MemoryLimit> parse_memory_limit(std::string_view text) {
  const auto wrong = [&] {
    return bad(
        fmt::format("memory limit '{}': expected bytes, or a number and K, M, G, T or %", text));
  };
  const bool is_percent = text.ends_with('%');
  if (is_percent) text.remove_suffix(1);
  const auto number = parse_number(text, !is_percent);
  if (!number || *number == 0 || (is_percent && *number > 100)) return wrong();
  return MemoryLimit{is_percent, *number};
}

Result<ByteSize> parse_size(std::string_view text) {
  const auto number = parse_number(text, true);
  if (!number) {
    return bad(fmt::format("size '{}': expected bytes, or a number and K, M, G or T", text));
  }
  return ByteSize{*number};
}

Result<Config> parse_config(std::string_view text, const std::string& name) {
  if (const auto line = line_of_stray_letter(text))
    return bad(fmt::format("{}:{}: a letter that is not ASCII needs quotes", name, *line));
  const toml::parse_result parsed = toml::parse(text, name);
  if (!parsed) {
    const auto& error = parsed.error();
    return bad(fmt::format("{}:{}: {}", name, error.source().begin.line, error.description()));
  }
  return Reader(name).read(parsed.table());
}

Result<Config> load_config(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return fail_errno(path);
  std::ostringstream text;
  text << file.rdbuf();
  if (file.bad()) return fail_errno(path);
  return parse_config(text.str(), path);
}

std::string config_text(const Config& config) {
  return text_of(config, false);
}

std::string documented_config() {
  const std::string head = comment("Configuration of slated: slated --config FILE") +
                           comment(
                               "Every key with its default. An unknown key is an error. "
                               "Options on the command line beat this file.");
  return head + text_of({}, true) + "\n" +
         documented_tables(kProgram, program_keys(),
                           {.name = "train", .user = "", .settings = {}}) +
         "\n" +
         documented_tables(kUser, user_keys(),
                           {.name = "alice", .weight = 1, .max_sessions = 0, .memory = {}}) +
         "\n" +
         documented_tables(kGroup, user_keys(),
                           {.name = "students", .weight = 1, .max_sessions = 0, .memory = {}});
}

}  // namespace slate::daemon
