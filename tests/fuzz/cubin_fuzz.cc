// Machine code as a client sends it: all that the engine reads of a cubin.
// The names asked for are those that the image has.
#include <algorithm>
#include <vector>

#include "base/check.h"
#include "base/elf.h"
#include "daemon/dispatch/cubin.h"
#include "daemon/dispatch/float_code.h"
#include "daemon/dispatch/module_variables.h"
#include "tests/fuzz/target.h"

namespace slate::fuzz {
namespace {

constexpr std::size_t kMostNames = 8;

std::vector<std::string> names_of(Input image) {
  std::vector<std::string> names{"kernel"};
  for (const elf::Section& section : elf::sections_of(image)) {
    constexpr std::string_view kCode = ".text.";
    if (section.name.starts_with(kCode)) names.emplace_back(section.name.substr(kCode.size()));
    if (names.size() >= kMostNames) break;
  }
  return names;
}

}  // namespace

void run(Input input) {
  (void)daemon::variable_bytes(input);
  (void)daemon::architecture_of(input);
  std::vector<std::byte> image(input.begin(), input.end());
  for (const std::string& name : names_of(input)) {
    (void)daemon::needs_of(input, name);
    const std::span<std::byte> contents = daemon::contents_of(image, name);
    std::ranges::fill(contents, std::byte{0});  // as who writes addresses there
    SLATE_CHECK(contents.empty() ||
                (contents.data() >= image.data() &&
                 contents.data() + contents.size() <= image.data() + image.size()));
    (void)daemon::match_float_code({input, name}, {image, name});
  }
}

}  // namespace slate::fuzz
