// slate-inject in this process, on real files: PTX that nvcc wrote, fat binaries, sources.
#include "tools/inject_command.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/unit/tools/temporary_directory.h"
#include "tools/inject_report.h"

namespace slate::tools {
namespace {

using nlohmann::json;
using Words = std::vector<std::string>;

struct Answer {
  int status = 0;
  std::string out;
  std::string err;
};

Answer inject(const Words& arguments) {
  std::ostringstream out, err;
  const auto request = parse_inject_options(arguments, out, err);
  const int status = request ? run_inject(*request, out, err) : request.error();
  return {status, out.str(), err.str()};
}

std::string golden(const std::string& name) {
  return std::string(SLATE_GOLDEN) + "/kernels/" + name;
}
std::string fat_binary(const std::string& name) {
  return std::string(FATBINS) + "/" + name + ".fatbin";
}
bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

/// Two kernels, one of them an instance of a template: ns::scale<float>(float*) and plain.
constexpr const char* kTwoKernels = R"(.version 9.0
.target sm_90
.address_size 64
.visible .entry _ZN2ns5scaleIfEEvPT_(.param .u64 p)
{
	.reg .b32 %r<2>;
	mov.u32 %r1, %ctaid.x;
	ret;
}
.visible .entry plain()
{
	ret;
}
)";

TEST(InjectOptionsTest, WrongCommandLinesAreToldAndEndWith64) {
  const std::string map = golden("map.ptx");
  for (const Words& wrong : {Words{},
                             {"--form", "native", map},
                             {"--form"},
                             {"--nosuch", map},
                             {"--max-registers", "23", map},
                             {"--max-registers", "many", map},
                             {"--image", "-1", map},
                             {"--arch", "7", map},
                             {map, map},
                             {"--json", map},
                             {"--summary", "--form", "slice", map},
                             {"--mangled", "--form", "worker", map},
                             {"--max-registers", "32", "--form", "slice", map},
                             {"--max-registers", "32", "--form", "analyse", map}}) {
    const Answer answer = inject(wrong);
    EXPECT_EQ(answer.status, kUsage) << testing::PrintToString(wrong);
    EXPECT_FALSE(answer.err.empty()) << testing::PrintToString(wrong);
    EXPECT_TRUE(answer.out.empty()) << testing::PrintToString(wrong);
  }
}

TEST(InjectOptionsTest, HelpAndVersionEndWith0) {
  const Answer help = inject({"--help"});
  EXPECT_EQ(help.status, 0);
  for (const char* part : {"--form", "--output", "--kernel", "--image", "--max-registers", "--arch",
                           "-I", "-D", "--json", "--summary", "--mangled", "OUT.0"}) {
    EXPECT_TRUE(has(help.out, part)) << part;
  }
  const Answer version = inject({"--version"});
  EXPECT_EQ(version.status, 0);
  EXPECT_EQ(version.out, "slate-inject " SLATE_VERSION "\n");
}

TEST(InjectOptionsTest, OptionsThatTakeOneValueLeaveTheFileAlone) {
  std::ostringstream out, err;
  const auto request =
      parse_inject_options({"--kernel", "a", "--kernel", "b", "-I", "x", "-Iy", "-DN=4", "-D", "M",
                            "--arch", "80", "--image", "2", "f.cu"},
                           out, err);
  ASSERT_TRUE(request) << err.str();
  EXPECT_EQ(request->files, Words{"f.cu"});
  EXPECT_EQ(request->kernels, (Words{"a", "b"}));
  EXPECT_EQ(request->include_directories, (Words{"x", "y"}));
  EXPECT_EQ(request->macros, (Words{"N=4", "M"}));
  EXPECT_EQ(request->architecture, 80u);
  EXPECT_EQ(request->image, 2u);
}

TEST(InjectTest, TheOriginalIsKeptAndTheFormsStandBehindIt) {
  const std::string original = read_file(golden("map.ptx"));
  const struct {
    const char* form;
    bool worker, slice, profile;
  } cases[] = {{"worker", true, false, false},
               {"slice", false, true, false},
               {"profile", false, false, true},
               {"all", true, true, true}};
  for (const auto& [form, worker, slice, profile] : cases) {
    const Answer answer = inject({"--form", form, golden("map.ptx")});
    EXPECT_EQ(answer.status, 0) << answer.err;
    EXPECT_TRUE(answer.out.starts_with(original)) << form;
    EXPECT_EQ(has(answer.out, ".entry map__slate_worker("), worker) << form;
    EXPECT_EQ(has(answer.out, ".entry map__slate_slice("), slice) << form;
    EXPECT_EQ(has(answer.out, ".entry map__slate_profile("), profile) << form;
  }
  EXPECT_EQ(inject({golden("map.ptx")}).out, inject({"--form", "all", golden("map.ptx")}).out);
}

TEST(InjectTest, AFormThatIsNotLegalIsLeftOutAndTheReasonIsToldOnce) {
  const Answer answer = inject({golden("early_return_shuffle.ptx")});
  EXPECT_EQ(answer.status, 0);
  EXPECT_FALSE(has(answer.out, "__slate_worker"));
  EXPECT_TRUE(has(answer.out, "__slate_slice"));
  EXPECT_TRUE(has(answer.err, "early_return_shuffle gets no worker form: line ")) << answer.err;
}

TEST(InjectTest, MostRegistersConcernTheWorkerFormAlone) {
  const Answer answer = inject({"--max-registers", "40", golden("map.ptx")});
  ASSERT_EQ(answer.status, 0) << answer.err;
  const std::size_t limit = answer.out.find(".maxnreg 40");
  ASSERT_NE(limit, std::string::npos);
  EXPECT_GT(limit, answer.out.find("map__slate_worker"));
  EXPECT_LT(limit, answer.out.find("map__slate_slice"));
  EXPECT_EQ(answer.out.find(".maxnreg", limit + 1), std::string::npos);
}

TEST(InjectTest, KernelsAreChosenByAnyOfTheirNames) {
  const TemporaryDirectory directory;
  const std::string file = directory.write("two.ptx", kTwoKernels);
  for (const char* name : {"_ZN2ns5scaleIfEEvPT_", "void ns::scale<float>(float*)",
                           "void ns::scale<float>", "ns::scale<float>", "ns::scale"}) {
    const Answer answer = inject({"--kernel", name, file});
    EXPECT_EQ(answer.status, 0) << name << ": " << answer.err;
    EXPECT_TRUE(answer.out.starts_with(kTwoKernels));
    EXPECT_TRUE(has(answer.out, "_ZN2ns5scaleIfEEvPT___slate_worker("));
    EXPECT_TRUE(has(answer.out, "_ZN2ns5scaleIfEEvPT___slate_slice("));
    EXPECT_FALSE(has(answer.out, "plain__slate")) << name;
  }
  const Answer both = inject({"--kernel", "plain", "--kernel", "ns::scale", file});
  EXPECT_EQ(both.out, inject({file}).out);
}

TEST(InjectTest, AKernelThatIsNotThereIsAnErrorAndNothingIsWritten) {
  const TemporaryDirectory directory;
  const std::string file = directory.write("two.ptx", kTwoKernels);
  for (const char* name : {"scale", "ns::scale<double>", "plain_"}) {
    const Answer answer =
        inject({"--kernel", name, "--kernel", "plain", "-o", directory.file("out"), file});
    EXPECT_EQ(answer.status, 1) << name;
    EXPECT_EQ(answer.err, std::string("slate-inject: no kernel is called ") + name + "\n");
  }
  EXPECT_EQ(directory.names(), Words{"two.ptx"});
}

TEST(InjectTest, TheOutputIsOneFileWithNothingBesideIt) {
  const TemporaryDirectory directory;
  const std::string out = directory.write("out.ptx", "what was there before");
  const Answer answer = inject({"-o", out, golden("map.ptx")});
  EXPECT_EQ(answer.status, 0) << answer.err;
  EXPECT_TRUE(answer.out.empty());
  EXPECT_EQ(read_file(out), inject({golden("map.ptx")}).out);
  EXPECT_EQ(directory.names(), Words{"out.ptx"});
}

TEST(InjectTest, AFileThatDoesNotParseLeavesTheOutputAsItWas) {
  const TemporaryDirectory directory;
  const std::string out = directory.write("out.ptx", "what was there before");
  const std::string bad = directory.write("bad.ptx", ".version 9.0\n.target sm_90\n.visible {");
  const Answer answer = inject({"-o", out, bad});
  EXPECT_EQ(answer.status, 1);
  EXPECT_TRUE(answer.err.starts_with("slate-inject: " + bad + ": line 3: ")) << answer.err;
  EXPECT_EQ(read_file(out), "what was there before");
}

TEST(InjectTest, AnOutputThatCannotBeWrittenIsNamed) {
  const TemporaryDirectory directory;
  for (const std::string& out : {directory.file("nosuch/out.ptx"), directory.file(".")}) {
    const Answer answer = inject({"-o", out, golden("map.ptx")});
    EXPECT_EQ(answer.status, 1) << out;
    EXPECT_TRUE(answer.err.starts_with("slate-inject: " + out + ": ")) << answer.err;
  }
  EXPECT_TRUE(directory.names().empty());
}

TEST(InjectTest, SeveralImagesNeedNumberedFilesOrAChoice) {
  const TemporaryDirectory directory;
  const Answer undecided = inject({fat_binary("many")});
  EXPECT_EQ(undecided.status, kUsage);
  EXPECT_TRUE(has(undecided.err, "holds 3 PTX images")) << undecided.err;
  EXPECT_TRUE(undecided.out.empty());

  const Answer all = inject({"-o", directory.file("out"), fat_binary("many")});
  EXPECT_EQ(all.status, 0) << all.err;
  Words names = directory.names();
  std::ranges::sort(names);
  EXPECT_EQ(names, (Words{"out.0", "out.1", "out.2"}));

  const Answer one = inject({"--image", "1", fat_binary("many")});
  EXPECT_EQ(one.status, 0) << one.err;
  EXPECT_EQ(one.out, read_file(directory.file("out.1")));
  EXPECT_TRUE(has(one.out, "__slate_worker"));

  const Answer beyond = inject({"--image", "3", fat_binary("many")});
  EXPECT_EQ(beyond.status, 1);
  EXPECT_TRUE(has(beyond.err, "no image 3, there are 3")) << beyond.err;
}

TEST(InjectTest, FilesWithoutPtxAreNamedWithWhatTheyHold) {
  const TemporaryDirectory directory;
  for (const auto& [file, words] :
       {std::pair{directory.file("nosuch.ptx"), "No such file"},
        {directory.file("nosuch.cu"), "No such file"},
        {directory.file(""), "is a directory"},
        {directory.write("notes.txt", "nothing"), "neither PTX nor a fat binary"},
        {fat_binary("elf_only"), "1 fat binaries, none with PTX"}}) {
    const Answer answer = inject({file});
    EXPECT_EQ(answer.status, 1) << file;
    EXPECT_TRUE(answer.err.starts_with("slate-inject: " + file + ": ")) << answer.err;
    EXPECT_TRUE(has(answer.err, words)) << answer.err;
    EXPECT_TRUE(answer.out.empty());
  }
}

class InjectSourceTest : public testing::Test {
 protected:
  void SetUp() override {
    const Answer answer = inject({directory_.write("empty.cu", "__global__ void k() {}\n")});
    if (has(answer.err, "libnvrtc")) GTEST_SKIP() << answer.err;
    ASSERT_EQ(answer.status, 0) << answer.err;
  }
  const TemporaryDirectory directory_;
};

TEST_F(InjectSourceTest, SourcesAreCompiledWithTheirHeadersMacrosAndArchitecture) {
  std::filesystem::create_directory(directory_.file("headers"));
  directory_.write("headers/far.h", "#define FAR 7\n");
  directory_.write("near.h", "#define NEAR 5\n");
  const std::string file =
      directory_.write("k.cu",
                       "#include \"near.h\"\n#include \"far.h\"\n"
                       "extern \"C\" __global__ void k(int* p) { *p = NEAR * FAR * MORE; }\n"
                       "int main() { return 0; }\n");
  const Answer answer =
      inject({"-I", directory_.file("headers"), "-DMORE=11", "--arch", "80", file});
  ASSERT_EQ(answer.status, 0) << answer.err;
  EXPECT_TRUE(has(answer.out, ".target sm_80"));
  EXPECT_TRUE(has(answer.out, "385"));
  EXPECT_TRUE(has(answer.out, "k__slate_worker("));

  const Answer without = inject({"-DMORE=11", file});
  EXPECT_EQ(without.status, 1);
  EXPECT_TRUE(has(without.err, "FAR")) << without.err;  // nobody defined it
}

TEST_F(InjectSourceTest, ErrorsNameTheAuthorsFileAndLine) {
  const std::string file = directory_.write("k.cu", "\n__global__ void k() { wrong(); }\n");
  const Answer answer = inject({file});
  EXPECT_EQ(answer.status, 1);
  EXPECT_TRUE(has(answer.err, file + "(2): error: ")) << answer.err;
}

TEST(InjectFenceTest, AllFormsGetTheFenceAndTheRefusedAreNamed) {
  const Answer answer = inject({"--fence", golden("map.ptx")});
  ASSERT_EQ(answer.status, 0) << answer.err;
  EXPECT_TRUE(has(answer.out, "map__slate_worker("));
  EXPECT_TRUE(has(answer.out, "__slate_fence["));
  EXPECT_EQ(answer.err, "");
  const Answer refused = inject({"--fence", golden("print.ptx")});
  EXPECT_EQ(refused.status, 0);
  EXPECT_TRUE(has(refused.err, "print gets no fence, and an empty body: line 75: calls vprintf"))
      << refused.err;
  const Answer linked = inject({"--fence", "--builtins", golden("print.ptx")});
  EXPECT_EQ(linked.err, "");
}

TEST(InjectFenceTest, AProgramWithOurNamesIsRefused) {
  const TemporaryDirectory directory;
  std::string text = kTwoKernels;
  text += "// __slate_x\n";
  const Answer answer = inject({"--fence", directory.write("names.ptx", text)});
  EXPECT_EQ(answer.status, 1);
  EXPECT_TRUE(has(answer.err, "cannot be fenced: has names that begin with __slate_"))
      << answer.err;
}

TEST(InjectAnalyseTest, EveryKernelIsARowAndTheReasonsAreCounted) {
  const Answer answer = inject({"--form", "analyse", golden("early_return_barrier.ptx"),
                                golden("early_return_drain.ptx"),
                                golden("early_return_shuffle.ptx"), golden("constants.ptx")});
  ASSERT_EQ(answer.status, 0) << answer.err;
  for (const char* part :
       {"yes    yes   yes  -      -    yes   yes            2    512     5/8  "
        "early_return_barrier\n",
        "yes    yes   -    yes    -    yes   yes            2    512     6/9  early_return_drain\n",
        "-      yes   -    -      -    yes   yes            0      0     2/2  "
        "early_return_shuffle  # no worker: ",
        "void constants<2u>(unsigned int const*, unsigned int*, unsigned int)  # no restart: line ",
        "restartable where all pointers lead to allocations of their own: 3 (75.0 %)\nfence 4 ",
        "     1  no restart an atomic operation on variable NAME\n",
        "4 files, 4 kernels: worker 3 (75.0 %), worker or slice 4 (100.0 %), native only 0",
        "     1  no worker  some lanes may have left the kernel before this shfl"}) {
    EXPECT_TRUE(has(answer.out, part)) << part << " in\n" << answer.out;
  }
}

TEST(InjectAnalyseTest, MangledNamesAreKeptOnRequest) {
  const Answer answer = inject({"--form", "analyse", "--mangled", golden("constants.ptx")});
  EXPECT_TRUE(has(answer.out, "  _Z9constantsILj2EEvPKjPjj  # ")) << answer.out;
  EXPECT_FALSE(has(answer.out, "constants<"));
}

TEST(InjectAnalyseTest, AKernelThatStaysNativeIsCountedOnceUnderOneReason) {
  const TemporaryDirectory directory;
  std::string text = kTwoKernels;
  text.replace(text.find("sm_90"), 5, "sm_60");
  const Answer answer = inject({"--form", "analyse", directory.write("old.ptx", text)});
  EXPECT_EQ(answer.status, 0);
  EXPECT_TRUE(has(answer.out,
                  "1 file, 2 kernels: worker 0 (0.0 %), worker or slice 0 (0.0 %), "
                  "native only 2 (100.0 %)\n"))
      << answer.out;
  EXPECT_TRUE(has(answer.out, "\n     2  native     written for sm_60")) << answer.out;
  EXPECT_TRUE(has(answer.out, "  plain  # native only: written for sm_60"));
  EXPECT_TRUE(has(answer.out, "\nfence 0 (0.0 %): 0 accesses, 0 proven, 0 covered, 0 checks\n"));
  EXPECT_TRUE(has(answer.out, "; no fence: is written for a target before sm_70\n"));
  EXPECT_TRUE(has(answer.out, "     2  no fence   is written for a target before sm_70\n"));
}

TEST(InjectAnalyseTest, TheSummaryAloneHasNoRows) {
  const Answer answer = inject({"--form", "analyse", "--summary", golden("map.ptx")});
  EXPECT_EQ(answer.out,
            "1 file, 1 kernel: worker 1 (100.0 %), worker or slice 1 (100.0 %), native only 0 "
            "(0.0 %)\n"
            "restartable where all pointers lead to allocations of their own: 1 (100.0 %)\n"
            "fence 1 (100.0 %): 2 accesses, 0 proven, 0 covered, 2 checks\n");
}

TEST(InjectAnalyseTest, JsonSaysTheSame) {
  const Answer answer =
      inject({"--form", "analyse", "--json", golden("early_return_shuffle.ptx"), "nosuch.ptx"});
  EXPECT_EQ(answer.status, 1);
  const json report = json::parse(answer.out);
  const json& kernel = report.at("files").at(0).at("images").at(0).at("kernels").at(0);
  EXPECT_EQ(kernel.at("name"), "early_return_shuffle");
  EXPECT_EQ(kernel.at("worker").at("legal"), false);
  EXPECT_TRUE(kernel.at("worker").at("why_not").get<std::string>().starts_with("line "));
  EXPECT_EQ(kernel.at("slice").at("legal"), true);
  EXPECT_TRUE(kernel.at("slice").at("why_not").is_null());
  EXPECT_TRUE(kernel.at("undefined").is_null());
  EXPECT_EQ(kernel.at("drains"), false);
  EXPECT_EQ(kernel.at("late_exits"), false);
  EXPECT_EQ(kernel.at("independent_blocks"), true);
  EXPECT_EQ(kernel.at("restart"), json({{"restartable", true}, {"why_not", nullptr}}));
  EXPECT_EQ(kernel.at("reach").at("from_arguments"), true);
  const json& memory = kernel.at("reach").at("memory");
  ASSERT_EQ(memory.size(), 2u);
  EXPECT_EQ(memory.at(0).at("memory"), "parameter 0");
  EXPECT_EQ(memory.at(0).at("parameters"), json({{{"offset", 0}, {"extent", 0}}}));
  EXPECT_TRUE(memory.at(0).at("read").is_number());
  EXPECT_TRUE(memory.at(0).at("written").is_null());
  EXPECT_TRUE(memory.at(1).at("written").is_number());
  EXPECT_EQ(report.at("files").at(0).at("images").at(0).at("target"), "sm_90");
  EXPECT_TRUE(has(report.at("files").at(1).at("errors").at(0), "nosuch.ptx"));
  const json& summary = report.at("summary");
  EXPECT_EQ(summary.at("files"), 2);
  EXPECT_EQ(summary.at("files_with_errors"), 1);
  EXPECT_EQ(summary.at("kernels"), 1);
  EXPECT_EQ(summary.at("worker"), 0);
  EXPECT_EQ(summary.at("worker_or_slice"), 1);
  EXPECT_EQ(summary.at("native_only"), 0);
  EXPECT_EQ(summary.at("restartable"), 1);
  EXPECT_EQ(summary.at("fenced"), 1);
  EXPECT_EQ(summary.at("reasons").at(0).at("refused"), "worker");
  EXPECT_EQ(summary.at("reasons").at(0).at("kernels"), 1);

  const Answer brief = inject({"--form", "analyse", "--json", "--summary", golden("map.ptx")});
  EXPECT_FALSE(json::parse(brief.out).contains("files"));
}

TEST(InjectAnalyseTest, ARegisterThatNothingWritesIsNamedWithItsLine) {
  const Answer table = inject({"--form", "analyse", golden("unwritten.ptx")});
  EXPECT_TRUE(has(table.out, "native only: line 41: may read sum before")) << table.out;
  const Answer answer = inject({"--form", "analyse", "--json", golden("unwritten.ptx")});
  const json kernel =
      json::parse(answer.out).at("files").at(0).at("images").at(0).at("kernels").at(0);
  EXPECT_EQ(kernel.at("undefined"), json({{"register", "sum"}, {"line", 41}, {"surely", true}}));
  for (const char* form : {"worker", "slice", "profile"}) {
    EXPECT_FALSE(kernel.at(form).at("legal").get<bool>()) << form;
  }
}

TEST(InjectAnalyseTest, AFileThatFailsDoesNotStopTheOthers) {
  const TemporaryDirectory directory;
  const std::string bad = directory.write("bad.ptx", ".version 9.0\n.target sm_90\n.visible {");
  const Answer answer = inject({"--form", "analyse", bad, golden("map.ptx")});
  EXPECT_EQ(answer.status, 1);
  EXPECT_TRUE(answer.err.starts_with("slate-inject: " + bad + ": line 3")) << answer.err;
  EXPECT_TRUE(has(answer.out, "2 files, 1 kernel: worker 1"));
  EXPECT_TRUE(has(answer.out, "1 file with errors\n")) << answer.out;
}

TEST(InjectAnalyseTest, KernelsAndImagesCanBeChosenAndTheReportGoesToAFile) {
  const TemporaryDirectory directory;
  const std::string file = directory.write("two.ptx", kTwoKernels);
  const Answer answer = inject({"--form", "analyse", "--kernel", "plain", "-o",
                                directory.file("report"), file, golden("map.ptx")});
  EXPECT_EQ(answer.status, 0) << answer.err;
  EXPECT_TRUE(answer.out.empty());
  const std::string report = read_file(directory.file("report"));
  EXPECT_TRUE(has(report, "2 files, 1 kernel:")) << report;
  EXPECT_FALSE(has(report, "scale"));

  const Answer every = inject({"--form", "analyse", fat_binary("many")});
  EXPECT_TRUE(has(every.out, "(image 2, sm_")) << every.out;
  EXPECT_TRUE(has(every.out, "1 file, 3 kernels"));
  const Answer one = inject({"--form", "analyse", "--image", "2", fat_binary("many")});
  EXPECT_TRUE(has(one.out, "1 file, 1 kernel:"));
}

TEST(InjectAnalyseTest, ReasonsAreCountedWithoutLinesAndNumbers) {
  EXPECT_EQ(general_reason("line 12: before this shfl"), "before this shfl");
  EXPECT_EQ(general_reason("its 49152 bytes leave no room for the 64 of it"),
            "its N bytes leave no room for the N of it");
  EXPECT_EQ(general_reason("has 32-bit addresses"), "has 32-bit addresses");
  EXPECT_EQ(general_reason("written for sm_60; none before sm_70"),
            "written for sm_60; none before sm_70");
  EXPECT_EQ(general_reason("line 3: may read %f12 before anything is written to it"),
            "may read a register before anything is written to it");
  EXPECT_EQ(general_reason(""), "");
}

#ifdef SLATE_PROGRAMS
TEST(InjectProgramTest, ABuiltProgramsKernelsGetTheirForms) {
  const std::string program = std::string(SLATE_PROGRAMS) + "/sgemm";
  const Answer answer = inject({program});
  ASSERT_EQ(answer.status, 0) << answer.err;
  EXPECT_TRUE(has(answer.out, "__slate_worker("));
  const Answer analysis = inject({"--form", "analyse", program});
  EXPECT_TRUE(has(analysis.out, "sgemm")) << analysis.out;
}
#endif

TEST(InjectProgramTest, TheToolItselfEndsWithTheStatus) {
  const auto status = [](const std::string& argument) {
    const std::string command =
        "'" + std::string(SLATE_INJECT) + "' '" + argument + "' >/dev/null 2>&1";
    const int result = std::system(command.c_str());
    return WIFEXITED(result) ? WEXITSTATUS(result) : -1;
  };
  EXPECT_EQ(status(golden("map.ptx")), 0);
  EXPECT_EQ(status("nosuch.ptx"), 1);
  EXPECT_EQ(status("--nosuch"), 64);
  EXPECT_EQ(status("--version"), 0);
}

}  // namespace
}  // namespace slate::tools
