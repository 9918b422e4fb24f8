// What NVRTC's log says, as values. Any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace slate::source {

struct Place {
  std::string file;
  std::uint32_t line = 0;
};

struct Message {
  Place place;
  std::string text;                      // after "error: "
  std::string whole;                     // the line as it is in the log
  std::vector<std::string> during = {};  // what was being instantiated, as NVRTC calls it
  std::vector<Place> behind = {};        // "at line N of FILE": instantiations that led there
};

/// The errors of a log, in its order.
std::vector<Message> errors_in(std::string_view log);

/// The log without its errors' source excerpts and warnings about files in `toolkit`.
std::string warnings_in(std::string_view log, const std::vector<std::string>& toolkit);

/// The first name in double quotes of a message: identifier "x" is undefined.
std::string quoted_name(std::string_view message);

}  // namespace slate::source
