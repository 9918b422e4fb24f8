// Source through the cache: what is compiled again and what is not.
#include <gtest/gtest.h>

#include "client/api/compile.h"
#include "tests/unit/client/fake_cache.h"
#include "tests/unit/client/fake_source.h"

namespace slate::api {
namespace {

using test::compiled;
using test::fake_cache;
using test::fake_compiler;

class ApiCompileTest : public ::testing::Test {
 protected:
  ApiCompileTest() {
    fake_compiler() = {compiled("ptx", {{"scale<float>", "_Z5scaleIfEvPT_"}}, "a warning")};
    fake_cache() = {};
    cache = std::move(*cache::CompileCache::open("", 0));
  }
  void compile(const source::SourceOptions& options = {}) {
    const auto result = compile_cached("text", options, cache.get());
    ASSERT_TRUE(result.has_value());
    EXPECT_EQ(result->ptx, "ptx");
    EXPECT_EQ(result->log, "a warning");
    ASSERT_EQ(result->kernels.size(), 1u);
    EXPECT_EQ(result->kernels[0].first, "scale<float>");
    EXPECT_EQ(result->kernels[0].second, "_Z5scaleIfEvPT_");
  }
  static int compilations() { return fake_compiler().compilations; }

  std::unique_ptr<cache::CompileCache> cache;
};

TEST_F(ApiCompileTest, TheSameSourceIsCompiledOnce) {
  compile();
  compile();
  EXPECT_EQ(compilations(), 1);
}

TEST_F(ApiCompileTest, WhateverChangesTheResultIsCompiledAnew) {
  compile();
  const auto differs = [&](auto change) {
    const int before = compilations();
    source::SourceOptions options;
    change(options);
    compile(options);
    return compilations() == before + 1;
  };
  EXPECT_TRUE(differs([](auto& options) { options.architecture = 80; }));
  EXPECT_TRUE(differs([](auto& options) { options.name = "other.cu"; }));
  EXPECT_TRUE(differs([](auto& options) { options.options = {"-DN=4"}; }));
  EXPECT_TRUE(differs([](auto& options) { options.instances = {"-DN=4"}; }));
  EXPECT_TRUE(differs([](auto& options) { options.include_directories = {"-DN=4"}; }));
  EXPECT_TRUE(differs([](auto&) { fake_compiler().identity = "fake compiler 2"; }));
  EXPECT_TRUE(differs([](auto&) { fake_compiler().stripped = "with another header"; }));
  EXPECT_FALSE(differs([](auto&) {})) << "the last one is known by now";
}

TEST_F(ApiCompileTest, ADamagedEntryIsCompiledAnew) {
  compile();
  for (auto& [key, entry] : fake_cache().entries) entry.pop_back();
  compile();
  EXPECT_EQ(compilations(), 2);
}

TEST_F(ApiCompileTest, AllWorksWithoutACache) {
  cache.reset();
  compile();
  compile();
  EXPECT_EQ(compilations(), 2);
}

TEST_F(ApiCompileTest, AnEntryThatCannotBeStoredIsNoFailure) {
  fake_cache().stores = false;
  compile();
}

TEST_F(ApiCompileTest, SourceWhoseIdentityIsUnknownIsNotCached) {
  fake_compiler().identity = fail(ErrorCode::kNotSupported, "no compiler");
  compile();
  fake_compiler().identity = std::string("fake compiler 1");
  fake_compiler().stripped = fail(ErrorCode::kInvalidPtx, "a brace is missing");
  compile();
  EXPECT_TRUE(fake_cache().entries.empty());
}

TEST_F(ApiCompileTest, AFailureIsNotCached) {
  fake_compiler().result = fail(ErrorCode::kInvalidPtx, "source.cu(3): error: no");
  const auto result = compile_cached("text", {}, cache.get());
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().message, "source.cu(3): error: no");
  EXPECT_TRUE(fake_cache().entries.empty());
}

TEST(ApiEntryTest, EveryCutOfAnEntryIsRecognisedOrShorter) {
  const auto bytes = encode(compiled("ptx", {{"f", "_Z1fv"}}, "log"));
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const auto entry = decode(std::span(bytes).first(size));
    EXPECT_TRUE(!entry || entry->kernels.empty()) << size;
  }
  auto huge = bytes;
  huge[7] = std::byte{0xff};
  EXPECT_FALSE(decode(huge));
}

}  // namespace
}  // namespace slate::api
