#include "device/sim/modifiers.h"

#include <algorithm>
#include <initializer_list>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

namespace slate::sim {
namespace {

using Words = std::unordered_set<std::string_view>;

const std::initializer_list<std::string_view> kSpaces = {
    "global",       "shared",      "shared::cta", "shared::cluster", "local", "param",
    "param::entry", "param::func", "const"};
const std::initializer_list<std::string_view> kOrders = {
    "weak", "volatile", "relaxed", "acquire", "release", "acq_rel",
    "sc",   "mmio",     "cta",     "cluster", "gpu",     "sys"};
const std::initializer_list<std::string_view> kCaching = {"ca",
                                                          "cg",
                                                          "cs",
                                                          "lu",
                                                          "cv",
                                                          "wb",
                                                          "wt",
                                                          "nc",
                                                          "unified",
                                                          "L1::evict_normal",
                                                          "L1::evict_unchanged",
                                                          "L1::evict_first",
                                                          "L1::evict_last",
                                                          "L1::no_allocate",
                                                          "L2::cache_hint",
                                                          "L2::64B",
                                                          "L2::128B",
                                                          "L2::256B",
                                                          "L2::evict_normal",
                                                          "L2::evict_first",
                                                          "L2::evict_last"};

Words join(std::initializer_list<std::initializer_list<std::string_view>> lists) {
  Words words;
  for (const auto& list : lists) words.insert(list.begin(), list.end());
  return words;
}

const std::unordered_map<std::string_view, Words>& known_words() {
  static const Words access = join({kSpaces, kOrders, kCaching, {"v2", "v4", "v8"}});
  static const Words atomic = join({kSpaces,
                                    kOrders,
                                    {"add", "and", "or", "xor", "exch", "cas", "min", "max", "inc",
                                     "dec", "noftz", "L2::cache_hint"}});
  static const Words barrier = {"cta",  "cluster", "sync",    "arrive", "wait",
                                "red",  "popc",    "and",     "or",     "aligned",
                                "warp", "release", "acquire", "relaxed"};
  static const Words surface =
      join({kCaching, {"b", "1d", "2d", "3d", "a1d", "a2d", "v2", "v4", "trap", "clamp", "zero"}});
  static const Words query = {
      "width", "height", "depth", "array_size", "num_mipmap_levels", "normalized_coords"};
  static const Words uniform = {"uni"};
  static const std::unordered_map<std::string_view, Words> table = {
      {"ld", access},
      {"ldu", access},
      {"st", access},
      {"atom", atomic},
      {"red", atomic},
      {"mov", {}},
      {"cvta", join({kSpaces, {"to"}})},
      {"isspacep", join({kSpaces})},
      {"mapa", {"shared::cluster"}},
      {"getctarank", {"shared::cluster"}},
      {"cp",
       join({kSpaces,
             kCaching,
             {"async", "bulk", "commit_group", "wait_group", "wait_all", "mbarrier", "arrive",
              "noinc", "mbarrier::complete_tx::bytes", "bulk_group", "read", "prefetch", "L2"}})},
      {"tex", {"level", "base", "1d", "2d", "3d", "a1d", "a2d", "cube", "acube", "v4"}},
      {"tld4", {"r", "g", "b", "a", "2d", "a2d", "v4"}},
      {"txq", query},
      {"suq", query},
      {"suld", surface},
      {"sust",
       join({kCaching,
             {"b", "p", "1d", "2d", "3d", "a1d", "a2d", "v2", "v4", "trap", "clamp", "zero"}})},
      {"bra", uniform},
      {"brx", {"idx", "uni"}},
      {"call", uniform},
      {"ret", uniform},
      {"exit", {}},
      {"trap", {}},
      {"bar", barrier},
      {"barrier", barrier},
      {"shfl", {"sync", "up", "down", "bfly", "idx"}},
      {"vote", {"sync", "all", "any", "uni", "ballot"}},
      {"match", {"sync", "any", "all"}},
      {"redux", {"sync", "add", "min", "max", "and", "or", "xor", "abs", "NaN"}},
      {"elect", {"sync"}},
      {"activemask", {}},
      {"nanosleep", {}},
  };
  return table;
}

}  // namespace

bool knows_modifiers(const ptx::Instruction& instruction) {
  const auto words = known_words().find(instruction.opcode);
  if (words == known_words().end()) return true;
  return std::ranges::all_of(instruction.modifiers, [&](std::string_view word) {
    return words->second.contains(word) || ptx::parse_type(word) != ptx::Type::kNone;
  });
}

}  // namespace slate::sim
