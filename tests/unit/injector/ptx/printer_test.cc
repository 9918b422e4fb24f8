#include "injector/ptx/printer.h"

#include <gtest/gtest.h>

namespace slate::ptx {
namespace {

std::string edited(std::string_view text, std::vector<Edit> edits) {
  const auto out = apply_edits(text, std::move(edits));
  return out ? *out : "error: " + out.error().message;
}

TEST(PrinterTest, NoEditsIsTheTextItself) {
  EXPECT_EQ(edited("a\tb\r\n", {}), "a\tb\r\n");
}

TEST(PrinterTest, EditsMayComeInAnyOrder) {
  EXPECT_EQ(edited("0123456789",
                   {remove({8, 9}), insert_at(0, "<"), replace({2, 5}, "x"), insert_at(10, ">")}),
            "<01x5679>");
}

TEST(PrinterTest, InsertionsAtOnePlaceKeepTheirOrder) {
  EXPECT_EQ(edited("ab", {insert_at(1, "1"), insert_at(1, "2"), insert_at(1, "3")}), "a123b");
}

TEST(PrinterTest, InsertionStandsBeforeTheReplacementOfWhatFollows) {
  EXPECT_EQ(edited("abc", {replace({1, 2}, "X"), insert_at(1, "<"), insert_at(2, ">")}), "a<X>c");
}

TEST(PrinterTest, AdjacentSpansDoNotOverlap) {
  EXPECT_EQ(edited("abcd", {remove({0, 2}), replace({2, 4}, "z")}), "z");
}

TEST(PrinterTest, ContradictionsAreInternalErrors) {
  for (const std::vector<Edit>& edits :
       {std::vector{remove({0, 3}), remove({2, 4})}, std::vector{remove({0, 3}), insert_at(2, "x")},
        std::vector{remove({2, 9})}, std::vector{remove({3, 1})}, std::vector{insert_at(9, "x")}}) {
    const auto out = apply_edits("abcd", edits);
    ASSERT_FALSE(out);
    EXPECT_EQ(out.error().code, ErrorCode::kInternal);
  }
}

}  // namespace
}  // namespace slate::ptx
