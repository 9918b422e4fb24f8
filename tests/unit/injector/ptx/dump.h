// Writes a parsed module as short text, for table tests. Lives in the tests only.
//
// After a name comes what it was resolved to: #v0 is variable 0 of the function, #p parameter, #r
// return, #g variable of the module, #f function, #l label, #? nothing.
#pragma once

#include <string>
#include <vector>

#include "injector/ptx/module.h"

namespace slate::ptx {

/// `plain` leaves out the # annotations: the text is then PTX again.
std::string dump(const Operand& operand, bool plain = false);
std::string dump(const Instruction& instruction, bool plain = false);
std::string dump(const Variable& variable);
std::string dump(const Function& function);
std::string dump(const Module& module);

/// Parses and dumps, or gives the error's message.
std::string dump_of(const std::string& text);
/// The same for the instructions and variables of a function `f` with this body, in a small module.
std::string dump_of_body(const std::string& body);

/// The header that every module needs.
inline const std::string kHeader = ".version 9.0\n.target sm_90a\n.address_size 64\n";

std::string read_data(const std::string& name);
std::vector<std::string> data_files();

}  // namespace slate::ptx
