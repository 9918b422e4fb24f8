// Code: what decode_*.cc makes of PTX and warp.cc runs. One flat vector of 64-byte operations for
// an entry and everything that it can call. Operands are byte offsets, so running needs no names.
// Immutable once decoded. Private to the interpreter. Thread: any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "device/sim/lanes.h"
#include "device/sim/matrix.h"
#include "device/sim/program.h"
#include "injector/ptx/module.h"

namespace slate::sim {

/// A register or constant: a multiple of 64 bytes from one of four bases, which the low two bits
/// choose.
using Ref = std::uint32_t;
inline constexpr Ref kNoRef = 0xffffffffu;
inline constexpr Ref kRefBaseMask = 3;
inline constexpr Ref kRefOffsetMask = ~Ref{63};
enum RefBase : Ref {
  kInFrame = 0,      // registers of the running function; before allocation: register number * 64
  kInConstants = 1,  // Code::constants
  kInWarp = 2,       // WarpArea
  kInBlock = 3,      // BlockArea
};

/// Special registers that are constant while a warp lives, as lanes that operands can name.
struct alignas(64) WarpArea {
  std::uint32_t tid[3][kWarpSize];
  std::uint32_t warp_id[kWarpSize];
};
/// Special registers that are constant while a block lives.
struct alignas(64) BlockArea {
  std::uint32_t ctaid[3][kWarpSize];
  std::uint32_t ntid[3][kWarpSize];
  std::uint32_t nctaid[3][kWarpSize];
  std::uint32_t smid[kWarpSize];
  std::uint32_t nsmid[kWarpSize];
  std::uint32_t nwarpid[kWarpSize];
  std::uint32_t dynamic_shared[kWarpSize];
  std::uint32_t total_shared[kWarpSize];
  std::uint32_t block_rank[kWarpSize];
  std::uint32_t block_count[kWarpSize];
  std::uint64_t gridid[kWarpSize];
  std::uint32_t workspace_high[kWarpSize];  // %envreg1
  std::uint32_t workspace_low[kWarpSize];   // %envreg2
};

/// Kinds of operations. A comment names the operands in Op::r, then the meaning of Op::a, b, c, e.
enum class Kind : std::uint8_t {
  kAlu,      // alu; r = d, d2 or s4, s0..s3
  kAluPair,  // alu; r = d, d2, s0..s2, s4; target: s3, a constant
  kMov2,     // r = d, s; lanes of 2, 4, 8, 16 bytes
  kMov4,
  kMov8,
  kMov16,
  kMovPredicate,
  kNotPredicate,    // inserted by the decoder for a negated source: not counted
  kExtend,          // r = d, s; a: bytes of d, b: bytes of s: zero-extends or truncates
  kPack,            // r = d, parts...; a: bytes of d, b: parts, c: bytes of a part's register
  kUnpack,          // r = parts..., [5] = s; as kPack
  kLocalAddress,    // r = d; imm: offset in the frame's local bytes
  kParamAddress,    // r = d; imm: offset in the launch's parameters
  kConvertAddress,  // cvta; r = d, s; a: bytes of d, b: bytes of s; imm is added
  kIsSpace,         // isspacep; r = d, s; a: Space, b: bytes of s
  kClock,           // r = d; a: Clock
  kBranch,          // target
  kBranchIndex,     // r = index; target: first in Code::branch_tables, imm: entries
  kCall,            // target: Code::calls
  kReturn,
  kExit,
  kTrap,
  kNop,
  kFence,
  kNanosleep,
  kLoad,     // r = data..., [4] = address; a: Space, b: bytes of an element, c: elements, e: bytes
  kStore,    // of an address register (0: none)
  kAtom,     // r = d, b, c, [4] = address; a, b, c, e as kLoad
  kBarrier,  // r = d, id, count, predicate; a: BarrierOp, b: 1 for the cluster's, c: 1 with count
  kWarpBarrier,  // r = member mask
  kShuffle,      // r = d, p, a, b, c, member mask; a: ShuffleMode
  kVote,         // r = d, predicate, member mask; a: VoteMode
  kMatch,        // r = d, p, a, member mask; a: bytes of a, b: 1 for .all
  kReduce,       // redux; r = d, a, member mask; a: ReduceOp, b: 1 for .abs, c: 1 for .NaN
  kElect,        // r = d, p, member mask
  kActiveMask,   // r = d
  kCopyAsync,    // r = destination, source, size; a: bytes of the copy
  kCopyBulk,     // r = destination, source, size, mbarrier; a, b: Space of destination, source
  kMbarrier,     // r = d, value, [4] = address; a: MbarrierOp, b: Space
  kTexture,  // tex, tld4; r = data..., handle, coordinates; a: Geometry, b: SampleType, c: kByTexel
             // and so on, e: channel
  kTextureQuery,  // r = d, [4] = handle; a: 1 for a surface, b: TextureQuery
  kSurfaceLoad,   // r = data..., handle, coordinates; a: Geometry, b: bytes of a value, c: values,
  kSurfaceStore,  // e: SurfaceBoundary
  kMatrix,        // target: Code::matrices; r = stride, [4] = address, [5] = member mask; a: Space
  kUnknown,       // faults when reached
};

enum class Space : std::uint8_t {
  kGlobal,
  kShared,
  kLocal,
  kConst,
  kGeneric,
  kEntryParam,
  kFrameParam
};
enum class Clock : std::uint8_t { kLow, kHigh, kFull };
enum class BarrierOp : std::uint8_t { kSync, kArrive, kAnd, kOr, kPopc };
enum class ShuffleMode : std::uint8_t { kUp, kDown, kButterfly, kIndex };
enum class VoteMode : std::uint8_t { kAll, kAny, kUniform, kBallot };
enum class ReduceOp : std::uint8_t {
  kAdd,
  kAnd,
  kOr,
  kXor,
  kMinU,
  kMaxU,
  kMinS,
  kMaxS,
  kMinF,
  kMaxF
};
enum class MbarrierOp : std::uint8_t {
  kInit,
  kInvalidate,
  kArrive,
  kArriveDrop,
  kExpectTx,
  kArriveExpectTx,
  kCompleteTx,
  kTest,
  kTestParity,
  kTry,
  kTryParity,
  kPendingCount,
  kCopyArrive,
  kCopyArriveNoInc,
};

enum class TextureQuery : std::uint8_t { kWidth, kHeight, kDepth, kLayers, kLevels, kNormalized };
enum class SurfaceBoundary : std::uint8_t { kTrap, kClamp, kZero };
/// Bits of Op::c for kTexture.
enum : std::uint8_t { kByTexel = 1, kAtLevel = 2, kGathers = 4 };

/// Barriers 0 to 15 are PTX's; the cluster's barrier is one more.
inline constexpr std::uint32_t kClusterBarrier = 16;
inline constexpr int kBarriers = 17;

/// Bits of Op::flags. Bits of one value belong to different kinds.
enum : std::uint8_t {
  kGuardNegated = 1,
  kLeader = 2,         // first operation of a basic block: where threads may meet again
  kHasSecond = 4,      // r[1] of an ALU operation, p of shfl and match, are there
  kFrameRelative = 8,  // the address is an offset into the frame's own local bytes
  kStrong = 16,        // volatile, relaxed, acquire, release: never merged into wide accesses
  kOldWarpOp = 32,     // shfl, vote without .sync: the active lanes are the members
  kConverts = 32,      // the register of a load or store is not as wide as the element
  kFormatted = 32,     // sust.p
  kFloatSum = 32,      // atom.add.f32 by a generic address, which differs in shared memory
  kAddressed = 64,     // the operation has an address register
};

/// Moves one element of each active lane between a register and memory. `address` holds host
/// addresses.
using TransferFn = void (*)(void* lanes, const std::uint64_t* address, Mask active);
/// Does one atomic operation of one lane. Writes the old value to `old` unless that is null.
using AtomFn = void (*)(void* address, const void* b, const void* c, void* old);

/// One decoded operation.
struct Op {
  union {
    AluFn alu = nullptr;
    TransferFn transfer;
    AtomFn atom;
  };
  std::int64_t imm = 0;
  Ref r[6] = {};
  Ref guard = kNoRef;
  std::uint32_t target = 0;  // pc of a branch, or an index as Kind says
  std::uint32_t line = 0;
  std::uint32_t rank = 0;  // place in the order in which diverged threads run: lowest first
  Kind kind = Kind::kUnknown;
  std::uint8_t flags = 0;
  std::uint8_t a = 0, b = 0, c = 0, e = 0;
  /// Bits for the elements of r that are written and read; for the register allocation.
  std::uint8_t defs = 0, uses = 0;
};
static_assert(sizeof(Op) == 64);

/// Offset of a .param variable's byte in the frame. A lane's 16-byte pieces lie side by side with
/// those of the other lanes.
inline constexpr std::uint32_t kPieceBytes = 16;
inline constexpr std::uint32_t kPieceStride = kPieceBytes * kWarpSize;
inline std::uint32_t piece_offset(std::uint64_t offset, int lane) {
  return static_cast<std::uint32_t>(offset / kPieceBytes * kPieceStride + lane * kPieceBytes +
                                    offset % kPieceBytes);
}

/// What a call takes or returns: a register (or constant), or a .param variable.
struct Argument {
  bool is_register = false;
  std::uint8_t width = 0;    // bytes a lane of a register; 0: predicate
  Ref ref = kNoRef;          // register
  std::uint32_t offset = 0;  // .param: beginning of its pieces in the frame
  std::uint32_t bytes = 0;   // .param: size
};

enum class SystemCall : std::uint8_t { kNone, kPrintf, kAssertFail };

/// One call instruction.
struct CallSite {
  /// Index into Code::functions; -1: a call through `address`, or a system call.
  std::int32_t function = -1;
  SystemCall system = SystemCall::kNone;
  Ref address = kNoRef;
  std::vector<Argument> arguments;
  std::vector<Argument> returns;
};

enum class MatrixAction : std::uint8_t {
  kLoad,       // wmma.load
  kStore,      // wmma.store
  kMultiply,   // wmma.mma, mma
  kLoadRows,   // ldmatrix
  kStoreRows,  // stmatrix
  kTranspose,  // movmatrix
};

/// The parts of a matrix instruction that an Op has no room for.
struct MatrixSite {
  MatrixAction action = MatrixAction::kMultiply;
  MatrixProduct product;              // kMultiply
  FragmentLayout layout;              // kLoad, kStore
  std::uint32_t unit = 0;             // kLoad, kStore: bytes of an element
  std::uint32_t units_of_stride = 1;  // kLoad, kStore: elements of the stride that make one unit
  bool inner_is_contiguous = false;   // kLoad, kStore
  bool transposes = false;            // kLoadRows, kStoreRows
  std::vector<Ref> written;           // registers of the fragment of D, or of what is loaded
  std::vector<Ref> a;                 // registers of the fragment of A, or of what is stored
  std::vector<Ref> b;
  std::vector<Ref> c;
};

/// One function of the code.
struct FunctionCode {
  std::string name;
  std::uint64_t address = 0;  // value of pointers to it
  std::uint32_t first = 0;    // pc range [first, end)
  std::uint32_t end = 0;
  std::uint32_t frame_bytes = 0;     // registers, scratch and .param variables
  std::uint32_t local_bytes = 0;     // bytes of one thread's local variables; a multiple of 16
  std::vector<Argument> parameters;  // empty for the entry
  std::vector<Argument> returns;
};

/// 64 bytes of the lanes of a constant.
struct alignas(64) ConstantLine {
  std::byte bytes[64];
};

/// Lines that nobody has written: `leftovers` is each of their bytes.
inline std::unique_ptr<ConstantLine[]> unwritten(std::size_t lines, std::uint8_t leftovers) {
  auto made = std::make_unique<ConstantLine[]>(lines);
  if (leftovers != 0) std::memset(made.get(), leftovers, lines * sizeof(ConstantLine));
  return made;
}

/// The decoded program of one entry.
class Code final : public Program {
 public:
  const device::FunctionInfo& info() const override { return info_; }
  const std::vector<UnknownInstruction>& unknown_instructions() const override { return unknown; }
  std::uint64_t bytes() const override {
    // Calls have about three arguments each, and what is unknown its text.
    constexpr std::uint64_t kCallBytes = sizeof(CallSite) + 3 * sizeof(Argument);
    constexpr std::uint64_t kMatrixBytes = sizeof(MatrixSite) + 24 * sizeof(Ref);
    // With what decoding keeps of a target until its branches are linked.
    constexpr std::uint64_t kTargetBytes = 64;
    constexpr std::uint64_t kUnknownBytes = sizeof(UnknownInstruction) + 32;
    return ops.size() * (sizeof(Op) + sizeof(ptx::Span)) + constants.size() * sizeof(ConstantLine) +
           branch_tables.size() * kTargetBytes + calls.size() * kCallBytes +
           matrices.size() * kMatrixBytes + functions.size() * sizeof(FunctionCode) +
           unknown.size() * kUnknownBytes;
  }

  std::vector<Op> ops;
  std::vector<ptx::Span> texts;  // opcode text of each op, for messages
  std::vector<ConstantLine> constants;
  std::vector<std::uint32_t> branch_tables;
  std::vector<CallSite> calls;
  std::vector<MatrixSite> matrices;
  std::vector<FunctionCode> functions;  // [0] is the entry
  std::vector<UnknownInstruction> unknown;
  std::uint32_t static_shared = 0;
  std::uint32_t dynamic_shared_offset = 0;  // beginning of extern shared arrays
  std::shared_ptr<const ptx::Module> module;
  device::FunctionInfo info_;

  std::string_view opcode_text(std::uint32_t pc) const {
    const ptx::Span span = texts[pc];
    return std::string_view(module->text).substr(span.begin, span.end - span.begin);
  }
};

}  // namespace slate::sim
