#include "client/session/program_arrays.h"

#include <algorithm>

namespace slate::client {
namespace {

/// `levels`: 0 for an array that is not mipmapped.
Allowed<std::uint64_t> create(Session& session, const ArrayWish& wish, std::uint32_t levels) {
  if ((wish.flags & kArrayMemoryLater) != 0) {
    return std::unexpected<Refused>(
        Error{ErrorCode::kNotSupported, "arrays whose memory is mapped later are not supported"});
  }
  if (!wish.format) return std::unexpected(wish.format.error());
  const ArraySpec spec{*wish.format, wish.extent, wish.flags, levels};
  if (auto ok = check_array(spec, session.device()); !ok) return std::unexpected(ok.error());
  return session.arrays().create(spec);
}

}  // namespace

Allowed<std::uint64_t> create_program_array(Session& session, const ArrayWish& wish) {
  return create(session, wish, 0);
}

Allowed<std::uint64_t> create_mipmapped_array(Session& session, const ArrayWish& wish,
                                              std::uint32_t levels) {
  const std::uint32_t most = most_levels({{}, wish.extent, wish.flags, 0});
  return create(session, wish, std::clamp(levels, 1u, most));
}

}  // namespace slate::client
