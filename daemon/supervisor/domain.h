// Domain: what shares an engine. Sessions of one domain are in one address space of the device, and
// are co-scheduled. Between domains stand the hardware's address spaces, and its time slices
// (docs/fence.md).
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

namespace slate::daemon {

struct Domain {
  enum class Kind : std::uint8_t {
    kCommon,  // everybody that has no other one
    kUser,    // one user
    kGroup,   // the members of a group that trust one another
  };
  Kind kind = Kind::kCommon;
  std::uint32_t number = 0;  // uid or gid

  bool operator==(const Domain&) const = default;
  bool operator<(const Domain& other) const {
    return std::pair(kind, number) < std::pair(other.kind, other.number);
  }
};

inline std::string domain_name(const Domain& domain) {
  switch (domain.kind) {
    case Domain::Kind::kUser:
      return fmt::format("uid {}", domain.number);
    case Domain::Kind::kGroup:
      return fmt::format("gid {}", domain.number);
    case Domain::Kind::kCommon:
      break;
  }
  return "common";
}

// For a newer slated.
inline nlohmann::json to_json(const Domain& domain) {
  return {static_cast<int>(domain.kind), domain.number};
}
inline Domain domain_from(const nlohmann::json& state) {
  return {static_cast<Domain::Kind>(state.at(0).get<int>()), state.at(1).get<std::uint32_t>()};
}

}  // namespace slate::daemon
