// The inner loops of loads and stores: one element per lane, between registers and host memory.
// Each access is one relaxed atomic access, as several host threads run blocks of one kernel: a
// racing kernel gets some value, as on a GPU, and never a torn one.
#include <cstring>
#include <type_traits>

#include "device/sim/decode.h"

namespace slate::sim {
namespace {

__extension__ using U128 = unsigned __int128;

template <typename T>
T read(std::uint64_t address) {
  if constexpr (sizeof(T) == 16) {
    std::uint64_t words[2];
    words[0] = __atomic_load_n(reinterpret_cast<const std::uint64_t*>(address), __ATOMIC_ACQUIRE);
    words[1] =
        __atomic_load_n(reinterpret_cast<const std::uint64_t*>(address) + 1, __ATOMIC_ACQUIRE);
    return static_cast<U128>(words[1]) << 64 | words[0];
  } else {
    return __atomic_load_n(reinterpret_cast<const T*>(address), __ATOMIC_ACQUIRE);
  }
}

template <typename T>
void write(std::uint64_t address, T value) {
  if constexpr (sizeof(T) == 16) {
    auto* const words = reinterpret_cast<std::uint64_t*>(address);
    __atomic_store_n(words, static_cast<std::uint64_t>(value), __ATOMIC_RELEASE);
    __atomic_store_n(words + 1, static_cast<std::uint64_t>(value >> 64), __ATOMIC_RELEASE);
  } else {
    __atomic_store_n(reinterpret_cast<T*>(address), value, __ATOMIC_RELEASE);
  }
}

template <typename Memory, typename Register>
void load(void* lanes, const std::uint64_t* address, Mask active) {
  auto* const to = static_cast<Register*>(lanes);
  if (active == kAllLanes) {
    for (int i = 0; i < kWarpSize; ++i) to[i] = static_cast<Register>(read<Memory>(address[i]));
    return;
  }
  for (Mask rest = active; rest != 0; rest &= rest - 1) {
    const int i = __builtin_ctz(rest);
    to[i] = static_cast<Register>(read<Memory>(address[i]));
  }
}

template <typename Memory, typename Register>
void store(void* lanes, const std::uint64_t* address, Mask active) {
  const auto* const from = static_cast<const Register*>(lanes);
  for (Mask rest = active; rest != 0; rest &= rest - 1) {
    const int i = __builtin_ctz(rest);
    write<Memory>(address[i], static_cast<Memory>(from[i]));
  }
}

template <typename Memory>
TransferFn load_for(std::uint32_t width) {
  constexpr bool kSigned = std::is_signed_v<Memory>;
  if (width < sizeof(Memory)) return nullptr;
  switch (width) {
    case 2:
      return load<Memory, std::conditional_t<kSigned, std::int16_t, std::uint16_t>>;
    case 4:
      return load<Memory, std::conditional_t<kSigned, std::int32_t, std::uint32_t>>;
    case 8:
      return load<Memory, std::conditional_t<kSigned, std::int64_t, std::uint64_t>>;
    case 16:
      return load<Memory, U128>;
    default:
      return nullptr;
  }
}

template <typename Memory>
TransferFn store_for(std::uint32_t width) {
  if (width < sizeof(Memory)) return nullptr;
  switch (width) {
    case 2:
      return store<Memory, std::uint16_t>;
    case 4:
      return store<Memory, std::uint32_t>;
    case 8:
      return store<Memory, std::uint64_t>;
    case 16:
      return store<Memory, U128>;
    default:
      return nullptr;
  }
}

}  // namespace

TransferFn find_load(ptx::Type type, std::uint32_t width) {
  switch (type) {
    case ptx::Type::kS8:
      return load_for<std::int8_t>(width);
    case ptx::Type::kS16:
      return load_for<std::int16_t>(width);
    case ptx::Type::kS32:
      return load_for<std::int32_t>(width);
    default:
      break;
  }
  switch (ptx::type_bytes(type)) {
    case 1:
      return load_for<std::uint8_t>(width);
    case 2:
      return load_for<std::uint16_t>(width);
    case 4:
      return load_for<std::uint32_t>(width);
    case 8:
      return load_for<std::uint64_t>(width);
    case 16:
      return load_for<U128>(width);
    default:
      return nullptr;
  }
}

TransferFn find_store(std::uint32_t bytes, std::uint32_t width) {
  switch (bytes) {
    case 1:
      return store_for<std::uint8_t>(width);
    case 2:
      return store_for<std::uint16_t>(width);
    case 4:
      return store_for<std::uint32_t>(width);
    case 8:
      return store_for<std::uint64_t>(width);
    case 16:
      return store_for<U128>(width);
    default:
      return nullptr;
  }
}

}  // namespace slate::sim
