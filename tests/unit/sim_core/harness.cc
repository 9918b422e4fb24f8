#include "tests/unit/sim_core/harness.h"

#include <algorithm>
#include <new>

#include "injector/ptx/module.h"

namespace slate::sim::test {
namespace {

constexpr std::size_t kBytes = 2 * kChunkBytes;

}  // namespace

Memory64::Memory64()
    : bytes_(static_cast<std::byte*>(::operator new(kBytes, std::align_val_t(kChunkBytes)))),
      owners_(std::make_unique<std::atomic<std::uint16_t>[]>(2)) {
  std::memset(bytes_, 0, kBytes);
  owners_[0] = 7;
}

Memory64::~Memory64() {
  ::operator delete(bytes_, std::align_val_t(kChunkBytes));
}

MemoryView Memory64::view() const {
  MemoryView view;
  view.space_base = reinterpret_cast<std::uint64_t>(bytes_);
  view.space_bytes = kBytes;
  view.owners = owners_.get();
  view.tag = 7;
  view.globals = {view.space_base + kGlobalsOffset, 512u << 10};
  view.constants = {view.space_base + kGlobalsOffset + (512u << 10), 64u << 10};
  return view;
}

std::string entry(const std::string& body, const std::string& before) {
  return ".version 9.0\n.target sm_90\n.address_size 64\n" + before +
         "\n.visible .entry k(.param .u64 a, .param .u64 b)\n{\n"
         ".reg .b32 %r<64>; .reg .b64 %rd<64>; .reg .f32 %f<64>; .reg .f64 %fd<16>;\n"
         ".reg .pred %p<32>; .reg .b16 %rs<32>;\n"
         "ld.param.u64 %rd1, [a];\nld.param.u64 %rd2, [b];\nmov.u32 %r1, %tid.x;\n"
         "mul.wide.u32 %rd3, %r1, 4;\nadd.s64 %rd4, %rd1, %rd3;\nadd.s64 %rd5, %rd2, %rd3;\n" +
         body + "\nret;\n}\n";
}

Outcome Machine::run(const std::string& text, const Shape& setup) {
  Outcome outcome;
  auto parsed = ptx::parse(text);
  if (!parsed) return outcome.error = parsed.error(), outcome;
  const std::shared_ptr<const ptx::Module> module = std::move(*parsed);
  SymbolTable symbols;
  std::uint64_t next[2] = {memory.view().globals.base, memory.view().constants.base};
  for (const ptx::Variable& variable : module->variables) {
    const bool constant = variable.space == ptx::Space::kConst;
    if (!constant && variable.space != ptx::Space::kGlobal) continue;
    std::uint64_t& at = next[constant];
    symbols[std::string(variable.name)] = at;
    std::ranges::copy(variable.initial, reinterpret_cast<std::uint8_t*>(at));
    for (const auto& fixup : variable.fixups) {
      const auto value = function_address(*module, fixup.symbol);
      if (value) std::memcpy(reinterpret_cast<void*>(at + fixup.offset), &*value, sizeof *value);
    }
    at += (variable.bytes + 63) / 64 * 64;
  }
  const ptx::Function* first = nullptr;
  for (const ptx::Function& function : module->functions) {
    if (function.is_entry && !first) first = &function;
  }
  auto program = Program::decode(module, *first, symbols);
  if (!program) return outcome.error = program.error(), outcome;
  KernelLaunch launch;
  launch.program = *program;
  launch.grid = setup.grid;
  launch.block = setup.block;
  launch.dynamic_shared_bytes = setup.dynamic_shared;
  launch.parameters.resize(16);
  const std::uint64_t parameters[2] = {a(), b()};
  std::memcpy(launch.parameters.data(), parameters, sizeof parameters);
  launch.memory = memory.view();
  launch.print = [&outcome](std::string_view part) { outcome.printed += part; };
  launch.sm_count = 4;
  Schedule schedule;
  schedule.random = setup.seed.has_value();
  schedule.generator.seed(setup.seed.value_or(0));
  schedule.quantum = setup.quantum;
  const device::Dim3& grid = setup.grid;
  for (std::uint64_t i = 0; i < grid.count() && outcome.ok(); ++i) {
    const device::Dim3 index{static_cast<std::uint32_t>(i % grid.x),
                             static_cast<std::uint32_t>(i / grid.x % grid.y),
                             static_cast<std::uint32_t>(i / grid.x / grid.y)};
    Block block(launch, index, static_cast<std::uint32_t>(i % 4));
    auto state = Block::State::kRunnable;
    for (int turn = 0; turn < 100000 && state == Block::State::kRunnable; ++turn) {
      state = block.run(schedule, 4096);
    }
    outcome.thread_instructions += block.thread_instructions();
    if (state == Block::State::kFaulted) outcome.error = block.fault();
    if (state == Block::State::kRunnable)
      outcome.error = Error{ErrorCode::kLaunchTimeout, "no end"};
  }
  return outcome;
}

}  // namespace slate::sim::test
