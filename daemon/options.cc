#include "daemon/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <deque>
#include <iostream>
#include <utility>
#include <vector>

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wnull-dereference"
#include <CLI/CLI.hpp>
#pragma GCC diagnostic pop

#include "daemon/config_table.h"

namespace slate::daemon {
namespace {

/// "--scheduler-quantum-ms" for scheduler.quantum_ms.
std::string option_name(const Key<Config>& key) {
  std::string name = "--" + key.path();
  std::ranges::replace(name, '.', '-');
  std::ranges::replace(name, '_', '-');
  return name;
}

/// The first sentence of the help, with the bounds.
std::string summary(const Key<Config>& key) {
  const std::size_t end = key.help.find(". ");
  std::string text(key.help.substr(0, end));
  if (text.ends_with('.')) text.pop_back();
  const std::string bounds = key.bounds();
  return bounds.empty() ? text : fmt::format("{}; {}", text, bounds);
}

class Options {
 public:
  explicit Options(CLI::App& app) {
    app.add_option("--config", file_, "TOML file; options given here beat it");
    app.add_flag("--print-config", prints_, "print that file with all defaults, and end");
    for (const Key<Config>& key : config_keys()) {
      std::string& text = texts_.emplace_back();
      CLI::Option* const option = key.type == KeyType::kFlag
                                      ? app.add_flag(option_name(key), text, summary(key))
                                      : app.add_option(option_name(key), text, summary(key));
      if (!key.table.empty()) option->group(fmt::format("[{}]", key.table));
      given_.emplace_back(&key, option);
    }
  }

  bool prints() const { return prints_; }

  Result<Config> combine() const {
    Config config;
    if (!file_.empty()) {
      auto loaded = load_config(file_);
      if (!loaded) return loaded;
      config = std::move(*loaded);
    }
    for (const auto& [key, option] : given_) {
      if (option->count() == 0) continue;
      const auto done = key->set(config, *key, value_of(key->type, option->results().back()));
      if (!done) {
        return fail(ErrorCode::kInvalidValue,
                    fmt::format("{}: {}", option_name(*key), done.error().message));
      }
    }
    if (const auto good = check_config(config); !good) return std::unexpected(good.error());
    // What the engine could not read is refused here: text that is not UTF-8.
    auto read = parse_config(config_text(config), "options");
    if (!read) return read;
    return config;
  }

 private:
  std::string file_;
  bool prints_ = false;
  std::deque<std::string> texts_;
  std::vector<std::pair<const Key<Config>*, CLI::Option*>> given_;
};

}  // namespace

std::expected<Config, int> parse_options(int argc, const char* const* argv) {
  CLI::App app{
      "slated: shares one GPU between CUDA programs. Runs in the foreground until SIGTERM."};
  app.set_version_flag("--version", "slated " SLATE_VERSION);
  const Options options(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return std::unexpected(app.exit(error, std::cout, std::cerr) == 0 ? 0 : 2);
  }
  if (options.prints()) {
    fmt::print("{}", documented_config());
    return std::unexpected(0);
  }
  auto config = options.combine();
  if (!config) {
    fmt::print(stderr, "slated: {}\n", config.error().message);
    return std::unexpected(2);
  }
  return std::move(*config);
}

}  // namespace slate::daemon
