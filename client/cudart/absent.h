// What the generated stubs of functions that slate does not have yet call (generate_absent.py).
#pragma once

namespace slate::cudart {

/// Says once per process and name that it is missing, and why; tells the daemon, which counts.
/// Returns cudaErrorNotSupported, as the number.
int absent(const char* name, const char* reason) noexcept;

}  // namespace slate::cudart
