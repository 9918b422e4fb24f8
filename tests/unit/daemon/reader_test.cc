// Readers of strangers' code: what they answer, what they may not do, and when they are given up.
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <string>

#include "daemon/dispatch/fields.h"
#include "daemon/reader/reader_main.h"
#include "daemon/reader/sandbox.h"
#include "daemon/reader/text_reader.h"

namespace slate::daemon {
namespace {

constexpr char kReadText[] = R"(.version 8.0
.target sm_90
.address_size 64
.global .align 4 .b8 table[16] = {1, 2, 3};
.global .align 8 .b8 elsewhere[64] = {7, 8};
.visible .entry k(.param .u64 out)
{
  .reg .b64 %rd<3>;
  .reg .b32 %r<3>;
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %ctaid.x;
  st.global.u32 [%rd1], %r1;
  ld.global.u32 %r2, [elsewhere];
  st.global.u32 [table], %r2;
  ret;
}
)";

/// A text that takes seconds to read.
std::string long_text() {
  std::string text = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k()\n{\n";
  text += "  .reg .b32 %r<9>;\n";
  for (int i = 0; i < 200'000; ++i) text += "  add.s32 %r1, %r2, %r3;\n";
  return text + "  ret;\n}\n";
}

ReaderSettings process_settings() {
  return {.program = SLATED_PATH};
}

std::unique_ptr<TextReader> open(const ReaderSettings& settings,
                                 std::string_view text = kReadText) {
  auto reader = TextReader::open(settings, text, nullptr);
  EXPECT_TRUE(reader) << reader.error().message;
  return reader ? std::move(*reader) : nullptr;
}

class ReaderTest : public testing::TestWithParam<bool> {
 protected:
  std::unique_ptr<TextReader> reader(std::string_view text = kReadText) {
    return open(GetParam() ? process_settings() : ReaderSettings{}, text);
  }
};

TEST_P(ReaderTest, TellsWhatTheVariablesTake) {
  const auto here = reader();
  ASSERT_TRUE(here);
  const auto bytes = here->variable_bytes(nullptr);
  ASSERT_TRUE(bytes) << bytes.error().message;
  EXPECT_EQ(*bytes, 256u);
}

TEST_P(ReaderTest, PlacesVariablesAndTellsTheirContents) {
  const auto here = reader();
  ASSERT_TRUE(here);
  const injector::PlacedVariable placed[] = {{"elsewhere", 0x7000}};
  const auto result = here->place_variables(placed, nullptr);
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->text.find("elsewhere"), std::string::npos);
  EXPECT_NE(result->text.find("table"), std::string::npos);
  ASSERT_EQ(result->contents.size(), 1u);
  EXPECT_EQ(result->contents[0].bytes, 64u);
  EXPECT_EQ(result->contents[0].beginning[1], std::byte{8});
}

TEST_P(ReaderTest, WritesTheFormsOfOneKernelAfterTheOther) {
  const auto here = reader();
  ASSERT_TRUE(here);
  const auto module = ptx::parse(kReadText);
  ASSERT_TRUE(module);
  for (const bool profile : {false, true}) {
    const FormRequest request{.kernel = "k", .profile = profile, .assembled = true};
    const auto text = here->write_forms(request, nullptr);
    ASSERT_TRUE(text) << text.error().message;
    const auto expected = write_forms(**module, request);
    ASSERT_TRUE(expected);
    EXPECT_EQ(text->ptx, expected->ptx);
    EXPECT_EQ(pack(*text), pack(*expected)) << "all that is known of the forms";
    EXPECT_EQ(text->forms.profile.empty(), !profile);
  }
  const auto none = here->write_forms({.kernel = "nobody"}, nullptr);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ErrorCode::kSymbolNotFound);
  EXPECT_TRUE(here->is_good()) << "an error of the text is an answer";
}

TEST_P(ReaderTest, ErrorsOfTheTextKeepTheirWords) {
  const auto here = reader("this is no module");
  ASSERT_TRUE(here);
  const auto bytes = here->variable_bytes(nullptr);
  ASSERT_FALSE(bytes);
  EXPECT_EQ(bytes.error().code, ErrorCode::kInvalidPtx);
  EXPECT_NE(bytes.error().message.find("line 1"), std::string::npos) << bytes.error().message;
}

INSTANTIATE_TEST_SUITE_P(HereAndInAProcess, ReaderTest, testing::Bool(), [](const auto& how) {
  return std::string(how.param ? "process" : "here");
});

TEST(ReaderProcessTest, ATextThatTakesTooMuchProcessorTimeIsALimit) {
  ReaderSettings settings = process_settings();
  settings.most_cpu = std::chrono::milliseconds(0);
  // The process has taken more to begin with.
  const auto reader = TextReader::open(settings, long_text(), nullptr);
  ASSERT_FALSE(reader && (*reader)->write_forms({.kernel = "k"}, nullptr));
  if (!reader) {
    EXPECT_EQ(reader.error().code, ErrorCode::kLimit) << reader.error().message;
  }
}

TEST(ReaderProcessTest, ATextThatTakesTooLongIsGivenUp) {
  ReaderSettings settings = process_settings();
  settings.most_wait = std::chrono::milliseconds(0);
  const auto reader = TextReader::open(settings, kReadText, nullptr);
  ASSERT_FALSE(reader);
  EXPECT_EQ(reader.error().code, ErrorCode::kIo) << "another time it may do";
}

TEST(ReaderProcessTest, TextThatNobodyWantsAnyMoreIsGivenUp) {
  const auto reader = open(process_settings(), long_text());
  ASSERT_TRUE(reader);
  int asked = 0;
  const auto forms = reader->write_forms({.kernel = "k"}, [&] { return ++asked > 2; });
  ASSERT_FALSE(forms);
  EXPECT_EQ(forms.error().code, ErrorCode::kIo);
  EXPECT_FALSE(reader->is_good());
  EXPECT_FALSE(reader->variable_bytes(nullptr)) << "it has ended";
}

TEST(ReaderProcessTest, AProgramThatIsNoReaderIsAnError) {
  const auto reader = TextReader::open({.program = "/bin/true"}, kReadText, nullptr);
  ASSERT_FALSE(reader);
  EXPECT_EQ(reader.error().code, ErrorCode::kIo);
}

// What a reader that a text has taken over might send.

std::vector<std::byte> answer_with(const FormText& text) {
  FieldWriter writer;
  writer(ErrorCode::kNone, std::string(), pack(text));
  return writer.take();
}

TEST(ReaderAnswerTest, CutAnswersAreRefused) {
  Reading reading(kReadText);
  const FormRequest request{.kernel = "k"};
  const auto whole = reading.answer(pack(Question{.topic = Topic::kForms, .forms = request}));
  ASSERT_TRUE(unpack_forms(whole, request));
  for (std::size_t size = 0; size < whole.size(); size += 11)
    EXPECT_FALSE(unpack_forms(std::span(whole).first(size), request)) << size;
  auto more = whole;
  more.push_back(std::byte{0});
  EXPECT_FALSE(unpack_forms(more, request));
}

TEST(ReaderAnswerTest, FalseFormsAreRefused) {
  const auto module = ptx::parse(kReadText);
  ASSERT_TRUE(module);
  const FormRequest request{.kernel = "k"};
  const auto good = write_forms(**module, request);
  ASSERT_TRUE(good);
  ASSERT_TRUE(unpack_forms(answer_with(*good), request));
  const auto refused = [&](auto&& change) {
    FormText text = *good;
    change(text);
    return !unpack_forms(answer_with(text), request);
  };
  EXPECT_TRUE(refused([](FormText& text) { text.forms.name = "other"; }));
  EXPECT_TRUE(refused([](FormText& text) { text.forms.worker = "k; exit"; }));
  EXPECT_TRUE(refused([](FormText& text) { text.forms.slice = std::string("k\0", 2); }));
  EXPECT_TRUE(refused([](FormText& text) { text.variables = {"a b"}; }));
  EXPECT_TRUE(refused([](FormText& text) { text.ptx += '\0'; }));
  EXPECT_TRUE(refused([](FormText& text) { text.ptx.clear(); }));
  EXPECT_TRUE(refused([](FormText& text) { text.forms.work = {{.flops = -1}}; }));
  EXPECT_TRUE(refused([](FormText& text) { text.forms.analysis.may_fuse = "a\nline"; }));
  EXPECT_TRUE(refused(
      [](FormText& text) { text.forms.analysis.reach.memory.emplace_back().variable = "a b"; }));
  EXPECT_TRUE(refused([](FormText& text) {
    text.forms.analysis.reach.memory.emplace_back().kind =
        injector::ReachedMemory::Kind::kParameters;  // of none
  }));
}

TEST(ReaderAnswerTest, AnErrorSaysNothingOfTheDevice) {
  const auto bytes = unpack_variables(Reading::refusal({ErrorCode::kIllegalAddress, "a\x1b[31m"}));
  ASSERT_FALSE(bytes);
  EXPECT_EQ(bytes.error().code, ErrorCode::kInternal);
  EXPECT_EQ(bytes.error().message, "a?[31m");
}

TEST(ReaderAnswerTest, AFalseNumberOfContentsIsRefused) {
  Reading reading(kReadText);
  const auto answer =
      reading.answer(pack(Question{.topic = Topic::kPlaces, .placed = {{"elsewhere", 0x7000}}}));
  EXPECT_TRUE(unpack_places(answer, 1));
  EXPECT_FALSE(unpack_places(answer, 2));
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

/// Runs `act` in a confined child. Returns as waitpid().
template <typename Act>
int end_of_confined(const Act& act) {
  const pid_t child = ::fork();
  if (child == 0) {
    if (!limit_reader(1 << 20) || !enter_sandbox()) ::_exit(9);
    act();
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return status;
}

bool is_killed(int status) {
  return WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS;
}

TEST(SandboxTest, AConfinedProcessComputesOnly) {
  EXPECT_EQ(end_of_confined([] {
              std::string text(1 << 20, 'a');
              if (text.find('b') != text.npos) ::_exit(1);
            }),
            0);
  EXPECT_TRUE(is_killed(end_of_confined([] { (void)::open("/etc/passwd", O_RDONLY); })));
  EXPECT_TRUE(is_killed(end_of_confined([] { (void)::socket(AF_UNIX, SOCK_STREAM, 0); })));
  EXPECT_TRUE(is_killed(end_of_confined([] { (void)::fork(); })));
  EXPECT_TRUE(is_killed(end_of_confined([] { ::kill(1, SIGTERM); })));
  EXPECT_TRUE(is_killed(end_of_confined([] {
    char* const words[] = {nullptr};
    ::execv("/bin/true", words);
  })));
  EXPECT_TRUE(is_killed(end_of_confined([] {
    (void)::mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  })));
  EXPECT_TRUE(is_killed(end_of_confined([] {
    void* const page =
        ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    (void)::mprotect(page, 4096, PROT_READ | PROT_EXEC);
  })));
}

TEST(SandboxTest, MemoryHasALimit) {
  const int status = end_of_confined([] {
    const std::size_t bytes = reader_memory(1 << 20);
    if (::mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED)
      ::_exit(1);
  });
  EXPECT_EQ(status, 0);
}

TEST(SandboxTest, RootIsGivenUp) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root has something to give up";
  const pid_t child = ::fork();
  if (child == 0) ::_exit(enter_sandbox() ? 0 : 1);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

#endif

}  // namespace
}  // namespace slate::daemon
