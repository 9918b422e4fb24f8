#include "daemon/config.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "daemon/config_table.h"
#include "daemon/options.h"
#include "tests/unit/daemon/temporary_directory.h"

namespace slate::daemon {
namespace {

TEST(ConfigTest, AnEmptyFileIsTheDefaults) {
  const auto config = parse_config("", "f");
  ASSERT_TRUE(config);
  EXPECT_EQ(config->device, "auto");
  EXPECT_EQ(config->max_sessions_per_user, 256u);
  EXPECT_FALSE(config->kill_stuck_engine);
  EXPECT_EQ(config->cache_dir, "");
  EXPECT_EQ(config->cache_size.bytes, 1u << 30);
  EXPECT_EQ(config->ptxas, "");
  EXPECT_EQ(config->policy, "adaptive");
  EXPECT_EQ(config->max_weight, 4);
  EXPECT_EQ(config->state_dir, "");
  EXPECT_EQ(config->trace_events, 65536u);
  EXPECT_TRUE(config->programs.empty() && config->users.empty() && config->groups.empty());
}

TEST(ConfigTest, EveryKeyIsRead) {
  const auto config = parse_config(R"(
device = "sim"
runtime_dir = "/r"
log_level = "debug"
memory_limit = "25%"
max_sessions = 3
kill_grace_seconds = 1.5
kill_stuck_engine = true
spare_engine = true
cache_dir = "/c"
cache_size = "3M"
ptxas = "/p"
policy = "table"
max_weight = 2.5
state_dir = "/s"
trace_events = 77
)",
                                   "f");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->device, "sim");
  EXPECT_EQ(config->runtime_dir, "/r");
  EXPECT_EQ(config->log_level, LogLevel::kDebug);
  EXPECT_EQ(config->memory_limit.bytes_of(1000), 250u);
  EXPECT_EQ(config->max_sessions, 3u);
  EXPECT_EQ(config->kill_grace_seconds, 1.5);
  EXPECT_TRUE(config->kill_stuck_engine);
  EXPECT_EQ(config->spare_engine, SpareChoice::kAlways);
  EXPECT_EQ(config->cache_dir, "/c");
  EXPECT_EQ(config->cache_size.bytes, 3u << 20);
  EXPECT_EQ(config->ptxas, "/p");
  EXPECT_EQ(config->policy, "table");
  EXPECT_EQ(config->max_weight, 2.5);
  EXPECT_EQ(config->state_dir, "/s");
  EXPECT_EQ(config->trace_events, 77u);
}

TEST(ConfigTest, ProgramsUsersAndGroupsHaveTables) {
  const auto config = parse_config(R"(
[[program]]
name = "train"
weight = 3
priority = -2
[[program]]
name = "serve"
user = "alice"
priority = 10
[[user]]
name = "alice"
weight = 2.5
max_sessions = 9
[[group]]
name = "students"
memory = "25%"
)",
                                   "f");
  ASSERT_TRUE(config) << config.error().message;
  ASSERT_EQ(config->programs.size(), 2u);
  EXPECT_EQ(config->programs[0].settings, (SessionSettings{3, -2}));
  EXPECT_EQ(config->programs[0].user, "");
  EXPECT_EQ(config->programs[1].settings, (SessionSettings{1, 10}));
  EXPECT_EQ(config->programs[1].user, "alice");
  ASSERT_EQ(config->users.size(), 1u);
  EXPECT_EQ(config->users[0].weight, 2.5);
  EXPECT_EQ(config->users[0].max_sessions, 9u);
  EXPECT_EQ(config->users[0].memory.bytes_of(1000), 1000u);
  ASSERT_EQ(config->groups.size(), 1u);
  EXPECT_EQ(config->groups[0].name, "students");
  EXPECT_EQ(config->groups[0].memory.bytes_of(1000), 250u);
}

TEST(ConfigTest, TheSchedulersKnobsAreRead) {
  const auto config = parse_config(R"(
[scheduler]
quantum_ms = 2.5
linger_ms = 0
ahead_launches = 9
floor = 0.25
[scheduler.table]
high_memory = 0.9
[scheduler.table.beside]
high_memory = ["solo", "solo", "solo", "solo", "corun"]
)",
                                   "f");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->scheduler.quantum.count(), 2.5);
  EXPECT_EQ(config->scheduler.linger.count(), 0);
  EXPECT_EQ(config->scheduler.ahead_launches, 9u);
  EXPECT_EQ(config->scheduler.floor, 0.25);
  EXPECT_EQ(config->scheduler.high_memory, 0.9);
  EXPECT_EQ(config->scheduler.table[4], (std::array{false, false, false, false, true}));
  EXPECT_EQ(config->scheduler.table[0], scheduler::Settings{}.table[0]);
}

TEST(ConfigTest, MistakesInsideTablesNameTheirOwnLine) {
  for (const char* text :
       {"[scheduler]\n\nquantum = 1", "[scheduler]\n\nquantum_ms = \"1\"",
        "[scheduler]\n\nquantum_ms = -1", "[scheduler]\n\nfloor = 1.5",
        "[scheduler]\n\nintensities = 1", "[scheduler]\n\ngroup = 2.0", "[scheduler]\n\ngroup = 9",
        "[scheduler.table]\n\nhigh_memory = true",
        "[scheduler.table.beside]\n\nhigh_memory = [\"corun\"]",
        "[scheduler.table.beside]\n\nlow = [\"solo\",\"solo\",\"solo\",\"solo\",\"solo\"]",
        "[scheduler.table.beside]\n\nlow_compute = [\"solo\",\"solo\",\"solo\",\"solo\",1]",
        "[[program]]\nname = \"a\"\nweight = 0", "[[program]]\nname = \"a\"\nweight = 101",
        "[[program]]\nname = \"a\"\npriority = 11", "[[program]]\nname = \"a\"\nprio = 1",
        "[[program]]\nname = \"a\"\npriority = 1.5", "[[user]]\nname = \"a\"\nmemory = true",
        "[[group]]\nname = \"a\"\nweight = 0"}) {
    const auto config = parse_config(text, "file");
    ASSERT_FALSE(config) << text;
    EXPECT_TRUE(config.error().message.starts_with("file:3: ")) << config.error().message;
  }
}

TEST(ConfigTest, ThresholdsOutOfOrderAreRefused) {
  EXPECT_FALSE(parse_config("[scheduler.table]\nmedium_memory = 0.9\nhigh_memory = 0.5", "f"));
}

TEST(ConfigTest, AnUnknownKeyIsAnErrorWithItsLine) {
  const auto config = parse_config("device = \"sim\"\n\ndevcie = \"sim\"\n", "file");
  ASSERT_FALSE(config);
  EXPECT_NE(config.error().message.find("file:3"), std::string::npos) << config.error().message;
  EXPECT_NE(config.error().message.find("devcie"), std::string::npos);
}

TEST(ConfigTest, ATableWithoutANameIsAnErrorWithItsLine) {
  for (const char* text : {"\n[[\\", "\n[[\\\\program]]\n", "\n[\x01]"}) {
    const auto config = parse_config(text, "file");
    ASSERT_FALSE(config);
    EXPECT_TRUE(config.error().message.starts_with("file:2: ")) << config.error().message;
  }
}

TEST(ConfigTest, LettersBeyondAsciiMayStandInTexts) {
  const auto config = parse_config(R"(# é
state_dir = "/é\"é"
ptxas = """a\
  é"""
)",
                                   "file");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->state_dir, "/é\"é");
  EXPECT_EQ(config->ptxas, "aé");
  for (const char* text : {"\nmax_sessions = 9é\n", "\né = 1", "\nptxas = \"\\é\"", "\n[é]"}) {
    const auto refused = parse_config(text, "file");
    ASSERT_FALSE(refused);
    EXPECT_TRUE(refused.error().message.starts_with("file:2: ")) << refused.error().message;
  }
}

TEST(ConfigTest, AWrongTypeIsAnErrorWithItsLine) {
  for (const char* text : {"device = 3",
                           "max_sessions = \"many\"",
                           "max_sessions = 0",
                           "kill_grace_seconds = -1",
                           "spare_engine = 1",
                           "memory_limit = true",
                           "log_level = \"loud\"",
                           "cache_size = \"10%\"",
                           "cache_size = -1",
                           "cache_dir = 1",
                           "ptxas = 1",
                           "device = [",
                           "policy = 1",
                           "policy = \"best\"",
                           "max_weight = 0",
                           "state_dir = 1",
                           "trace_events = -1",
                           "scheduler = 1",
                           "program = 1",
                           "[[program]]\nweight = 1",
                           "[table]\nx = 1"}) {
    const auto config = parse_config(text, "file");
    ASSERT_FALSE(config) << text;
    EXPECT_NE(config.error().message.find("file:1"), std::string::npos) << config.error().message;
  }
}

/// A value that the key may have, other than its default's, as TOML.
std::string another_value(const Key<Config>& key) {
  const std::string present = key.text(Config{});
  if (key.choices != nullptr) {
    for (const std::string_view choice : key.choices())
      if (const std::string text = fmt::format("\"{}\"", choice); text != present) return text;
  }
  switch (key.type) {
    case KeyType::kFlag:
      return present == "true" ? "false" : "true";
    case KeyType::kWhole:
      return fmt::format("{}", present == fmt::format("{}", key.least) ? key.most : key.least);
    case KeyType::kReal:
      // As many digits as there are; medium thresholds stay below the high ones.
      return fmt::format(
          "{}", key.least + (key.most - key.least) / (key.name.starts_with("medium") ? 300 : 1.5));
    case KeyType::kNames:
      return R"(["solo", "corun", "solo", "corun", "solo"])";
    case KeyType::kText:
      break;
  }
  if (key.name == "memory_limit" || key.name == "device_memory") return "\"25%\"";
  if (key.name == "cache_size" || key.name == "image_store" || key.name == "swap" ||
      key.name == "swap_pinned" || key.name == "swap_ready")
    return "\"3M\"";
  return R"("a \"name\" \\ of\ttwo\nlines \u007f é")";
}

/// `value` as the only one that is not the default.
Result<Config> with(const Key<Config>& key, const std::string& value) {
  const std::string table = key.table.empty() ? "" : fmt::format("[{}]", key.table);
  return parse_config(fmt::format("{}\n{} = {}\n", table, key.name, value), "file");
}

/// Lines of the text that are not in that of the defaults.
std::vector<std::string> changed_lines(const Config& config) {
  std::istringstream before(config_text({})), after(config_text(config));
  std::vector<std::string> changed;
  for (std::string old_line, line; std::getline(before, old_line) && std::getline(after, line);)
    if (line != old_line) changed.push_back(line);
  return changed;
}

TEST(ConfigTableTest, EveryKeySurvivesTheWayToTheEngine) {
  for (const auto& key : config_keys()) {
    const auto config = with(key, another_value(key));
    ASSERT_TRUE(config) << config.error().message;
    const auto changed = changed_lines(*config);
    ASSERT_EQ(changed.size(), 1u) << key.path();
    EXPECT_TRUE(changed[0].starts_with(fmt::format("{} = ", key.name))) << changed[0];
    const auto told = parse_config(config_text(*config), "engine");
    ASSERT_TRUE(told) << told.error().message;
    EXPECT_EQ(config_text(*told), config_text(*config));
  }
}

TEST(ConfigTableTest, EveryKeyIsAnOption) {
  for (const auto& key : config_keys()) {
    if (key.type == KeyType::kText && key.choices == nullptr) continue;  // quoted there, not here
    std::string value = another_value(key), name = "--" + key.path();
    std::erase_if(value, [](char c) { return c == '"' || c == '[' || c == ']' || c == ' '; });
    std::ranges::replace(name, '.', '-');
    std::ranges::replace(name, '_', '-');
    const std::string option = name + "=" + value;
    const char* argv[] = {"slated", option.c_str()};
    const auto config = parse_options(2, argv);
    ASSERT_TRUE(config) << option;
    EXPECT_EQ(config_text(*config), config_text(*with(key, another_value(key)))) << option;
  }
}

TEST(ConfigTableTest, NumbersOutOfBoundsAreRefusedWithPlaceAndBounds) {
  for (const auto& key : config_keys()) {
    if (key.type != KeyType::kWhole && key.type != KeyType::kReal) continue;
    for (const double value : {key.least - 1, key.most + 1}) {
      const auto config = with(key, fmt::format("{}", value));
      ASSERT_FALSE(config) << key.path();
      const std::string& message = config.error().message;
      EXPECT_TRUE(message.starts_with(fmt::format("file:2: {}: ", key.name))) << message;
      EXPECT_NE(message.find(fmt::format("from {} to {}", key.least, key.most)), message.npos)
          << message;
    }
  }
}

TEST(ConfigTableTest, AnUnknownNameIsRefusedWithThoseThatThereAre) {
  for (const auto& key : config_keys()) {
    if (key.choices == nullptr) continue;
    const auto config = with(key, "\"none of them\"");
    ASSERT_FALSE(config) << key.path();
    EXPECT_TRUE(config.error().message.starts_with(fmt::format("file:2: {}: ", key.name)));
    EXPECT_NE(config.error().message.find(key.bounds()), std::string::npos)
        << config.error().message;
  }
}

TEST(ConfigTableTest, EveryKeyIsDocumented) {
  const std::string text = documented_config();
  for (const auto& key : config_keys()) {
    EXPECT_TRUE(key.help.ends_with('.')) << key.path();
    const std::string line = fmt::format("\n{} = {}\n", key.name, key.text(Config{}));
    const std::size_t at = text.find(line);
    ASSERT_NE(at, std::string::npos) << line;
    const std::size_t before = text.rfind('\n', at - 1) + 1;
    EXPECT_TRUE(text.substr(before).starts_with("# ")) << "no help above" << line;
  }
  for (const auto& key : program_keys())
    EXPECT_NE(text.find(fmt::format("# {} = ", key.name)), std::string::npos);
}

TEST(ConfigTableTest, TheDocumentedFileSaysTheDefaults) {
  const auto documented = parse_config(documented_config(), "slated.toml");
  ASSERT_TRUE(documented) << documented.error().message;
  EXPECT_EQ(config_text(*documented), config_text({}));
  EXPECT_TRUE(documented->programs.empty());
}

TEST(ConfigTableTest, TheTablesOfTheDocumentedFileCanBeUncommented) {
  const std::string text = documented_config();
  std::string uncommented;
  for (const char* kind : {"# [[program]]", "# [[user]]", "# [[group]]"}) {
    ASSERT_NE(text.find(kind), std::string::npos) << kind;
    std::istringstream lines(text.substr(text.find(kind)));
    for (std::string line; std::getline(lines, line) && line.starts_with("# ");)
      uncommented += line.substr(2) + "\n";
  }
  const auto config = parse_config(uncommented, "file");
  ASSERT_TRUE(config) << config.error().message << "\n" << uncommented;
  ASSERT_EQ(config->programs.size(), 1u);
  EXPECT_EQ(config->programs[0].settings, SessionSettings{});
  EXPECT_EQ(config->users.size(), 1u);
  EXPECT_EQ(config->groups.size(), 1u);
}

TEST(ConfigTest, AMissingFileIsAnError) {
  EXPECT_EQ(load_config("/nonexistent/slated.toml").error().code, ErrorCode::kIo);
}

TEST(MemoryLimitTest, UnitsArePowersOf1024) {
  EXPECT_EQ(parse_memory_limit("2G")->bytes_of(~0ull), 2ull << 30);
  EXPECT_EQ(parse_memory_limit("10K")->bytes_of(~0ull), 10240u);
  EXPECT_EQ(parse_memory_limit("77")->bytes_of(~0ull), 77u);
}

TEST(MemoryLimitTest, IsNeverMoreThanTheDeviceHas) {
  EXPECT_EQ(parse_memory_limit("2G")->bytes_of(1000), 1000u);
  EXPECT_EQ(parse_memory_limit("100%")->bytes_of(~0ull), ~0ull);
}

TEST(MemoryLimitTest, NonsenseIsRefused) {
  for (const char* text :
       {"", "0", "-1", "G", "2GB", "2g", "101%", "0%", "1.5G", "99999999999999T"}) {
    EXPECT_FALSE(parse_memory_limit(text)) << text;
  }
}

TEST(SizeTest, MayBeZeroAndHaveAUnit) {
  EXPECT_EQ(parse_size("0")->bytes, 0u);
  EXPECT_EQ(parse_size("77")->bytes, 77u);
  EXPECT_EQ(parse_size("2T")->bytes, 2ull << 40);
  for (const char* text : {"", "-1", "G", "10%", "1.5G", "1GB", "99999999999999T"}) {
    EXPECT_FALSE(parse_size(text)) << text;
  }
}

TEST(OptionsTest, BeatTheFile) {
  const TemporaryDirectory directory;
  const std::string path = directory.path() / "slated.toml";
  std::ofstream(path) << "device = \"cuda\"\nmax_sessions = 7\nkill_stuck_engine = true\n";
  const char* argv[] = {"slated",   "--config",  path.c_str(),
                        "--device", "sim:sms=4", "--kill-stuck-engine=false"};
  const auto config = parse_options(6, argv);
  ASSERT_TRUE(config);
  EXPECT_EQ(config->device, "sim:sms=4");
  EXPECT_EQ(config->max_sessions, 7u);
  EXPECT_FALSE(config->kill_stuck_engine);
}

TEST(OptionsTest, AFlagIsTrueByItself) {
  const char* argv[] = {"slated", "--kill-stuck-engine", "--scheduler-forms-at-once"};
  const auto config = parse_options(3, argv);
  ASSERT_TRUE(config);
  EXPECT_TRUE(config->kill_stuck_engine);
  EXPECT_TRUE(config->scheduler.forms_at_once);
}

TEST(OptionsTest, ValuesOutOfBoundsEndWithStatusTwo) {
  for (const char* option :
       {"--kill-grace-seconds=-1", "--trace-events=1.5", "--cache-size=1X", "--form=fast",
        "--log-level=loud", "--scheduler-group=9", "--scheduler-intensities=maybe",
        "--max-sessions=", "--scheduler-table-beside-low-compute=solo,corun",
        "--scheduler-table-medium-memory=0.9", "--cache-dir=\xff"}) {
    const char* argv[] = {"slated", option};
    const auto config = parse_options(2, argv);
    ASSERT_FALSE(config) << option;
    EXPECT_EQ(config.error(), 2) << option;
  }
}

TEST(OptionsTest, AnUnknownPolicyEndsWithStatusTwo) {
  const char* argv[] = {"slated", "--policy", "best"};
  EXPECT_EQ(parse_options(3, argv).error(), 2);
}

TEST(OptionsTest, UnknownOptionsEndWithStatusTwo) {
  const char* argv[] = {"slated", "--devise", "sim"};
  EXPECT_EQ(parse_options(3, argv).error(), 2);
}

}  // namespace
}  // namespace slate::daemon
