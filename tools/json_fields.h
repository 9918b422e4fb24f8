// Reading slated's JSON answers: a field that is missing or of another type is none, so that a
// newer or older slated is survived.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace slate::tools {

/// 0 where there is none.
inline std::uint64_t number(const nlohmann::json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number_unsigned() ? found->get<std::uint64_t>() : 0;
}

inline std::optional<double> real(const nlohmann::json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number()) return std::nullopt;
  return found->get<double>();
}

/// "-" where there is none.
inline std::string text(const nlohmann::json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_string()) return "-";
  return found->get_ref<const std::string&>();
}

inline bool flag(const nlohmann::json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_boolean() && found->get<bool>();
}

/// The whole numbers of an array.
inline std::vector<std::uint64_t> numbers(const nlohmann::json& object, const char* key) {
  std::vector<std::uint64_t> found;
  const auto array = object.find(key);
  if (array == object.end() || !array->is_array()) return found;
  for (const nlohmann::json& part : *array) {
    if (part.is_number_unsigned()) found.push_back(part.get<std::uint64_t>());
  }
  return found;
}

/// The objects of an array.
inline std::vector<nlohmann::json> list(const nlohmann::json& object, const char* key) {
  std::vector<nlohmann::json> objects;
  const auto found = object.find(key);
  if (found == object.end() || !found->is_array()) return objects;
  for (const nlohmann::json& part : *found) {
    if (part.is_object()) objects.push_back(part);
  }
  return objects;
}

}  // namespace slate::tools
