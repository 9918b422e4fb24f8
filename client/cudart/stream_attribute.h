// What was set of streams' attributes (stream_attribute.cc).
#pragma once

#include <cstdint>

namespace slate::cudart {

/// The stream is no more.
void forget_attributes(std::uint64_t stream);

}  // namespace slate::cudart
