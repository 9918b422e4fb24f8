// Questions about a word of PTX: an opcode, a modifier or the name of a type. Pure functions.
// Thread: any.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <string_view>

namespace slate::ptx {

inline bool is_one_of(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::ranges::find(words, word) != words.end();
}

inline bool begins_with_one_of(std::string_view word,
                               std::initializer_list<std::string_view> beginnings) {
  return std::ranges::any_of(
      beginnings, [&](std::string_view beginning) { return word.starts_with(beginning); });
}

}  // namespace slate::ptx
