// What the engine and a reader's process say to each other (daemon/reader). The first byte tells
// who speaks: the engine asks of a fixed text, or a reader that its text has taken over answers.
#include "base/check.h"
#include "daemon/reader/reading.h"
#include "tests/fuzz/small_ptx.h"
#include "tests/fuzz/target.h"

namespace slate::fuzz {
namespace {

void hear(Input answer) {
  const daemon::FormRequest request{.kernel = "k"};
  if (const auto forms = daemon::unpack_forms(answer, request); forms) {
    SLATE_CHECK(forms->forms.name == "k");
    SLATE_CHECK(daemon::has_any(forms->forms) == !forms->ptx.empty());
  }
  (void)daemon::unpack_variables(answer);
  if (const auto places = daemon::unpack_places(answer, 1); places)
    SLATE_CHECK(places->contents.size() == 1);
}

}  // namespace

void run(Input input) {
  const bool is_answer = (take<std::uint8_t>(input) & 1) != 0;
  if (is_answer) return hear(input);
  daemon::Reading reading(kSmallPtx);
  hear(reading.answer(input));
}

}  // namespace slate::fuzz
