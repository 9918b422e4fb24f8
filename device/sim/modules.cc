#include "device/sim/modules.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "device/sim/occupancy.h"

namespace slate::sim {
namespace {

using device::Address;
using device::AddressRange;

constexpr std::uint64_t kConstantBytes = 64 << 10;
// Variables and the two spaces begin on this boundary at least, as cudaGetSymbolAddress users
// expect.
constexpr std::uint64_t kVariableAlign = 16;
constexpr std::uint64_t kSpaceAlign = 256;
constexpr std::uint64_t kMaxVariableBytes = 1ull << 40;
constexpr std::uint32_t kNewestPtx = 9;  // major version, of CUDA 13

std::uint64_t round_up(std::uint64_t value, std::uint64_t to) {
  return (value + to - 1) / to * to;
}

// A target without suffix runs on every later device; `a` only on the very one, `f` on its family.
bool runs_on(const ptx::Module& module, const Settings& settings) {
  const std::uint32_t cc = settings.cc_major * 10 + settings.cc_minor;
  if (module.target.ends_with('a')) return module.sm == cc;
  if (module.target.ends_with('f')) return module.sm <= cc && module.sm / 10 == settings.cc_major;
  return module.sm <= cc;
}

std::string image_text(std::span<const std::byte> image) {
  std::string text(reinterpret_cast<const char*>(image.data()), image.size());
  while (!text.empty() && text.back() == '\0') text.pop_back();
  return text;
}

device::Dim3 required_block(const ptx::Function& entry) {
  const auto* const directive = entry.directive("reqntid");
  if (directive == nullptr) return {0, 0, 0};
  std::uint32_t sizes[3] = {1, 1, 1};
  for (std::size_t i = 0; i < directive->values.size() && i < 3; ++i) {
    sizes[i] = static_cast<std::uint32_t>(std::min<std::uint64_t>(directive->values[i], ~0u));
  }
  return {sizes[0], sizes[1], sizes[2]};
}

bool is_placed(const ptx::Variable& variable) {
  return !variable.is_extern &&
         (variable.space == ptx::Space::kGlobal || variable.space == ptx::Space::kConst);
}

// Extends `bytes` by one variable and returns its offset.
std::uint64_t append(std::uint64_t& bytes, const ptx::Variable& variable) {
  const std::uint64_t align = std::max<std::uint64_t>(variable.align, kVariableAlign);
  const std::uint64_t offset = round_up(bytes, align);
  bytes = offset + variable.bytes;
  return offset;
}

Result<std::uint64_t> fixup_value(const ptx::Module& module, const SymbolTable& symbols,
                                  const ptx::Variable& variable,
                                  const ptx::Variable::Fixup& fixup) {
  const auto symbol = symbols.find(std::string(fixup.symbol));
  if (symbol != symbols.end()) return symbol->second + static_cast<std::uint64_t>(fixup.addend);
  if (const auto address = function_address(module, fixup.symbol)) return *address;
  return fail(ErrorCode::kInvalidPtx,
              fmt::format("line {}: the initial value of {} names {}, which has no address",
                          variable.line, variable.name, fixup.symbol));
}

}  // namespace

Modules::Modules(const Settings& settings, Memory& memory) : settings_(settings), memory_(memory) {}

Modules::~Modules() {
  for (const auto& [handle, module] : modules_) memory_.unreserve(module.reservation);
}

Result<device::Module> Modules::load_ptx(std::span<const std::byte> image) {
  auto parsed = ptx::parse(image_text(image), ptx::ParseLimits::for_text(image.size()));
  if (!parsed) return std::unexpected(std::move(parsed.error()));
  Loaded loaded;
  loaded.ptx = std::move(*parsed);
  loaded.host_bytes = loaded.ptx->text.size() + loaded.ptx->tree_bytes;
  if (loaded.ptx->version_major > kNewestPtx) {
    return fail(ErrorCode::kInvalidPtx,
                fmt::format("PTX of version {}.{} is newer than {}.x", loaded.ptx->version_major,
                            loaded.ptx->version_minor, kNewestPtx));
  }
  if (!runs_on(*loaded.ptx, settings_)) {
    return fail(ErrorCode::kNoKernelImage,
                fmt::format("PTX for {} does not run on compute capability {}.{}",
                            loaded.ptx->target, settings_.cc_major, settings_.cc_minor));
  }
  Result<void> placed = place_variables(loaded);
  if (placed) placed = initialise(loaded);
  if (!placed) {
    memory_.unreserve(loaded.reservation);
    return std::unexpected(std::move(placed.error()));
  }
  MutexLock lock(mutex_);
  const device::Module module{next_handle_++};
  modules_.emplace(module, std::move(loaded));
  return module;
}

Result<void> Modules::place_variables(Loaded& module) {
  std::uint64_t bytes[2] = {};  // of globals, constants
  for (const ptx::Variable& variable : module.ptx->variables) {
    if (!is_placed(variable)) continue;
    if (variable.bytes > kMaxVariableBytes) {
      return fail(ErrorCode::kOutOfMemory,
                  fmt::format("variable {} of {} bytes", variable.name, variable.bytes));
    }
    const bool is_constant = variable.space == ptx::Space::kConst;
    const std::uint64_t offset = append(bytes[is_constant], variable);
    module.symbols->emplace(variable.name, offset);
    if (bytes[is_constant] > kMaxVariableBytes) break;  // map() will say so
  }
  if (bytes[1] > kConstantBytes) {
    return fail(ErrorCode::kInvalidPtx, fmt::format("{} bytes of constants; there is room for {}",
                                                    bytes[1], kConstantBytes));
  }
  const std::uint64_t constants_offset = round_up(bytes[0], kSpaceAlign);
  const std::uint64_t total = round_up(constants_offset + bytes[1], kChunkBytes);
  if (total == 0) return {};
  Result<Address> base = memory_.reserve(total);
  if (!base) return std::unexpected(std::move(base.error()));
  module.reservation = {*base, total};
  if (Result<void> mapped = memory_.map(module.reservation); !mapped) return mapped;
  module.globals = {*base, bytes[0]};
  module.constants = {*base + constants_offset, bytes[1]};
  for (const ptx::Variable& variable : module.ptx->variables) {
    if (!is_placed(variable)) continue;
    const bool is_constant = variable.space == ptx::Space::kConst;
    (*module.symbols)[std::string(variable.name)] += is_constant ? module.constants.base : *base;
  }
  return {};
}

Result<void> Modules::initialise(const Loaded& module) {
  for (const ptx::Variable& variable : module.ptx->variables) {
    if (!is_placed(variable)) continue;
    auto* const contents =
        reinterpret_cast<std::byte*>(module.symbols->at(std::string(variable.name)));
    const std::uint64_t initial = std::min<std::uint64_t>(variable.initial.size(), variable.bytes);
    if (initial > 0) std::memcpy(contents, variable.initial.data(), initial);
    for (const auto& fixup : variable.fixups) {
      auto value = fixup_value(*module.ptx, *module.symbols, variable, fixup);
      if (!value) return std::unexpected(std::move(value.error()));
      const std::uint64_t bits = fixup.shift < 64 ? *value >> fixup.shift : 0;
      if (fixup.bytes > sizeof bits || fixup.offset > variable.bytes ||
          fixup.bytes > variable.bytes - fixup.offset) {
        return fail(ErrorCode::kInvalidPtx, fmt::format("line {}: {}: address outside the variable",
                                                        variable.line, variable.name));
      }
      std::memcpy(contents + fixup.offset, &bits, fixup.bytes);
    }
  }
  return {};
}

void Modules::unload(device::Module module) {
  MutexLock lock(mutex_);
  const auto found = modules_.find(module);
  if (found == modules_.end()) return;
  for (const auto& [name, function] : found->second.functions) functions_.erase(function);
  memory_.unreserve(found->second.reservation);
  modules_.erase(found);
}

std::uint64_t Modules::host_bytes(device::Module module) {
  MutexLock lock(mutex_);
  const auto loaded = find(module);
  return loaded ? (*loaded)->host_bytes : 0;
}

Result<Modules::Loaded*> Modules::find(device::Module module) {
  const auto found = modules_.find(module);
  if (found == modules_.end()) return fail(ErrorCode::kInvalidHandle, "sim: no such module");
  return &found->second;
}

Result<device::Function> Modules::find_function(device::Module module, const std::string& name) {
  MutexLock lock(mutex_);
  auto loaded = find(module);
  if (!loaded) return std::unexpected(std::move(loaded.error()));
  if (const auto known = (*loaded)->functions.find(name); known != (*loaded)->functions.end()) {
    return known->second;
  }
  const auto ptx = (*loaded)->ptx;
  const auto symbols = (*loaded)->symbols;
  // Decoding may take long, and every launch needs the lock.
  lock.unlock();
  const ptx::Function* entry = ptx->find_entry(name);
  if (entry == nullptr || !entry->has_body) {
    return fail(ErrorCode::kSymbolNotFound, fmt::format("no kernel {} in the module", name));
  }
  auto program = Program::decode(ptx, *entry, *symbols, settings_.strict);
  if (!program) return std::unexpected(std::move(program.error()));
  lock.lock();
  loaded = find(module);
  if (!loaded) return std::unexpected(std::move(loaded.error()));
  // Somebody else may have asked for it meanwhile.
  if (const auto known = (*loaded)->functions.find(name); known != (*loaded)->functions.end()) {
    return known->second;
  }
  if ((*loaded)->host_bytes + (*program)->bytes() > kMostHostBytes) {
    return fail(ErrorCode::kLimit,
                fmt::format("no room for {} beside the module's other kernels", name));
  }
  (*loaded)->host_bytes += (*program)->bytes();
  const device::Function function{next_handle_++};
  const std::uint32_t max_dynamic = (*program)->info().max_dynamic_shared_bytes;
  functions_.emplace(
      function, Entry{module, std::move(*program), max_dynamic, false, required_block(*entry)});
  (*loaded)->functions.emplace(name, function);
  return function;
}

Result<AddressRange> Modules::find_global(device::Module module, const std::string& name) {
  MutexLock lock(mutex_);
  auto loaded = find(module);
  if (!loaded) return std::unexpected(std::move(loaded.error()));
  const auto symbol = (*loaded)->symbols->find(name);
  if (symbol == (*loaded)->symbols->end()) {
    return fail(ErrorCode::kSymbolNotFound, fmt::format("no variable {} in the module", name));
  }
  return AddressRange{symbol->second, (*loaded)->ptx->find_variable(name)->bytes};
}

Result<void> Modules::set_attribute(device::Function function, FunctionAttribute attribute,
                                    std::int32_t value) {
  MutexLock lock(mutex_);
  const auto found = functions_.find(function);
  if (found == functions_.end()) return fail(ErrorCode::kInvalidHandle, "sim: no such function");
  Entry& entry = found->second;
  const device::FunctionInfo& info = entry.program->info();
  switch (attribute) {
    case FunctionAttribute::kMaxDynamicShared:
      if (info.static_shared_bytes > kSharedPerBlockOptIn || value < 0 ||
          static_cast<std::uint32_t>(value) > kSharedPerBlockOptIn - info.static_shared_bytes) {
        return fail(
            ErrorCode::kInvalidValue,
            fmt::format("{}: {} bytes of dynamic shared memory beside {} static ones exceed {}",
                        info.name, value, info.static_shared_bytes, kSharedPerBlockOptIn));
      }
      entry.max_dynamic_shared_bytes = static_cast<std::uint32_t>(value);
      return {};
    case FunctionAttribute::kNonPortableClusters:
      entry.non_portable_clusters = value != 0;
      return {};
    case FunctionAttribute::kCarveout:
    case FunctionAttribute::kClusterScheduling:
      return {};
    case FunctionAttribute::kClusterWidth:
    case FunctionAttribute::kClusterHeight:
    case FunctionAttribute::kClusterDepth:
      break;
  }
  return fail(ErrorCode::kInvalidValue, "an attribute that cannot be set of a kernel");
}

Result<LaunchTarget> Modules::target(device::Function function) {
  MutexLock lock(mutex_);
  const auto found = functions_.find(function);
  if (found == functions_.end()) return fail(ErrorCode::kInvalidHandle, "sim: no such function");
  const Entry& entry = found->second;
  const Loaded& loaded = modules_.at(entry.module);
  LaunchTarget target{entry.program, entry.program->info(), loaded.globals, loaded.constants,
                      entry.required_block};
  target.info.max_dynamic_shared_bytes = entry.max_dynamic_shared_bytes;
  target.info.non_portable_clusters = entry.non_portable_clusters;
  return target;
}

}  // namespace slate::sim
