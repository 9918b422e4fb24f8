// What programs pass, as numbers: enums, pointers, places of memory.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

namespace slate::client {

/// The number in an enum of CUDA's. A program may have put one there that is none of the enum's.
template <typename Enum>
requires std::is_enum_v<Enum>
int number_of(const Enum& value) {
  int number = 0;
  static_assert(sizeof(number) == sizeof(value));
  std::memcpy(&number, &value, sizeof(number));
  return number;
}

inline std::uint64_t address_of(const void* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer);
}
inline std::uint64_t address_of(unsigned long long address) {
  return address;
}
inline void* pointer_to(std::uint64_t address) {
  return reinterpret_cast<void*>(static_cast<std::uintptr_t>(address));
}
/// An address as an API has it: as a pointer or as a number.
template <typename Address>
Address address_as(std::uint64_t address) {
  if constexpr (std::is_pointer_v<Address>) {
    return static_cast<Address>(pointer_to(address));
  } else {
    return address;
  }
}

/// A place of memory as programs name it, in any of CUDA's APIs. They pass any numbers.
struct LocationName {
  int type = 0;
  int id = 0;
};
inline constexpr int kLocationOfDevice = 1;  // CU_MEM_LOCATION_TYPE_*
inline constexpr int kLocationOfHost = 2;

template <typename Location>
LocationName location_of(const Location& location) {
  return {number_of(location.type), location.id};
}
/// Whether it is the one device.
template <typename Location>
bool is_device(const Location& location) {
  const LocationName its = location_of(location);
  return its.type == kLocationOfDevice && its.id == 0;
}

}  // namespace slate::client
