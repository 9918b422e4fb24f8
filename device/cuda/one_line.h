// Puts an assembler's log on one line, because an Error's message is one sentence. A pure function.
// Thread: any.
#pragma once

#include <string>
#include <string_view>

namespace slate::cuda {

/// The lines of `log` joined by "; ", without empty ones.
inline std::string one_line(std::string_view log) {
  std::string text;
  for (const char c : log) {
    if (c != '\n' && c != '\r') {
      text += c;
    } else if (!text.empty() && text.back() != ' ') {
      text += "; ";
    }
  }
  while (!text.empty() && (text.back() == ' ' || text.back() == ';')) text.pop_back();
  return text;
}

}  // namespace slate::cuda
