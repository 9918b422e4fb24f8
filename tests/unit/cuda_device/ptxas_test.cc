// The assembler as a process: the toolkit's own, and shell scripts that misbehave in its place. No
// GPU.
#include "device/cuda/ptxas.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/check.h"
#include "base/unique_fd.h"
#include "device/cuda/driver_cache.h"
#include "device/cuda/image.h"
#include "device/cuda/process.h"
#include "injector/link/builtins.h"

namespace slate::cuda {
namespace {

namespace fs = std::filesystem;

constexpr char kGood[] =
    ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k() {\n  ret;\n}\n";
constexpr char kBad[] =
    ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k() {\n  frobnicate;\n  ret;\n"
    "}\n";
constexpr char kToldVersion[] = "if [ $1 = --version ]; then echo release 13.0, V1; exit; fi\n";

/// An environment variable as a test wants it, until the end of the scope.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    if (const char* old = ::getenv(name)) old_ = old;
    value != nullptr ? ::setenv(name, value, 1) : ::unsetenv(name);
  }
  ~Variable() { old_ ? ::setenv(name_, old_->c_str(), 1) : ::unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* const name_;
  std::optional<std::string> old_;
};

/// Runs with a temporary directory of its own, in which compilations must leave nothing.
class PtxasTest : public testing::Test {
 protected:
  PtxasTest() {
    std::string name = testing::TempDir() + "slate-ptxas-test-XXXXXX";
    SLATE_CHECK(::mkdtemp(name.data()) != nullptr);
    root_ = name;
    SLATE_CHECK(fs::create_directory(root_ / "tmp"));
    temporary_.emplace("TMPDIR", (root_ / "tmp").c_str());
  }
  ~PtxasTest() override {
    EXPECT_TRUE(fs::is_empty(root_ / "tmp"));
    fs::remove_all(root_);
  }

  /// A shell script in the place of an assembler: its path.
  std::string script(const std::string& text, const std::string& folder = ".") {
    fs::create_directories(root_ / folder);
    const fs::path path = root_ / folder / "ptxas";
    std::ofstream(path) << "#!/bin/sh\n" << text;
    fs::permissions(path, fs::perms::owner_all);
    return path;
  }
  std::unique_ptr<Ptxas> open(const std::string& path, int driver_version = 13000,
                              std::chrono::milliseconds limit = std::chrono::minutes(1)) {
    PtxasSettings settings;
    settings.path = path;
    settings.major = 9;
    settings.driver_version = driver_version;
    settings.most_wait = limit;
    return std::make_unique<Ptxas>(settings);
  }
  /// The error of compiling kGood with a script that knows its version and then does `text`.
  Error error_of(const std::string& text,
                 std::chrono::milliseconds limit = std::chrono::minutes(1)) {
    const auto code = open(script(kToldVersion + text), 13000, limit)->compile(kGood);
    return code ? Error{ErrorCode::kNone, ""} : code.error();
  }
  static bool has_real() { return find_ptxas("").has_value(); }
  static bool contains(const std::string& text, std::string_view part) {
    return text.find(part) != std::string::npos;
  }

  fs::path root_;
  std::optional<Variable> temporary_;
};

TEST_F(PtxasTest, TheToolkitsAssemblerWritesACubin) {
  if (!has_real()) GTEST_SKIP() << "no ptxas";
  const auto assembler = open("", 99000);
  const auto code = assembler->compile(kGood);
  ASSERT_TRUE(code) << code.error().message;
  EXPECT_TRUE(checked_image(device::ImageKind::kCubin, *code));
  const auto identity = assembler->identity();
  ASSERT_TRUE(identity) << identity.error().message;
  EXPECT_TRUE(contains(*identity, "release ")) << *identity;
  EXPECT_TRUE(identity->ends_with("; sm_90")) << *identity;
}

// Not a rule of the assembler's, but here is one: sim, which runs this text, may take what it does
// not.
TEST_F(PtxasTest, TextsThatNameEachOthersKernelsAreLinked) {
  const auto assembler = open("", 99000);
  if (!assembler->can_link()) GTEST_SKIP() << assembler->can_link().error().message;
  const std::string texts[] = {kGood, R"(.version 8.0
.target sm_80
.address_size 64
.extern .entry k
();
.visible .entry names_k(.param .u64 to) {
  .reg .b64 %d<3>;
  ld.param.u64 %d1, [to];
  mov.u64 %d2, k;
  st.global.u64 [%d1], %d2;
  ret;
}
)"};
  const auto code = assembler->link(texts, std::chrono::minutes(1));
  ASSERT_TRUE(code) << code.error().message;
  EXPECT_TRUE(checked_image(device::ImageKind::kCubin, *code));
  const auto alone = assembler->link(std::span(texts).subspan(1), std::chrono::minutes(1));
  ASSERT_FALSE(alone);
  EXPECT_EQ(alone.error().code, ErrorCode::kInvalidPtx) << alone.error().message;
}

TEST_F(PtxasTest, WithoutALinkerBesideTheAssemblerNothingIsLinked) {
  const auto can = open(script(kToldVersion))->can_link();
  ASSERT_FALSE(can);
  EXPECT_EQ(can.error().code, ErrorCode::kNotSupported);
  EXPECT_TRUE(contains(can.error().message, "no nvlink beside ")) << can.error().message;
}

TEST_F(PtxasTest, TheBuiltinsThatAreLinkedInAreTaken) {
  if (!has_real()) GTEST_SKIP() << "no ptxas";
  constexpr std::string_view kCalls = R"(.version 8.0
.target sm_90
.address_size 64
.extern .func (.param .b32 r) vprintf(.param .b64 format, .param .b64 arguments);
.extern .func __assertfail(.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d, .param .b64 e);
.extern .func (.param .b64 r) malloc(.param .b64 bytes);
.extern .func free(.param .b64 memory);
.visible .entry calls(.param .u64 text) {
  .reg .b64 %text;
  ld.param.u64 %text, [text];
  {
    .param .b64 a, b, d, e;
    .param .b32 c, r;
    st.param.b64 [a], %text;
    st.param.b64 [b], %text;
    st.param.b32 [c], 7;
    st.param.b64 [d], %text;
    st.param.b64 [e], 1;
    call.uni (r), vprintf, (a, b);
    call.uni __assertfail, (a, b, c, d, e);
    call.uni (d), malloc, (a);
    call.uni free, (b);
  }
  ret;
}
)";
  const auto linked = ptx::with_builtins(kCalls);
  ASSERT_TRUE(linked);
  const auto code = open("", 99000)->compile(linked->text);
  EXPECT_TRUE(code) << code.error().message;
}

TEST_F(PtxasTest, TheSameTextGivesTheSameCode) {
  if (!has_real()) GTEST_SKIP() << "no ptxas";
  const auto assembler = open("", 99000);
  const auto code = assembler->compile(kGood);
  ASSERT_TRUE(code) << code.error().message;
  EXPECT_EQ(*code, assembler->compile(kGood).value());
}

TEST_F(PtxasTest, TextOfAnArchitecturesOwnFeaturesIsCompiledForThem) {
  if (!has_real()) GTEST_SKIP() << "no ptxas";
  const auto code = open("", 99000)->compile(
      ".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry k() {\n"
      "  setmaxnreg.inc.sync.aligned.u32 240;\n  ret;\n}\n");
  EXPECT_TRUE(code) << code.error().message;
}

TEST_F(PtxasTest, TextThatItRefusesComesWithItsWordsOnOneLine) {
  if (!has_real()) GTEST_SKIP() << "no ptxas";
  const auto code = open("", 99000)->compile(kBad);
  ASSERT_FALSE(code);
  EXPECT_EQ(code.error().code, ErrorCode::kInvalidPtx);
  EXPECT_TRUE(contains(code.error().message, "input, line 5; error")) << code.error().message;
  EXPECT_TRUE(contains(code.error().message, "frobnicate")) << code.error().message;
  EXPECT_FALSE(contains(code.error().message, "\n"));
  EXPECT_FALSE(contains(code.error().message, root_.string()));
}

TEST_F(PtxasTest, TextOfANewerPtxIsRefused) {
  if (!has_real()) GTEST_SKIP() << "no ptxas";
  const auto code = open("", 99000)->compile(".version 99.0\n.target sm_80\n.address_size 64\n");
  ASSERT_FALSE(code);
  EXPECT_EQ(code.error().code, ErrorCode::kInvalidPtx);
  EXPECT_TRUE(contains(code.error().message, "99.0")) << code.error().message;
}

TEST_F(PtxasTest, FailingIsInvalidPtxWithTheWords) {
  const Error error = error_of("echo one; echo two >&2; exit 3");
  EXPECT_EQ(error.code, ErrorCode::kInvalidPtx);
  EXPECT_TRUE(error.message.ends_with("ended with status 3: one; two")) << error.message;
}

TEST_F(PtxasTest, EndlessWordsAreCut) {
  const Error error =
      error_of("i=0; while [ $i -lt 2000 ]; do echo word word; i=$((i+1)); done; exit 1");
  EXPECT_EQ(error.code, ErrorCode::kInvalidPtx);
  EXPECT_LT(error.message.size(), 16384u);
}

TEST_F(PtxasTest, CrashingIsAnInternalErrorWithTheSignal) {
  const Error error = error_of("echo so far; kill -SEGV $$");
  EXPECT_EQ(error.code, ErrorCode::kInternal);
  EXPECT_TRUE(error.message.ends_with("ended by signal 11 (SEGV): so far")) << error.message;
}

TEST_F(PtxasTest, HangingEndsWithTheTimeLimitAndTakesItsChildrenAlong) {
  // The sleeper holds a lock on the file for as long as it lives.
  const std::string file = root_ / "lock";
  const Error error = error_of("flock '" + file + "' sleep 1000", std::chrono::milliseconds(300));
  EXPECT_EQ(error.code, ErrorCode::kIo);
  EXPECT_TRUE(contains(error.message, "more than 0.3 s")) << error.message;
  EXPECT_EQ(::system(("flock '" + file + "' true").c_str()), 0);  // waits until it is gone
}

TEST_F(PtxasTest, SuccessWithoutCodeIsAnInternalError) {
  for (const char* text : {"exit 0", "echo hello > \"$4\"", ": > \"$4\"", "mkdir \"$4\"",
                           "ln -s /etc/passwd \"$4\""}) {
    const Error error = error_of(text);
    EXPECT_EQ(error.code, ErrorCode::kInternal) << text;
    EXPECT_TRUE(contains(error.message, "wrote no code")) << error.message;
  }
}

TEST_F(PtxasTest, ItGetsTheArchitectureTheTextAndAPlaceForTheCode) {
  const Error error = error_of("echo $1 $3; cat \"$2\"; exit 1");
  EXPECT_TRUE(contains(error.message, "-arch=sm_90 -o; .version 8.0; .target sm_80"))
      << error.message;
}

TEST_F(PtxasTest, ItsDirectoryIsNobodyElses) {
  const Error error = error_of("stat -c %a \"$(dirname \"$2\")\"; exit 1");
  EXPECT_TRUE(error.message.ends_with(": 700")) << error.message;
}

TEST_F(PtxasTest, ItInheritsNoDescriptor) {
  const UniqueFd leaked(::open("/dev/zero", O_RDONLY));  // as a careless library would
  const Error error = error_of("ls -l /proc/$$/fd; exit 1");
  EXPECT_TRUE(contains(error.message, "/dev/null")) << error.message;
  EXPECT_FALSE(contains(error.message, "/dev/zero")) << error.message;
}

TEST_F(PtxasTest, TheVersionIsAskedOnce) {
  const std::string count = root_ / "count";
  const auto assembler = open(script("echo x >> '" + count + "'\n" + kToldVersion + "exit 1"));
  ASSERT_TRUE(assembler->identity());
  ASSERT_TRUE(assembler->identity());
  EXPECT_EQ(fs::file_size(count), 2u);
  EXPECT_EQ(assembler->identity()->substr(0, 16), "release 13.0, V1");
}

TEST_F(PtxasTest, AnAssemblerOfANewerMajorVersionThanTheDriverIsNotUsed) {
  const std::string path = script(kToldVersion + std::string("exit 1"));
  EXPECT_TRUE(open(path, 13000)->identity());
  EXPECT_TRUE(open(path, 14020)->identity());
  const auto refused = open(path, 12090)->identity();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kNotSupported);
  EXPECT_TRUE(contains(refused.error().message, "of CUDA 13")) << refused.error().message;
}

TEST_F(PtxasTest, WhatDoesNotSayItsVersionIsNotUsed) {
  for (const char* text : {"echo hello", "exit 0", "echo release 13.0; exit 1", "kill -9 $$"}) {
    const auto assembler = open(script(text));
    EXPECT_EQ(assembler->identity().error().code, ErrorCode::kNotSupported) << text;
    EXPECT_EQ(assembler->compile(kGood).error().code, ErrorCode::kNotSupported) << text;
  }
}

TEST_F(PtxasTest, ASettingThatNamesNoProgramIsNotReplacedByAnother) {
  std::ofstream(root_ / "text") << "not a program";
  for (const fs::path& path : {root_ / "nothing", root_ / "text", root_}) {
    const auto found = find_ptxas(path);
    ASSERT_FALSE(found);
    EXPECT_EQ(found.error().code, ErrorCode::kNotSupported);
    EXPECT_TRUE(contains(found.error().message, path.string())) << found.error().message;
  }
}

TEST_F(PtxasTest, CudaHomeComesBeforePath) {
  const std::string home = script("", "home/bin");
  const std::string path = script("", "path");
  const Variable search("PATH", (":relative:" + (root_ / "nothing").string() + ":" +
                                 fs::path(path).parent_path().string())
                                    .c_str());
  {
    const Variable cuda("CUDA_HOME", (root_ / "home").c_str());
    EXPECT_EQ(find_ptxas("").value(), home);
    EXPECT_EQ(find_ptxas(path).value(), path);
  }
  const Variable cuda("CUDA_HOME", nullptr);
  EXPECT_EQ(find_ptxas("").value(), path);
}

TEST_F(PtxasTest, WhatAKilledProcessLeftIsRemovedAfterAnHour) {
  const fs::path old = root_ / "tmp/slate-ptxas-abcdef";
  const fs::path young = root_ / "tmp/slate-ptxas-ghijkl";
  const fs::path strange = root_ / "tmp/somebody-elses";
  for (const fs::path& each : {old, young, strange}) fs::create_directory(each);
  const auto two_hours_ago = fs::file_time_type::clock::now() - std::chrono::hours(2);
  for (const fs::path& each : {old, strange}) fs::last_write_time(each, two_hours_ago);
  WorkDirectory::remove_leftovers();
  EXPECT_FALSE(fs::exists(old));
  EXPECT_TRUE(fs::remove(young));
  EXPECT_TRUE(fs::remove(strange));
}

TEST(PtxArchitectureTest, TheLetterIsTheTargets) {
  const auto of = [](std::string_view target) {
    return architecture_for(".version 8.0\n.target " + std::string(target) + "\n", 9, 0);
  };
  EXPECT_EQ(of("sm_90"), "sm_90");
  EXPECT_EQ(of("sm_75"), "sm_90");
  EXPECT_EQ(of("sm_90a"), "sm_90a");
  EXPECT_EQ(of("sm_90a, debug"), "sm_90a");
  EXPECT_EQ(of("sm_90a,texmode_independent"), "sm_90a");
  EXPECT_EQ(of("sm_90/* sm_90a */"), "sm_90");
  EXPECT_EQ(of("sm_100f"), "sm_90f");
}

TEST(PtxArchitectureTest, CommentsAreNoTargets) {
  EXPECT_EQ(architecture_for("// .target sm_90a\n/* .target sm_90a */.version 8.0 .target sm_80\n",
                             10, 3),
            "sm_103");
  EXPECT_EQ(architecture_for("// .version 8.0", 9, 0), "sm_90");
  EXPECT_EQ(architecture_for("/* open", 9, 0), "sm_90");
  EXPECT_EQ(architecture_for("", 9, 0), "sm_90");
}

class DriverCacheTest : public PtxasTest {
 protected:
  DriverCacheTest()
      : path_("CUDA_CACHE_PATH", nullptr),
        disabled_("CUDA_CACHE_DISABLE", nullptr),
        size_("CUDA_CACHE_MAXSIZE", nullptr) {}

  const fs::path place_ = root_ / "cache/slate/driver";

 private:
  Variable path_, disabled_, size_;
};

TEST_F(DriverCacheTest, IsAPrivateDirectoryOfTheSizeAsked) {
  set_driver_cache(place_, 1000);
  EXPECT_EQ(std::string(::getenv("CUDA_CACHE_PATH")), place_);
  EXPECT_STREQ(::getenv("CUDA_CACHE_MAXSIZE"), "1000");
  EXPECT_EQ(fs::status(place_).permissions(), fs::perms::owner_all);
  EXPECT_EQ(fs::status(place_.parent_path()).permissions(), fs::perms::owner_all);
}

TEST_F(DriverCacheTest, IsNeverLargerThanTheDriverKnows) {
  set_driver_cache(place_, std::uint64_t{1} << 40);
  EXPECT_STREQ(::getenv("CUDA_CACHE_MAXSIZE"), "4294967296");
}

TEST_F(DriverCacheTest, WhatTheAdministratorSetStays) {
  for (const char* name : {"CUDA_CACHE_PATH", "CUDA_CACHE_DISABLE"}) {
    const Variable set(name, "1");
    set_driver_cache(place_, 1000);
    EXPECT_STREQ(::getenv(name), "1");
    EXPECT_EQ(::getenv("CUDA_CACHE_MAXSIZE"), nullptr);
    EXPECT_FALSE(fs::exists(place_));
  }
  const Variable size("CUDA_CACHE_MAXSIZE", "77");
  set_driver_cache(place_, 1000);
  EXPECT_STREQ(::getenv("CUDA_CACHE_MAXSIZE"), "77");
  EXPECT_NE(::getenv("CUDA_CACHE_PATH"), nullptr);
}

TEST_F(DriverCacheTest, ADirectoryThatOthersMayWriteToIsNotUsed) {
  fs::create_directories(place_);
  fs::permissions(place_, fs::perms::all);
  set_driver_cache(place_, 1000);
  EXPECT_EQ(::getenv("CUDA_CACHE_PATH"), nullptr);
  fs::permissions(place_, fs::perms::owner_all);
  fs::permissions(place_.parent_path(), fs::perms::all);
  set_driver_cache(place_, 1000);
  EXPECT_EQ(::getenv("CUDA_CACHE_PATH"), nullptr);
}

TEST_F(DriverCacheTest, WithoutACacheNothingIsSet) {
  set_driver_cache(place_, 0);
  set_driver_cache("", 1000);
  EXPECT_EQ(::getenv("CUDA_CACHE_PATH"), nullptr);
  EXPECT_FALSE(fs::exists(place_));
}

}  // namespace
}  // namespace slate::cuda
