// PTX as a client sends it: scanner, parser, analysis, all forms, the fence, extraction and
// linking. What the injector writes has to be PTX again.
#include <array>

#include "base/check.h"
#include "injector/fence/fence.h"
#include "injector/forms/extract.h"
#include "injector/forms/inject.h"
#include "injector/link/link.h"
#include "injector/link/registers.h"
#include "injector/ptx/module.h"
#include "tests/fuzz/ptx_check.h"
#include "tests/fuzz/target.h"

namespace slate::fuzz {

void run(Input input) {
  const std::string text(text_of(input));
  const std::array<std::string_view, 2> twice{text, text};
  (void)ptx::link(twice);
  if (!ptx::fuzz_parse(text)) return;
  const auto limited = ptx::limit_registers(text, 32);
  SLATE_CHECK(limited && ptx::fuzz_parse(*limited));
  const auto module = ptx::parse(text);
  for (const ptx::Function& function : (*module)->functions) {
    const auto kernel = injector::extract_kernel(**module, function.name);
    SLATE_CHECK(!kernel || ptx::fuzz_parse(*kernel));
  }
  for (const bool settled : {false, true}) {
    injector::InjectOptions options;
    options.profile = true;
    options.settle_sums = settled;
    const auto injected = injector::inject(**module, options);
    SLATE_CHECK(injected);
    SLATE_CHECK(ptx::fuzz_parse(injected->ptx));
    const auto forms = ptx::parse(injected->ptx);
    const auto fenced = injector::fence(**forms, {.names = injector::OwnNames::kExpected});
    SLATE_CHECK(!fenced || ptx::fuzz_parse(fenced->ptx));
  }
}

}  // namespace slate::fuzz
