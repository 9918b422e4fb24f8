#include "injector/ptx/printer.h"

#include <algorithm>

namespace slate::ptx {

Result<std::string> apply_edits(std::string_view text, std::vector<Edit> edits) {
  // By end within one begin: an insertion goes before the replacement of what follows it.
  std::ranges::stable_sort(edits, [](const Edit& a, const Edit& b) {
    return a.span.begin != b.span.begin ? a.span.begin < b.span.begin : a.span.end < b.span.end;
  });
  std::size_t size = text.size();
  for (const Edit& edit : edits) size += edit.text.size();
  std::string out;
  out.reserve(size);
  std::size_t done = 0;
  for (const Edit& edit : edits) {
    const bool in_order = edit.span.begin >= done && edit.span.begin <= edit.span.end;
    if (!in_order || edit.span.end > text.size()) {
      return fail(ErrorCode::kInternal, "edit of bytes " + std::to_string(edit.span.begin) +
                                            " to " + std::to_string(edit.span.end) +
                                            " overlaps another or leaves the text");
    }
    out += text.substr(done, edit.span.begin - done);
    out += edit.text;
    done = edit.span.end;
  }
  out += text.substr(done);
  return out;
}

}  // namespace slate::ptx
