#include "tests/unit/client/fake_source.h"

namespace slate::test {

FakeCompiler& fake_compiler() {
  static FakeCompiler compiler{fail(ErrorCode::kInternal, "no result was set")};
  return compiler;
}

source::CompiledSource compiled(std::string ptx,
                                std::vector<std::pair<std::string, std::string>> kernels,
                                std::string log) {
  return {std::move(ptx), std::move(kernels), std::move(log)};
}

}  // namespace slate::test

namespace slate::source {

Result<CompiledSource> compile(std::string_view text, const SourceOptions& options) {
  test::FakeCompiler& compiler = test::fake_compiler();
  ++compiler.compilations;
  compiler.text = text;
  compiler.options = options;
  return compiler.result;
}

Result<std::string> strip_host_code(std::string_view, const SourceOptions&) {
  return test::fake_compiler().stripped;
}

Result<std::string> compiler_identity(const SourceOptions&) {
  return test::fake_compiler().identity;
}

}  // namespace slate::source
