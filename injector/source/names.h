// Kernels' names: in the PTX, and as the author wrote them. Names on command lines are
// base/kernel_name.h. Pure functions. Thread: any.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace slate::source {

/// The .entry names of a PTX text, in order.
std::vector<std::string> entries_in(std::string_view ptx);

/// The name as written: "scale<float>" for "_Z5scaleIfEvPT_", "ns::add" for "_ZN2ns3addEPf"; other
/// names unchanged.
std::string written_name(const std::string& lowered);

/// The text without blanks at both ends.
std::string_view trimmed(std::string_view text);

}  // namespace slate::source
