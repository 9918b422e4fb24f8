// slate-inject: the injector on the command line. Beside slated: it needs none.
#include <iostream>
#include <string>
#include <vector>

#include "tools/inject_command.h"

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  const auto request = slate::tools::parse_inject_options(arguments, std::cout, std::cerr);
  if (!request) return request.error();
  return slate::tools::run_inject(*request, std::cout, std::cerr);
}
