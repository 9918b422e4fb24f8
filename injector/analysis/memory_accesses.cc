#include "injector/analysis/memory_accesses.h"

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <string_view>

#include "injector/analysis/facts.h"
#include "injector/analysis/register_accesses.h"
#include "injector/ptx/words.h"

namespace slate::injector {
namespace {

using ptx::Instruction;
using ptx::is_one_of;
using ptx::Operand;
using ptx::Space;
using By = MemoryAccess::By;

std::optional<Space> space_named(std::string_view word) {
  if (word == "global" || word.starts_with("global::")) return Space::kGlobal;
  if (word == "shared" || word.starts_with("shared::")) return Space::kShared;
  if (word == "local" || word.starts_with("local::")) return Space::kLocal;
  if (word == "param" || word.starts_with("param::")) return Space::kParam;
  if (word == "const" || word.starts_with("const::")) return Space::kConst;
  return std::nullopt;
}

/// In the order of the text.
std::vector<Space> spaces_of(const Instruction& instruction) {
  std::vector<Space> spaces;
  for (const std::string_view word : instruction.modifiers) {
    if (const auto space = space_named(word)) spaces.push_back(*space);
  }
  return spaces;
}

std::vector<const Operand*> places_of(const Instruction& instruction) {
  std::vector<const Operand*> places;
  for (const Operand& operand : instruction.operands) {
    if (operand.kind == Operand::Kind::kAddress) places.push_back(&operand);
  }
  return places;
}

bool has_any(const Instruction& instruction, std::initializer_list<std::string_view> words) {
  return std::ranges::any_of(instruction.modifiers,
                             [&](std::string_view word) { return is_one_of(word, words); });
}

/// Arithmetic on halves and bytes of registers.
bool is_video(std::string_view opcode) {
  if (opcode.ends_with('2') || opcode.ends_with('4')) opcode.remove_suffix(1);
  return is_one_of(opcode, {"vadd", "vsub", "vabsdiff", "vavrg", "vmin", "vmax", "vshl", "vshr",
                            "vmad", "vset"});
}

bool is_ordered(const Instruction& instruction) {
  return has_any(instruction,
                 {"volatile", "acquire", "release", "acq_rel", "relaxed", "mmio", "cv", "sc"});
}

/// cp.async and its kin: where each side is, is in the text.
std::vector<MemoryAccess> copies(const Instruction& instruction) {
  const auto spaces = spaces_of(instruction);
  const auto places = places_of(instruction);
  const auto place = [&](std::size_t i) { return i < places.size() ? places[i] : nullptr; };
  const bool is_tensor = instruction.has("tensor");
  const By by = is_tensor ? By::kTensorMap : By::kAddress;
  if (instruction.has("prefetch")) return {{.by = by, .place = place(0)}};
  std::vector<MemoryAccess> found;
  if (instruction.opcode == "cp" && spaces.empty()) return found;  // waits, and ends of groups
  const bool reduces = instruction.has("reduce");
  // Of a reduction the first of its names is the destination's, too.
  const bool to_global = !spaces.empty() && spaces.front() == Space::kGlobal;
  const bool from_global = spaces.size() > 1 && spaces[1] == Space::kGlobal;
  if (to_global) {
    found.push_back(
        {.by = by, .place = place(0), .reads = reduces, .writes = true, .atomic = reduces});
  }
  if (from_global) {
    found.push_back({.by = to_global ? By::kAddress : by, .place = place(1), .reads = true});
  }
  return found;
}

/// Textures and surfaces: [handle, {coordinates}] and the like.
std::vector<MemoryAccess> images(const Instruction& instruction) {
  const std::string_view opcode = instruction.opcode;
  const auto places = places_of(instruction);
  MemoryAccess access{.by = By::kTexture, .place = places.empty() ? nullptr : places.front()};
  access.writes = opcode == "sust" || opcode == "sured";
  access.atomic = opcode == "sured";
  access.reads = !access.writes || access.atomic;
  return {access};
}

MemoryAccess plain_access(const Instruction& instruction) {
  const std::string_view opcode = instruction.opcode;
  const auto places = places_of(instruction);
  MemoryAccess access{.place = places.empty() ? nullptr : places.front()};
  access.atomic = is_one_of(opcode, {"atom", "red"}) ||
                  (opcode == "multimem" && instruction.has("red")) ||
                  (opcode == "tensormap" && instruction.has("replace"));
  access.writes = access.atomic || is_one_of(opcode, {"st", "discard", "tensormap"}) ||
                  instruction.has("store") || (opcode == "multimem" && instruction.has("st"));
  access.reads = access.atomic || is_one_of(opcode, {"ld", "ldu"}) ||
                 (opcode == "wmma" && instruction.has("load")) || instruction.has("ld_reduce");
  access.ordered = is_ordered(instruction);
  access.is_constant = space_of(instruction) == Space::kConst;
  return access;
}

}  // namespace

ptx::Space space_of(const Instruction& instruction) {
  const auto spaces = spaces_of(instruction);
  return spaces.empty() ? Space::kNone : spaces.front();
}

std::vector<MemoryAccess> memory_accesses(const Instruction& instruction) {
  const std::string_view opcode = instruction.opcode;
  if (opcode == "cp") return copies(instruction);
  if (is_one_of(opcode, {"tex", "tld4", "suld", "sust", "sured"})) return images(instruction);
  if (opcode == "tensormap" && instruction.has("cp_fenceproxy")) return copies(instruction);
  const bool is_fragment =
      opcode == "wmma" && (instruction.has("load") || instruction.has("store"));
  if (!is_fragment && !is_one_of(opcode, {"ld", "ldu", "st", "atom", "red", "multimem", "tensormap",
                                          "prefetch", "prefetchu", "discard", "applypriority"})) {
    return {};
  }
  const Space space = space_of(instruction);
  if (space == Space::kShared || space == Space::kParam || space == Space::kLocal) return {};
  return {plain_access(instruction)};
}

bool is_understood(const Instruction& instruction) {
  const std::string_view opcode = instruction.opcode;
  if (passes_on(instruction) || is_block_barrier(instruction) || is_warp_wide(instruction) ||
      is_video(opcode)) {
    return true;
  }
  return is_one_of(
      opcode,
      {"ld",           "ldu",          "st",      "atom",          "red",        "multimem",
       "prefetch",     "prefetchu",    "discard", "applypriority", "cp",         "tex",
       "tld4",         "suld",         "sust",    "sured",         "tensormap",  "bra",
       "brx",          "call",         "ret",     "exit",          "trap",       "brkpt",
       "bar",          "barrier",      "membar",  "fence",         "activemask", "nanosleep",
       "pmevent",      "mbarrier",     "tcgen05", "setmaxnreg",    "alloca",     "stacksave",
       "stackrestore", "createpolicy", "txq",     "suq",           "istypep",    "griddepcontrol"});
}

}  // namespace slate::injector
