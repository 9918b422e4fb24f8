// slatectl run: starts a program so that it finds slate's libcudart.so.13 before any other, in
// place of this process. Refuses programs that would run past slate.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace slate::tools {

/// The file that execvp() would run, by $PATH (`path_variable`); nullopt if there is none.
std::optional<std::string> find_program(const std::string& name, const std::string& path_variable);

/// The folder that holds slate's libcudart.so.13, seen from slatectl's own file.
Result<std::string> find_cudart_folder(const std::string& own_path);

/// Does not return when the program was started. Otherwise the exit status, after a sentence on
/// stderr: 127 not found, 126 not executable, 2 refused, 1 anything else.
int run_command(const std::string& runtime_dir, const std::vector<std::string>& command);

}  // namespace slate::tools
