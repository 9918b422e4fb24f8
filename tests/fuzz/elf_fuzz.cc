// ELF files: those that slatectl run looks at, and the names that a program's machine code has.
// Views must lie in the file.
#include "base/check.h"
#include "base/elf.h"
#include "client/session/code_image.h"
#include "tests/fuzz/target.h"
#include "tools/elf_file.h"

namespace slate::fuzz {

void run(Input input) {
  for (const elf::Section& section : elf::sections_of(input)) {
    SLATE_CHECK(section.bytes.empty() ||
                (section.bytes.data() >= input.data() &&
                 section.bytes.data() + section.bytes.size() <= input.data() + input.size()));
  }
  (void)tools::inspect_elf(input);
  const auto image = client::image_of_code(input.data(), 90, input.size());
  if (image && image->kind == client::ImageKind::kElf) (void)client::names_in(*image);
  (void)client::names_in({client::ImageKind::kElf, 90, {input.begin(), input.end()}});
}

}  // namespace slate::fuzz
