// FunctionDecoder: turns the PTX of one function into operations of Code. decode_operand.cc finds
// operands, decode_data.cc and decode_flow.cc know the instructions, layout.cc orders the blocks
// and places the registers. Used only by program.cc. Thread: one.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "device/sim/code.h"
#include "device/sim/sampler.h"
#include "injector/ptx/module.h"

namespace slate::sim {

/// Beginning of function pointers.
inline constexpr std::uint64_t kCodeWindow = 0x0300'0000'0000'0000u;
/// Most parameter bytes of an entry, as in CUDA.
inline constexpr std::uint64_t kMaxParameterBytes = 32764;
inline constexpr std::uint32_t kMaxStaticShared = 227u << 10;
inline constexpr std::uint32_t kDefaultSharedLimit = 48u << 10;

/// State that the functions of one program share while they are decoded.
struct DecodeContext {
  const ptx::Module& module;
  const SymbolTable& symbols;
  Code& code;
  std::unordered_map<const ptx::Variable*, std::uint32_t> shared_offsets;
  /// Index into Code::functions.
  std::unordered_map<std::string_view, std::int32_t> function_indices;
  std::map<std::pair<std::uint64_t, std::uint32_t>, Ref> constants;  // place by value and width

  /// A constant whose lanes all hold `value`; `width` as in Argument.
  Ref constant(std::uint64_t value, std::uint32_t width);
  Ref lane_constant(const std::uint32_t (&lanes)[kWarpSize]);
  std::unordered_map<Ref, std::uint8_t> constant_widths;

 private:
  Ref append(const void* lanes, std::size_t bytes);
};

/// Places all .shared variables that `functions` name. Sets static_shared and
/// dynamic_shared_offset.
void place_shared(DecodeContext& context, const std::vector<const ptx::Function*>& functions);

/// Bytes a lane that a register of `type` is stored in; 0 for a predicate.
std::uint32_t storage_width(ptx::Type type);

/// An argument's bit in Op::defs and Op::uses.
constexpr std::uint8_t bit(unsigned argument) {
  return static_cast<std::uint8_t>(1u << argument);
}

class FunctionDecoder {
 public:
  FunctionDecoder(DecodeContext& context, const ptx::Function& function, FunctionCode& out);

  /// Appends the function's operations to Code::ops. Errors: kOutOfResources when the frame is
  /// beyond reason.
  Result<void> decode();
  /// Most 32-bit registers that are alive at the same time.
  std::uint32_t peak_registers() const { return peak_registers_; }

 private:
  using Handler = void (FunctionDecoder::*)(const ptx::Instruction&);
  static const std::unordered_map<std::string_view, Handler>& handlers();

  void declare_variables();
  void declare_parameters(const std::vector<ptx::Variable>& from, std::vector<Argument>& to,
                          std::uint32_t base_key);
  void decode_instruction(const ptx::Instruction& instruction);
  void resolve_targets();

  // --- decode_operand.cc
  Op& emit(Kind kind);
  /// Appends `op` with the kind, guard and line of the current instruction.
  void emit_as(Kind kind, Op op);
  /// Marks the current instruction as unknown.
  void unsupported() { bad_ = true; }
  Ref new_register(std::uint32_t width);
  /// The register that a symbol names; kNoRef if it names none.
  Ref register_of(const ptx::Operand& operand) const;
  const ptx::Variable* variable_of(const ptx::Operand& operand) const;
  /// The values inside braces, the components of a vector register, or the operand itself.
  std::vector<ptx::Operand> parts_of(const ptx::Operand& operand) const;
  /// Index of the function's own variable in registers_ and places_.
  static std::size_t key_of(const ptx::Function& function, const ptx::Operand& operand);
  std::uint32_t width_of(Ref ref) const;
  bool is_predicate(Ref ref) const;
  Ref source(const ptx::Operand& operand, ptx::Type type);
  Ref symbol_source(const ptx::Operand& operand);
  Ref special_source(std::string_view name);
  Ref immediate(const ptx::Operand& operand, ptx::Type type);
  /// A register to write, a new one for `_`. `width`: the least bytes a lane that it must hold; 0:
  /// predicate.
  Ref destination(const ptx::Operand& operand, std::uint32_t width);
  const ptx::Operand* operand(const ptx::Instruction& instruction, std::size_t index);
  /// `ref` as lanes of `width` bytes: a constant is made anew, a register must have that width.
  Ref fit(Ref ref, std::uint32_t width);
  /// As fit(), but special registers are copied.
  Ref fit_source(Ref ref, std::uint32_t width);
  /// A 64-bit register with the address that `operand` names, inside its own space.
  Ref address_value(const ptx::Operand& operand);
  void require_predicate(Ref ref);
  void require_width(Ref ref, std::uint32_t width);
  void set_address(Op& op, const ptx::Operand& operand, Space space, std::uint32_t bytes);
  Space space_of(const ptx::Instruction& instruction) const;

  // --- decode_data.cc
  void decode_alu(const ptx::Instruction& instruction);
  void decode_mov(const ptx::Instruction& instruction);
  void decode_pack(const ptx::Operand& d, const ptx::Operand& parts, ptx::Type type);
  void decode_unpack(const ptx::Operand& parts, const ptx::Operand& s, ptx::Type type);
  void decode_cvta(const ptx::Instruction& instruction);
  void decode_isspacep(const ptx::Instruction& instruction);
  void decode_mapa(const ptx::Instruction& instruction);
  /// What a load or a store moves.
  struct Moved {
    ptx::Type type;
    std::uint32_t bytes;              // of a component
    std::vector<ptx::Operand> parts;  // the components' registers
    std::uint32_t count() const { return static_cast<std::uint32_t>(parts.size()); }
  };
  /// Nothing, and the instruction is unknown, where an operand is missing or no vector fits.
  std::optional<Moved> moved_by(const ptx::Instruction& instruction, const ptx::Operand* data,
                                const ptx::Operand* address);
  /// Emits `op`, which has its registers and its address. `width`: of the registers, a lane.
  void emit_moving(Kind kind, Op op, const ptx::Instruction& instruction, const Moved& moved,
                   std::uint32_t width);
  void decode_load(const ptx::Instruction& instruction);
  void decode_store(const ptx::Instruction& instruction);
  void decode_atom(const ptx::Instruction& instruction);
  void decode_cp(const ptx::Instruction& instruction);
  void decode_cp_bulk(const ptx::Instruction& instruction);
  void decode_mbarrier(const ptx::Instruction& instruction);
  void set_mbarrier(Op& op, const ptx::Operand& address, Space space, MbarrierOp what);
  void decode_createpolicy(const ptx::Instruction& instruction);
  void emit_move(Ref d, Ref s, std::uint32_t width);

  // --- decode_texture.cc
  Ref object_handle(const ptx::Operand& address);
  Ref object_coordinates(const ptx::Operand& address, Geometry geometry, ptx::Type type,
                         const ptx::Operand* level);
  void decode_tex(const ptx::Instruction& instruction);
  void decode_txq(const ptx::Instruction& instruction);
  void decode_surface(const ptx::Instruction& instruction);

  // --- decode_matrix.cc
  void decode_wmma(const ptx::Instruction& instruction);
  void decode_wmma_memory(const ptx::Instruction& instruction, bool stores);
  void decode_mma(const ptx::Instruction& instruction);
  void decode_matrix_rows(const ptx::Instruction& instruction);
  void decode_movmatrix(const ptx::Instruction& instruction);
  void decode_product(const ptx::Instruction& instruction, const MatrixProduct& product,
                      bool repeats);
  /// The registers in braces, of `width` bytes a lane: as many as `count`, or `repeated` unless
  /// that is 0.
  std::vector<Ref> fragment(const ptx::Operand& operand, std::uint32_t width, std::size_t count,
                            std::size_t repeated, bool written);
  void emit_matrix(Op op, MatrixSite site);

  // --- decode_flow.cc
  void decode_bra(const ptx::Instruction& instruction);
  void decode_brx(const ptx::Instruction& instruction);
  void decode_call(const ptx::Instruction& instruction);
  bool call_target(CallSite& site, const ptx::Operand& target);
  Argument argument(const ptx::Operand& operand, const ptx::Variable* formal, bool written);
  void decode_end(const ptx::Instruction& instruction);
  void decode_nop(const ptx::Instruction& instruction);
  void decode_fence(const ptx::Instruction& instruction);
  void decode_barrier(const ptx::Instruction& instruction);
  /// The results of `op`: a register of 4 bytes a lane, and a predicate if `operand` is a pair.
  void set_word_and_predicate(Op& op, const ptx::Operand& operand);
  void decode_shfl(const ptx::Instruction& instruction);
  void decode_vote(const ptx::Instruction& instruction);
  void decode_match(const ptx::Instruction& instruction);
  void decode_redux(const ptx::Instruction& instruction);
  void decode_elect(const ptx::Instruction& instruction);
  void decode_activemask(const ptx::Instruction& instruction);
  void decode_nanosleep(const ptx::Instruction& instruction);

  DecodeContext& context_;
  const ptx::Function& function_;
  FunctionCode& out_;
  const ptx::Instruction* current_ = nullptr;
  bool bad_ = false;
  Ref guard_ = kNoRef;
  std::vector<std::uint8_t> widths_;  // bytes a lane of each virtual register; 0: predicate
  /// First register of variables[i], parameters[i], returns[i].
  std::vector<std::uint32_t> registers_;
  /// Of the same: local offset, or place of the .param in the frame.
  std::vector<std::uint32_t> places_;
  std::uint32_t parameter_bytes_ = 0;    // bytes of the frame taken by .param variables
  std::vector<std::uint32_t> first_op_;  // pc of each instruction
  std::vector<std::pair<std::uint32_t, std::uint32_t>> branch_fixups_;  // pc of the branch, label
  /// Index in branch_tables, label.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> table_fixups_;
  std::uint32_t first_call_ = 0;
  std::uint32_t peak_registers_ = 0;
};

/// Orders the basic blocks of the operations [out.first, out.end): sets Op::rank and kLeader.
void rank_blocks(Code& code, const FunctionCode& out);

/// What allocate_registers() has used.
struct Allocation {
  std::uint32_t frame_bytes = 0;
  std::uint32_t peak_registers = 0;
};
/// Places the virtual registers behind the first `reserved` bytes of the frame, and rewrites all
/// references to them. Registers of one width that never live at the same time share a place. A
/// lane sees only its own part of a place, so other, diverged lanes do not matter. Requires:
/// rank_blocks() has run.
Allocation allocate_registers(Code& code, FunctionCode& out,
                              const std::vector<std::uint8_t>& widths, std::uint32_t reserved);

/// A basic block: the pcs [first, end) and its successors. The first of find_blocks() is the
/// function's entry.
struct BasicBlock {
  std::uint32_t first = 0;
  std::uint32_t end = 0;
  std::vector<std::uint32_t> successors;
};
std::vector<BasicBlock> find_blocks(const Code& code, const FunctionCode& out);

// --- transfer.cc, atomics.cc: loops of memory operations, chosen when decoding
/// Null when there is none. `width`: bytes a lane of the register.
TransferFn find_load(ptx::Type type, std::uint32_t width);
TransferFn find_store(std::uint32_t bytes, std::uint32_t width);
AtomFn find_atom(std::string_view operation, ptx::Type type, bool shared);

}  // namespace slate::sim
