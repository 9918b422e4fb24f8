// Fat binaries as programs carry them, and as files have them: containers, entries, unpacking.
// An entry that says it is larger than kMostBytes is not unpacked: memory alone is no finding.
#include "base/check.h"
#include "client/session/code_image.h"
#include "client/session/fatbin.h"
#include "tests/fuzz/target.h"

namespace slate::fuzz {
namespace {

constexpr std::uint64_t kMostBytes = 4 << 20;

}  // namespace

void run(Input input) {
  const auto entries = client::list_entries(input);
  if (entries) {
    for (const client::FatBinaryEntry& entry : *entries) {
      if (entry.unpacked_bytes > kMostBytes) return;
      const auto image = client::unpack(entry);
      if (image) (void)client::names_in(*image);
    }
  }
  for (const bool ptx_first : {false, true}) {
    (void)client::choose_image(input, 90, ptx_first);
    if (!client::is_code(input.data(), input.size())) continue;
    const auto image = client::image_of_code(input.data(), 90, input.size(), ptx_first);
    if (image) (void)client::names_in(*image);
  }
}

}  // namespace slate::fuzz
