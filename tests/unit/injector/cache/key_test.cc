#include <gtest/gtest.h>

#include <string>

#include "base/digest.h"
#include "injector/cache/cache.h"
#include "injector/cache/entry.h"

namespace slate::cache {
namespace {

TEST(DigestTest, IsSha256) {
  const auto hex = [](std::string_view text) {
    return entry_name(digest_of(std::as_bytes(std::span(text))));
  };
  EXPECT_EQ(hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(hex(std::string(1'000'000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(KeyTest, EqualPartsMakeEqualKeys) {
  const auto make = [] { return KeyBuilder().add("ptx", "text").add("arch", "9.0").finish(); };
  EXPECT_EQ(make(), make());
}

TEST(KeyTest, EveryPartItsLabelAndTheOrderMatter) {
  const Key key = KeyBuilder().add("ptx", "text").add("arch", "9.0").finish();
  EXPECT_NE(key, KeyBuilder().add("ptx", "test").add("arch", "9.0").finish());
  EXPECT_NE(key, KeyBuilder().add("ptx", "text").add("form", "9.0").finish());
  EXPECT_NE(key, KeyBuilder().add("arch", "9.0").add("ptx", "text").finish());
  EXPECT_NE(key, KeyBuilder().add("ptx", "text").finish());
}

TEST(KeyTest, PartsDoNotRunTogether) {
  const Key key = KeyBuilder().add("ab", "c").finish();
  EXPECT_NE(key, KeyBuilder().add("a", "bc").finish());
  EXPECT_NE(KeyBuilder().add("a", "b").add("c", "").finish(),
            KeyBuilder().add("a", "").add("c", "b").finish());
}

TEST(KeyTest, TextAndBytesAreTheSame) {
  const std::string_view text = "text";
  EXPECT_EQ(KeyBuilder().add("ptx", text).finish(),
            KeyBuilder().add("ptx", std::as_bytes(std::span(text))).finish());
}

}  // namespace
}  // namespace slate::cache
