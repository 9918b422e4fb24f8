// PtxWords: the words of PTX in their order, without comments, for light scans without a parser.
// Punctuation is words of one character. A string is one word that begins with '"'. Keeps a view of
// the text.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace slate::client {

class PtxWords {
 public:
  explicit PtxWords(std::string_view text) : text_(text) {}

  /// The next word; empty at the end.
  std::string_view next() {
    skip();
    if (at_ == text_.size()) return {};
    const std::size_t begin = at_;
    if (text_[at_] == '"') {
      at_ = std::min(text_.find('"', at_ + 1), text_.size() - 1) + 1;
      return text_.substr(begin, at_ - begin);
    }
    while (at_ < text_.size() && is_word(text_[at_])) ++at_;
    if (at_ == begin) ++at_;
    return text_.substr(begin, at_ - begin);
  }

  static bool is_word(char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           c == '$' || c == '%' || c == '.';
  }

 private:
  void skip() {
    while (at_ < text_.size()) {
      if (text_.substr(at_, 2) == "//") {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (text_.substr(at_, 2) == "/*") {
        const std::size_t end = text_.find("*/", at_ + 2);
        at_ = end == std::string_view::npos ? text_.size() : end + 2;
      } else if (static_cast<unsigned char>(text_[at_]) <= ' ') {
        ++at_;
      } else {
        return;
      }
    }
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace slate::client
