// A source compiler that compiles nothing and remembers what it was asked, in the place of
// slate_source.
#pragma once

#include <string>

#include "injector/source/source.h"

namespace slate::test {

struct FakeCompiler {
  Result<source::CompiledSource> result;  // of every compilation
  Result<std::string> stripped = std::string("stripped");
  Result<std::string> identity = std::string("fake compiler 1");
  int compilations = 0;
  std::string text{};               // of the last one
  source::SourceOptions options{};  // likewise
};

/// The one that source::compile() and its sisters ask. Not for several threads.
FakeCompiler& fake_compiler();

/// What compiles, from PTX with these kernels.
source::CompiledSource compiled(std::string ptx,
                                std::vector<std::pair<std::string, std::string>> kernels = {},
                                std::string log = {});

}  // namespace slate::test
