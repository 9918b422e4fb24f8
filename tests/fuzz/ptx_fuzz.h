// What the fuzzer and the unit tests share: parse hostile text and use every part of what comes
// out.
#pragma once

#include <string>

namespace slate::ptx {

/// True if `text` is a module. Aborts when a module breaks its own contract (a span outside of the
/// text, an index outside of its vector) or an error has no line.
bool fuzz_parse(const std::string& text);

}  // namespace slate::ptx
