// For the generated stubs of functions that slate does not have yet (generate_absent.py).
#pragma once

namespace slate::cudart {

/// Says once for each process and name that the function is missing, and why. The daemon counts the
/// calls. Returns cudaErrorNotSupported, as the number.
int absent(const char* name, const char* reason) noexcept;

}  // namespace slate::cudart
