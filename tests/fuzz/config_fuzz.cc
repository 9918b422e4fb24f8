// slated.toml. What was read is written for an engine, and has to be read again as the same.
#include "base/check.h"
#include "daemon/config.h"
#include "daemon/config_table.h"
#include "tests/fuzz/target.h"

namespace slate::fuzz {

void run(Input input) {
  const std::string_view text = text_of(input);
  const auto config = daemon::parse_config(text, "fuzzed.toml");
  if (!config) {
    SLATE_CHECK(config.error().message.starts_with("fuzzed.toml:"));
    return;
  }
  const std::string written = daemon::config_text(*config);
  const auto again = daemon::parse_config(written, "written.toml");
  SLATE_CHECK(again);
  SLATE_CHECK(daemon::config_text(*again) == written);
}

}  // namespace slate::fuzz
