#include "base/kernel_name.h"

#include <cxxabi.h>

#include <cstdlib>
#include <memory>

namespace slate {
namespace {

std::string_view without_parameters(std::string_view demangled) {
  if (!demangled.ends_with(')')) return demangled;
  int depth = 0;
  for (std::size_t i = demangled.size(); i-- > 0;) {
    if (demangled[i] == ')') ++depth;
    if (demangled[i] == '(' && --depth == 0) return demangled.substr(0, i);
  }
  return demangled;
}

/// "void ns::scale<float>" gives "ns::scale". The result type stands before names of templates.
std::string_view bare_name(std::string_view signature) {
  if (signature.starts_with("void ")) signature.remove_prefix(5);
  int depth = 0;
  if (!signature.ends_with('>')) return signature;
  for (std::size_t i = signature.size(); i-- > 0;) {
    if (signature[i] == '>') ++depth;
    if (signature[i] == '<' && --depth == 0) return signature.substr(0, i);
  }
  return signature;
}

}  // namespace

std::string demangle(const std::string& name) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> plain(
      abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), &std::free);
  // Names that are no C++ ones but spell a type, as "f" does, stay as they are.
  return status == 0 && plain && name.starts_with("_Z") ? std::string(plain.get()) : name;
}

std::string_view short_kernel_name(std::string_view demangled) {
  const std::string_view signature = without_parameters(demangled);
  return signature.starts_with("void ") ? signature.substr(5) : signature;
}

bool selects(std::string_view wanted, std::string_view name, std::string_view demangled) {
  if (wanted == name || wanted == demangled) return true;
  std::string_view signature = without_parameters(demangled);
  if (wanted == signature || wanted == bare_name(signature)) return true;
  if (signature.starts_with("void ")) signature.remove_prefix(5);
  return wanted == signature;
}

}  // namespace slate
