// What the fuzz target of PTX and the parser's unit tests share: they parse hostile text, and check
// every part of the module. Any thread.
#pragma once

#include <string>

namespace slate::ptx {

/// True if `text` is a module. Aborts when a module breaks its own contract (a span outside of the
/// text, an index outside of its vector) or an error has no line.
bool fuzz_parse(const std::string& text);

}  // namespace slate::ptx
