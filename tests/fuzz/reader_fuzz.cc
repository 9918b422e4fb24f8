// What the engine and a reader's process say to each other (daemon/reader). The first byte tells
// who speaks: the engine asks of a fixed text, or a reader that its text has taken over answers.
#include "base/check.h"
#include "daemon/reader/reading.h"
#include "tests/fuzz/target.h"

namespace slate::fuzz {
namespace {

constexpr char kText[] = R"(.version 7.8
.target sm_52
.address_size 64
.global .align 4 .u32 g = 7;
.visible .entry k(.param .u64 p)
{
.reg .b64 %rd<3>;
.reg .b32 %r<2>;
ld.param.u64 %rd1, [p];
mov.u32 %r1, %ctaid.x;
st.global.u32 [%rd1], %r1;
ret;
}
)";

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
  daemon::Reading reading(kText);
  hear(reading.answer(input));
}

}  // namespace slate::fuzz
