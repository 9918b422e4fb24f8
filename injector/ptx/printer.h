// Text out of a module: without edits it is the module's own text, byte for byte. Passes describe
// their changes as edits; nothing else changes. Pure functions. Thread: any.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "injector/ptx/module.h"

namespace slate::ptx {

/// Puts `text` in place of the bytes of `span`. An empty span inserts, an empty text removes.
struct Edit {
  Span span;
  std::string text;
};

inline Edit insert_at(std::uint32_t offset, std::string text) {
  return {{offset, offset}, std::move(text)};
}
inline Edit replace(Span span, std::string text) {
  return {span, std::move(text)};
}
inline Edit remove(Span span) {
  return {span, {}};
}

/// The text with the edits, which come in any order. Insertions at one place keep their order in
/// the list, and stand before a replacement that begins there. Requires: spans lie in the text and
/// no two overlap. Errors: kInternal otherwise: a pass has contradicted itself.
Result<std::string> apply_edits(std::string_view text, std::vector<Edit> edits);
inline Result<std::string> apply_edits(const Module& module, std::vector<Edit> edits) {
  return apply_edits(module.text, std::move(edits));
}

}  // namespace slate::ptx
