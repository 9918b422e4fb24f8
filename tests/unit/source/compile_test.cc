// compile(): NVRTC on what is left, names as nvcc's, messages with the author's lines.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "injector/source/names.h"
#include "injector/source/nvrtc.h"
#include "injector/source/source.h"

namespace slate::source {
namespace {

using Names = std::set<std::string>;

Names entries(std::string_view ptx) {
  const auto list = entries_in(ptx);
  return {list.begin(), list.end()};
}

/// Names in unnamed namespaces, of which each compiler makes its own, without that part.
Names comparable(std::string_view ptx) {
  Names names;
  for (const auto& name : entries(ptx)) {
    const bool unnamed = name.find("_GLOBAL__N_") != std::string::npos;
    names.insert(unnamed ? written_name(name) : name);
  }
  return names;
}

std::string text_of(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

class SourceCompileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const auto nvrtc = Nvrtc::open(); !nvrtc) GTEST_SKIP() << nvrtc.error().message;
  }
  /// Empty, and a failure of the test, where it does not compile.
  static CompiledSource compiled(std::string_view text, const SourceOptions& options = {}) {
    auto result = compile(text, options);
    EXPECT_TRUE(result.has_value()) << result.error().message;
    return result.value_or(CompiledSource{});
  }
  static std::string written(const CompiledSource& source, const std::string& name) {
    for (const auto& [as_written, lowered] : source.kernels) {
      if (as_written == name) return lowered;
    }
    return {};
  }
};

TEST_F(SourceCompileTest, WholeProgramBecomesItsKernels) {
  const auto result = compiled(
      "#include <cstdio>\n#include <vector>\n#include <cstdint>\n#include <algorithm>\n"
      "namespace ns { __global__ void add(uint64_t* p, std::uint32_t n) {\n"
      "  p[0] = std::min(p[1], std::uint64_t{n}); } }\n"
      "extern \"C\" __global__ void plain(float* p) { p[0] = INFINITY; }\n"
      "int main() { std::vector<float> v(3); ns::add<<<1, 2>>>(nullptr, 1); }\n");
  EXPECT_EQ(written(result, "ns::add"), "_ZN2ns3addEPmj");
  EXPECT_EQ(written(result, "plain"), "plain");
  EXPECT_EQ(entries(result.ptx), (Names{"_ZN2ns3addEPmj", "plain"}));
}

TEST_F(SourceCompileTest, MathThatNvrtcLacksInStdIsThere) {
  compiled(
      "#include <cmath>\n__global__ void k(float* p) {\n"
      "  p[0] = std::fmod(p[1], p[2]) + std::fma(p[3], p[4], p[5]) + std::erf(p[6]) + "
      "std::erfc(p[7]); }\n");
}

TEST_F(SourceCompileTest, LaunchedInstancesAreMade) {
  const auto result = compiled(
      "#define LAUNCH(T, n) scale<T, n><<<1, 1>>>((T*)p)\n"
      "template <class T, int n> __global__ void scale(T* p) { *p *= n; }\n"
      "template <class T> void run(void* p) { constexpr int k = 8; scale<T, k><<<1, 1>>>((T*)p); "
      "}\n"
      "template <class T> void run(void* p, int) { scale<T, 16><<<1, 1>>>((T*)p); }\n"
      "void go(void* p) { LAUNCH(float, 2); run<double>(p); run<int>(p, 1); }\n");
  EXPECT_EQ(entries(result.ptx),
            (Names{"_Z5scaleIfLi2EEvPT_", "_Z5scaleIdLi8EEvPT_", "_Z5scaleIiLi16EEvPT_"}));
}

TEST_F(SourceCompileTest, InstancesAskedForAreMadeAndNamed) {
  const auto result = compiled("template <class T> __global__ void scale(T* p) { *p *= 2; }\n",
                               {.instances = {"scale<float>", "scale<long>"}});
  EXPECT_EQ(written(result, "scale<float>"), "_Z5scaleIfEvPT_");
  EXPECT_EQ(written(result, "scale<long>"), "_Z5scaleIlEvPT_");
}

TEST_F(SourceCompileTest, WrongInstanceIsTheCallersError) {
  const auto result = compile("template <class T> __global__ void scale(T* p) { *p *= 2; }\n",
                              {.instances = {"scale<Nothing>"}});
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().code, ErrorCode::kInvalidPtx);
}

TEST_F(SourceCompileTest, HelperThatOnlyLacksAnAnnotationIsTakenIn) {
  const auto result = compiled(
      "int twice(int a) { return 2 * a; }\n__global__ void k(int* p) { *p = twice(*p); }\n");
  EXPECT_EQ(entries(result.ptx), (Names{"_Z1kPi"}));
}

TEST_F(SourceCompileTest, MemberThatDoesNotCompileForTheDeviceIsDropped) {
  compiled(
      "#include <string>\nstruct A { int x; std::string name_of(std::string s) { return s; }\n"
      "  __host__ __device__ void log(std::string s) { }\n  __device__ int get() { return x; } };\n"
      "__global__ void k(A a, int* p) { *p = a.get(); }\n");
}

TEST_F(SourceCompileTest, ErrorsNameTheAuthorsFileAndLine) {
  const auto result = compile(
      "#include <cstdio>\nvoid host() {\n}\n#define TWO_LINES \\\n  1\nint main() { return 0; }\n\n"
      "__global__ void k(int* p) {\n  *p = undefined_name + TWO_LINES;\n}\n",
      {.name = "kernels/broken.cu"});
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().code, ErrorCode::kInvalidPtx);
  EXPECT_EQ(result.error().message,
            "kernels/broken.cu(9): error: identifier \"undefined_name\" is undefined");
}

TEST_F(SourceCompileTest, AssertAndPrintfWork) {
  const auto result = compiled(
      "#include <assert.h>\n#include <stdio.h>\n__global__ void k(int n) { assert(n > 0); "
      "printf(\"%d\", n); }\n");
  EXPECT_NE(result.ptx.find("__assertfail"), std::string::npos);
  EXPECT_NE(result.ptx.find("vprintf"), std::string::npos);
}

TEST_F(SourceCompileTest, ArchitectureAndOptionsReachTheCompiler) {
  const auto result = compiled("__global__ void k(int* p) { *p = N; }\n",
                               {.options = {"-DN=7"}, .architecture = 80});
  EXPECT_NE(result.ptx.find(".target sm_80"), std::string::npos);
}

TEST_F(SourceCompileTest, IdentityTellsOptionsApart) {
  const auto plain = compiler_identity({});
  ASSERT_TRUE(plain.has_value());
  EXPECT_NE(plain->find("nvrtc "), std::string::npos);
  EXPECT_NE(*plain, compiler_identity({.options = {"-DN=1"}}).value());
  EXPECT_NE(*plain, compiler_identity({.architecture = 80}).value());
  EXPECT_NE(*plain, compiler_identity({.instances = {"k<int>"}}).value());
  EXPECT_EQ(*plain, compiler_identity({}).value());
}

/// The project's own programs, each with the entries that nvcc gives.
TEST_F(SourceCompileTest, OurProgramsHaveNvccsNames) {
  const std::string root = SLATE_SOURCE_ROOT;
  const std::string nvcc = SLATE_NVCC;
  if (!std::filesystem::exists(nvcc)) {
    GTEST_SKIP() << "no nvcc to compare with";
  }
  const auto ptx = std::filesystem::temp_directory_path() /
                   ("slate_source_" + std::to_string(::getpid()) + ".ptx");
  int compared = 0;
  for (const char* folder : {"kernels", "kernels/faults", "tests/data/ptx", "tests/data/sim"}) {
    for (const auto& file :
         std::filesystem::directory_iterator(std::filesystem::path(root) / folder)) {
      if (file.path().extension() != ".cu") continue;
      const std::string command = "'" + nvcc + "' -ptx -arch=sm_90 -std=c++17 -w -I '" + root +
                                  "' -o '" + ptx.string() + "' '" + file.path().string() +
                                  "' > /dev/null 2>&1";
      if (std::system(command.c_str()) != 0) continue;
      const auto result =
          compile(text_of(file.path()), {.name = file.path().string(),
                                         .directory = file.path().parent_path().string(),
                                         .include_directories = {root}});
      ASSERT_TRUE(result.has_value()) << result.error().message;
      EXPECT_EQ(comparable(result->ptx), comparable(text_of(ptx))) << file.path();
      ++compared;
    }
  }
  std::filesystem::remove(ptx);
  EXPECT_GT(compared, 10);
}

}  // namespace
}  // namespace slate::source
