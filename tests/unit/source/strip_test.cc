// What strip_host_code() keeps and drops. No NVRTC is needed.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "injector/source/source.h"

namespace slate::source {
namespace {

std::string stripped(std::string_view text, const SourceOptions& options = {}) {
  const auto result = strip_host_code(text, options);
  EXPECT_TRUE(result.has_value());
  return result.value_or("");
}

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

constexpr std::string_view kKernel = "__global__ void k(float* p) { *p = 1; }\n";

TEST(SourceStripTest, HostFunctionsVariablesAndMainGo) {
  const auto text = stripped(std::string(kKernel) +
                             "int counter = 0;\nvoid helper() { k<<<1, 1>>>(nullptr); }\n"
                             "int main() { helper(); return 0; }\n");
  EXPECT_TRUE(has(text, kKernel.substr(0, 30)));
  EXPECT_FALSE(has(text, "helper"));
  EXPECT_FALSE(has(text, "main"));
  EXPECT_FALSE(has(text, "counter"));
  EXPECT_FALSE(has(text, "<<<"));
}

TEST(SourceStripTest, ExplicitHostFunctionsGoEvenWhenTheirNamesAreUsed) {
  const auto text = stripped(
      "__host__ int f(int a) { return a; }\n__device__ int f(float a) { return 2; }\n"
      "__global__ void k(int* p) { *p = f(1.0f); }\n");
  EXPECT_FALSE(has(text, "int f(int a)"));
  EXPECT_TRUE(has(text, "int f(float a)"));
}

TEST(SourceStripTest, WhatKernelsNameIsKeptAndTheRestIsNot) {
  const auto text = stripped(
      "const int kSize = 4;\nenum Mode { kOn, kOff };\nstruct Pair { int a, b; };\n"
      "struct Unused { int a; };\ntypedef Pair Both;\n"
      "__device__ int twice(int a) { return 2 * a; }\n__device__ int unused(int a) { return a; }\n"
      "__global__ void k(Both* p, int mode) { p->a = mode == kOff ? twice(kSize) : 0; }\n");
  for (const char* part : {"kSize = 4", "enum Mode", "struct Pair", "typedef", "int twice"}) {
    EXPECT_TRUE(has(text, part)) << part;
  }
  EXPECT_FALSE(has(text, "Unused"));
  EXPECT_FALSE(has(text, "unused"));
}

TEST(SourceStripTest, DeviceVariablesStayWithoutBeingNamed) {
  const auto text = stripped("__device__ int a;\n__constant__ float b[4];\n__managed__ int c;\n");
  EXPECT_TRUE(has(text, "int a;"));
  EXPECT_TRUE(has(text, "float b[4];"));
  EXPECT_TRUE(has(text, "int c;"));
}

TEST(SourceStripTest, HostMembersOfDeviceClassesGo) {
  const auto text = stripped(
      "struct View {\n  View() { allocate(); }\n  __device__ float get(int i) { return p[i]; }\n"
      "  void (*callback)(int);\n  float* p;\n  bool operator==(const View& o) const { return 1; "
      "}\n"
      "};\n__global__ void k(View v) { v.p[0] = v.get(1); }\n");
  EXPECT_FALSE(has(text, "allocate"));
  EXPECT_FALSE(has(text, "operator=="));
  EXPECT_TRUE(has(text, "float get(int i)"));
  EXPECT_TRUE(has(text, "(*callback)"));
  EXPECT_TRUE(has(text, "float* p;"));
}

TEST(SourceStripTest, MacrosAreReadForAnnotationsAndLoneBraces) {
  const auto text = stripped(
      "#define HD __host__ __device__\n#define BEGIN namespace ns {\n#define END }\n"
      "#define MAKE(n) __global__ void n##_kernel(int* p) { *p = helper_##n(); }\n"
      "BEGIN\nHD int helper_one() { return 1; }\nvoid host() {}\nMAKE(one)\nEND\n");
  EXPECT_TRUE(has(text, "BEGIN"));
  EXPECT_TRUE(has(text, "END"));
  EXPECT_TRUE(has(text, "HD int helper_one()"));
  EXPECT_TRUE(has(text, "MAKE(one)"));
  EXPECT_FALSE(has(text, "void host"));
}

TEST(SourceStripTest, LaunchesInCommentsAndStringsAreNothing) {
  const auto text =
      stripped("// k<<<1, 1>>>(0); {\n/* void f() { */\nconst char* s = \"k<<<1>>> }\";\n" +
               std::string(kKernel) + "void f() { puts(R\"(})\"); }\n__device__ int last;\n");
  EXPECT_TRUE(has(text, "void k(float* p)"));
  EXPECT_TRUE(has(text, "int last;"));
  EXPECT_FALSE(has(text, "void f"));
}

TEST(SourceStripTest, NamespacesAndLinkageStayBalanced) {
  const auto text = stripped(
      "namespace a::b { inline namespace v1 {\nvoid f() {}\n__global__ void k(int* p) { *p = 1; }\n"
      "} }\nextern \"C\" { void g(); __global__ void c(int* p) { *p = 2; } }\n"
      "extern \"C\" __global__ void d(int* p) { *p = 3; }\n");
  int depth = 0;
  for (const char c : text) depth += c == '{' ? 1 : c == '}' ? -1 : 0;
  EXPECT_EQ(depth, 0);
  EXPECT_TRUE(has(text, "namespace a::b {"));
  EXPECT_TRUE(has(text, "void c(int* p)"));
  EXPECT_TRUE(has(text, "extern \"C\" __global__ void d"));
  EXPECT_FALSE(has(text, "void g"));
}

TEST(SourceStripTest, ConstructorsWithBracedInitialisersAreOneDeclaration) {
  const auto text = stripped(
      "struct A { int x, y; __device__ A() : x{1}, y{2} { x = y; } int z; };\n"
      "__global__ void k(int* p) { A a; *p = a.z; }\n");
  EXPECT_TRUE(has(text, "y{2} { x = y; }"));
  EXPECT_TRUE(has(text, "int z;"));
}

TEST(SourceStripTest, BranchesThatOpenTheSameBodyAreOneFunction) {
  const auto text =
      stripped("#ifdef WIDE\nvoid f(double a) {\n#else\nvoid f(float a) {\n#endif\n  use(a);\n}\n" +
               std::string(kKernel));
  EXPECT_FALSE(has(text, "use(a)"));
  EXPECT_TRUE(has(text, "void k(float* p)"));
  EXPECT_TRUE(has(text, "#else"));
}

TEST(SourceStripTest, BranchThatNobodyCompilesMayLackItsBrace) {
  const auto text =
      stripped("#ifdef NEVER\nvoid f() {\n#endif\n" + std::string(kKernel) + "void host() {}\n");
  EXPECT_TRUE(has(text, "void k(float* p)"));
  EXPECT_FALSE(has(text, "host"));
}

TEST(SourceStripTest, LinesAreKeptByLineDirectives) {
  const auto text = stripped("\n\nvoid f() {\n\n\n\n\n\n\n\n\n\n\n}\n" + std::string(kKernel),
                             {.name = "my \"file\".cu"});
  EXPECT_TRUE(has(text, "#line 15 \"my \\\"file\\\".cu\"\n__global__"));
}

TEST(SourceStripTest, HostHeadersGoAndCudaHeadersStay) {
  const auto text = stripped(
      "#include <vector>\n#include <stdint.h>\n#include \"nowhere.h\"\n#include <unistd.h>\n" +
      std::string(kKernel));
  EXPECT_FALSE(has(text, "vector"));
  EXPECT_FALSE(has(text, "nowhere"));
  EXPECT_FALSE(has(text, "unistd"));
  EXPECT_TRUE(has(text, "#include <stdint.h>"));
}

TEST(SourceStripTest, NulBytesAreRefused) {
  EXPECT_FALSE(strip_host_code(std::string_view("int a;\0int b;", 13), {}).has_value());
}

TEST(SourceStripTest, BrokenTextEnds) {
  for (const char* text : {"}",
                           "{",
                           "template <",
                           "struct",
                           "#if",
                           "#else\n#endif\n#endif",
                           "a(((",
                           "operator",
                           "void operator",
                           "namespace",
                           "template <> template <",
                           "<<<",
                           "extern \"C\"",
                           "~",
                           "class A : public B {",
                           "R\"(",
                           "#define",
                           "enum {",
                           "#define A(\nA(",
                           "typedef",
                           "using",
                           "using x =",
                           "= = = ;",
                           "f(])}"}) {
    EXPECT_TRUE(strip_host_code(text, {}).has_value()) << text;
  }
}

TEST(SourceStripTest, TemplatesAndMacrosThatGrowWithoutEndEnd) {
  std::string macros = "#define M0 x x\n";
  for (int i = 1; i < 60; ++i) {
    macros += "#define M" + std::to_string(i) + " M" + std::to_string(i - 1) + " M" +
              std::to_string(i - 1) + "\n";
  }
  const auto text = stripped(
      macros +
      "template <class T> __global__ void k(T* p) { *p = {}; }\n"
      "template <class T> struct Box { T t; void run() { Box<Box<T>> b; k<T><<<1, 1>>>(&t); } };\n"
      "void go() { Box<int> b; b.run(); M59; k<int><<<1, 1>>>(0); }\n");
  EXPECT_TRUE(has(text, "void k(T* p)"));
}

class SourceHeadersTest : public ::testing::Test {
 protected:
  void SetUp() override {
    directory_ =
        std::filesystem::temp_directory_path() / ("slate_source_" + std::to_string(::getpid()));
    std::filesystem::create_directories(directory_ / "sub");
    options_ = {.directory = directory_.string(),
                .include_directories = {(directory_ / "sub").string()}};
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }
  void write(const std::string& name, std::string_view text) {
    std::ofstream(directory_ / name) << text;
  }
  std::filesystem::path directory_;
  SourceOptions options_;
};

TEST_F(SourceHeadersTest, UserHeadersAreTakenApartToo) {
  write("a.h", "#pragma once\n#include <b.h>\nvoid host_a();\n");
  write("sub/b.h", "#ifndef B_H\n#define B_H\n__device__ int from_b() { return 1; }\n#endif\n");
  const auto text = stripped(
      "#include \"a.h\"\n#include \"a.h\"\n#include \"b.h\"\n"
      "__global__ void k(int* p) { *p = from_b(); }\n",
      options_);
  EXPECT_FALSE(has(text, "host_a"));
  EXPECT_TRUE(has(text, "b.h\"\n"));
  EXPECT_EQ(text.find("from_b() {"), text.rfind("from_b() {"));
}

TEST_F(SourceHeadersTest, HeadersThatIncludeThemselvesEnd) {
  write("loop.h", "#include \"loop.h\"\n__device__ int a;\n");
  EXPECT_TRUE(strip_host_code("#include \"loop.h\"\n", options_).has_value());
}

TEST_F(SourceHeadersTest, HeaderThatActsDifferentlyTheSecondTimeIsTakenTwice) {
  write("wrap.h", "#ifndef WRAP\n#define WRAP\nextern \"C\" {\n#else\n#undef WRAP\n}\n#endif\n");
  const auto text =
      stripped("#include \"wrap.h\"\n__device__ int a;\n#include \"wrap.h\"\n", options_);
  EXPECT_NE(text.find("extern \"C\""), text.rfind("extern \"C\""));
}

}  // namespace
}  // namespace slate::source
