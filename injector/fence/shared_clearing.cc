#include "injector/fence/shared_clearing.h"

#include <algorithm>

namespace slate::injector {
namespace {

// Stores of one thread for one variable: more take longer than a barrier.
constexpr std::uint64_t kMostRounds = 8;

using Part = SharedClearing::Part;

/// Whether each piece is stored to by no other thread than the one that clears it, in front of the
/// first barrier.
bool is_apart(const Part& part, std::uint32_t variable, std::uint32_t threads,
              const std::vector<FirstStore>& stores) {
  return std::ranges::all_of(stores, [&](const FirstStore& store) {
    if (store.bytes.variable != variable) return true;
    const std::uint64_t first = std::max(store.bytes.first, part.first);
    const std::uint64_t end = std::min(store.bytes.end, part.end);
    for (std::uint64_t byte = first; byte < end; ++byte) {
      if ((byte - part.first) / part.piece % threads != store.thread) return false;
    }
    return true;
  });
}

/// The bytes in the largest pieces that there can be.
std::optional<Part> part_of(const SharedVariables& variables, const SharedRange& bytes,
                            std::uint32_t threads, const std::vector<FirstStore>& stores) {
  const ptx::Variable& variable = *variables.all()[bytes.variable];
  for (const std::uint32_t piece : {16u, 8u, 4u, 1u}) {
    const Part part{.variable = &variable,
                    .first = bytes.first / piece * piece,
                    .end = (bytes.end + piece - 1) / piece * piece,
                    .piece = piece};
    const bool fits = variable.align % piece == 0 && part.end <= variables.bytes(bytes.variable) &&
                      part.end - part.first <= kMostRounds * threads * piece;
    if (fits && is_apart(part, bytes.variable, threads, stores)) return part;
  }
  return std::nullopt;
}

/// Collects what has to be cleared.
class Chooser {
 public:
  Chooser(const SharedVariables& variables, const Rehearsal& rehearsal)
      : variables_(variables),
        rehearsal_(rehearsal),
        is_wanted_(variables.all().size(), false),
        is_whole_(variables.all().size(), false) {}

  /// False: the block may read what no barrier has made ready.
  bool add(const SharedRead& read) {
    const Rehearsed& all = rehearsal_.at(read.at);
    if (!all.is_reached) return true;
    if (all.is_in_front) return false;
    const auto index =
        read.variable == nullptr ? std::nullopt : variables_.index_of(*read.variable);
    if (all.is_within) {
      for (const std::uint32_t each : all.variables) is_wanted_[each] = true;
    } else if (index) {
      is_wanted_[*index] = is_whole_[*index] = true;
    } else {
      reads_anywhere_ = true;
    }
    return true;
  }

  bool reads_anywhere() const { return reads_anywhere_; }

  /// Requires: reads_anywhere(). Returns the bytes of all variables; none: something may lie
  /// between them.
  std::optional<std::uint64_t> want_all() {
    is_wanted_.assign(is_wanted_.size(), true);
    is_whole_ = is_wanted_;
    const auto& all = variables_.all();
    // Dynamic memory is the last, and begins with a multiple of 16 bytes.
    std::uint64_t align = variables_.has_dynamic() ? 16 : 4, bytes = 0;
    for (const ptx::Variable* each : all) align = std::max<std::uint64_t>(align, each->align);
    for (std::uint32_t i = 0; i < all.size(); ++i) {
      const bool is_last = all.size() == 1 || all[i]->bytes == 0;
      if (variables_.bytes(i) % (is_last ? 4 : align) != 0) return std::nullopt;
      bytes += variables_.bytes(i);
    }
    return bytes;
  }

  /// The bytes of a variable that may be read, and are not surely filled: from the first to the
  /// last one. `fills`: whether those are not that the block fills.
  SharedRange unknown_bytes(std::uint32_t variable, bool fills) const {
    SharedRange found{.variable = variable};
    if (!is_wanted_[variable]) return found;
    for (std::uint64_t byte = 0; byte < variables_.bytes(variable); ++byte) {
      const bool is_read = is_whole_[variable] || rehearsal_.is_read(variable, byte);
      if (!is_read || (fills && rehearsal_.is_filled(variable, byte))) continue;
      if (found.end == 0) found.first = byte;
      found.end = byte + 1;
    }
    return found;
  }

 private:
  const SharedVariables& variables_;
  const Rehearsal& rehearsal_;
  std::vector<bool> is_wanted_;  // by variable: whether some of it is read
  std::vector<bool> is_whole_;   // by variable: whether any byte of it may be
  bool reads_anywhere_ = false;
};

}  // namespace

SharedClearing shared_clearing(const SharedVariables& variables, const Rehearsal& rehearsal,
                               std::span<const std::uint32_t> stores,
                               std::span<const SharedRead> reads, const std::vector<bool>& ends,
                               const ThreadStep::Index& block) {
  const SharedClearing whole;
  if (!rehearsal.meets_first()) return whole;
  Chooser chooser(variables, rehearsal);
  for (const SharedRead& read : reads) {
    if (!chooser.add(read)) return whole;
  }
  bool fence_ends = false;
  for (std::uint32_t i = 0; i < ends.size(); ++i)
    fence_ends |= ends[i] && rehearsal.at(i).is_in_front;
  SharedClearing result{.is_whole = false,
                        .threads = block[0] * block[1] * block[2],
                        .block = block,
                        .may_end_first = fence_ends || rehearsal.may_end_first()};
  if (chooser.reads_anywhere()) {
    result.expected = chooser.want_all();
    // Each thread clears 4 bytes behind the variables.
    if (!result.expected || result.threads < kSharedUnit / 4) return whole;
  }
  const bool stores_anywhere = std::ranges::any_of(stores, [&](std::uint32_t at) {
    return rehearsal.at(at).is_in_front && !rehearsal.at(at).is_within;
  });
  for (std::uint32_t i = 0; i < variables.all().size(); ++i) {
    const SharedRange bytes = chooser.unknown_bytes(i, !fence_ends);
    if (bytes.end == 0) continue;
    const auto part = part_of(variables, bytes, result.threads, rehearsal.first_stores());
    if (!part || stores_anywhere) return whole;
    result.parts.push_back(*part);
  }
  return result;
}

}  // namespace slate::injector
