// A module's variables in memory of its session, their home, in place of the driver's. Then they
// outlive the engine, at the same addresses. Code in, code out; the image may be hostile, and the
// time is linear in it. Pure functions, any thread.
//
// - Global variables lie in the home alone.
// - Kernels read constants from the module's own bank. The home has what they ought to be, and its
//   addresses are those that the program sees. Whoever launches the kernels fills the bank.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "device/device.h"
#include "injector/ptx/module.h"

namespace slate::daemon {

/// Bytes around a home's constants in which there is nothing of the program's. A pointer there is
/// one to a constant: to its end, or in front of it.
inline constexpr std::uint64_t kAroundConstants = 64 << 10;

/// Variables by name, where they lie in the home.
using VariableMap = std::map<std::string, device::AddressRange, std::less<>>;

/// Code whose variables are at home.
struct HomedCode {
  /// Constants that lie together.
  struct Bank {
    device::AddressRange home;  // where they are in the home
    std::string anchor;         // name of one of them
    std::uint64_t offset = 0;   // bytes from the first one to the anchor
  };
  std::vector<std::byte> code;      // machine code, or text
  std::vector<std::byte> contents;  // contents at the beginning of the home; zeros follow
  VariableMap variables;
  std::vector<Bank> banks;
};

/// Whether the constants of machine code may be at home, too. If not, no variable of a module that
/// has some is.
enum class Constants : std::uint8_t { kStay, kMove };

/// Bytes of a home: of machine code, or of a text with so many bytes of variables. 0: it has none.
std::uint64_t home_bytes(std::span<const std::byte> cubin, Constants constants);
std::uint64_t home_bytes_of_text(std::uint64_t variables);

/// The machine code for a home at this address, a multiple of 512. Errors: kNotSupported, with the
/// reason, where some variable cannot lie there.
Result<HomedCode> move_home(std::span<const std::byte> cubin, device::Address home);
/// The same of a text.
Result<HomedCode> move_home(const ptx::Module& module, device::AddressRange home);
/// Whether all that is said of the home lies in it. A stranger may have said it.
bool keeps_to(const HomedCode& code, device::AddressRange home);

/// Whether kernels of the text may find out the address of a constant in the bank, or tell it from
/// other memory. In the next engine it is another one.
bool takes_constants_addresses(std::string_view text);

}  // namespace slate::daemon
