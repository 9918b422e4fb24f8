// slatectl run and slatectl env: start programs so that they find slate's libraries before any
// others. A front is the library that stands in: for libcuda.so.1, which every CUDA program ends
// in, or for libcudart.so.13.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "tools/elf_file.h"

namespace slate::tools {

enum class Front { kDriver, kCudart };

/// The name of a front, as users write it: "driver" or "cudart".
std::optional<Front> front_named(const std::string& name);

/// The front for a program:
/// - cudart for one that is linked to the shared libcudart.so.13 and to no library of NVIDIA's
///   besides: its calls take the shorter way.
/// - driver for all others: static cudart, the driver API, libraries, scripts.
Front front_for(const ElfFacts& program);

/// The file that execvp() would run, by $PATH (`path_variable`); nullopt if there is none.
std::optional<std::string> find_program(const std::string& name, const std::string& path_variable);

/// The folder that holds a front's library, seen from slatectl's own file.
Result<std::string> find_front_folder(const std::string& own_path, Front front);

/// Variables of the environment and their values.
using Variables = std::vector<std::pair<std::string, std::string>>;
/// What a program needs that starts under slate. `has_rpath`: its own search path comes before
/// LD_LIBRARY_PATH. `library_path`, `preload`: the variables' values before.
Result<Variables> variables_for(const std::string& own_path, Front front, bool has_rpath,
                                const std::string& library_path, const std::string& preload);

/// Does not return when the program was started. Otherwise the exit status, after a sentence on
/// stderr: 127 not found, 126 not executable, 2 unusable arguments, 1 anything else. `front`: a
/// name, or "auto".
int run_command(const std::string& runtime_dir, const std::string& front,
                const std::vector<std::string>& command);

/// Prints what a shell evaluates so that all that it starts runs under slate. Returns the exit
/// status.
int env_command(const std::string& runtime_dir, const std::string& front);

}  // namespace slate::tools
