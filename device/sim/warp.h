// Warp: 32 threads that run the decoded code. Threads that have gone different ways are kept as
// splits, each with a place and a mask of lanes. Splits that meet at one place become one again.
// BlockState: what the warps of a block share. Thread: the host thread that runs the block at the
// moment.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "device/sim/block.h"
#include "device/sim/code.h"

namespace slate::sim {

/// The registers of one call of a function, for all lanes of a warp. Lanes that reached it by
/// different call sites share it: each has its own part of every register and its own return
/// address.
struct Frame {
  const FunctionCode* function = nullptr;
  Frame* parent = nullptr;
  std::uint32_t depth = 0;
  std::uint32_t local_base = 0;  // beginning of its local variables in each thread's local memory
  std::byte* registers = nullptr;
  std::unique_ptr<ConstantLine[]> storage;
  std::vector<std::unique_ptr<Frame>> children;
  std::array<std::uint32_t, kWarpSize> return_pc{};
};

enum class Wait : std::uint8_t { kNone, kBarrier, kLanes };

/// Lanes of a warp at one place of the code.
struct Split {
  std::uint32_t pc = 0;
  Mask mask = 0;
  Frame* frame = nullptr;
  Wait wait = Wait::kNone;
  std::uint8_t barrier = 0;
  std::uint64_t last_run = 0;
};

struct BlockState;

class Warp {
 public:
  /// How a turn ended. kSpun: it ran, but perhaps only waited for memory to change.
  enum class Turn { kRan, kSpun, kBlocked, kFinished, kFaulted };

  Warp(BlockState& block, std::uint32_t index, Mask lanes);
  Warp(Warp&&) noexcept = default;

  /// Runs up to `quantum` instructions, and subtracts those that it ran from `quantum`.
  Turn run(std::uint32_t& quantum);

  Mask live() const { return live_; }
  std::uint32_t index() const { return index_; }
  /// Whether some split can run.
  bool ready() const;
  std::uint64_t thread_instructions() const { return thread_instructions_; }

  /// Ends the wait of all splits at barrier `id`. `value` is the result of bar.red.
  void release_barrier(std::uint32_t id, std::uint32_t value);
  /// The first lane that waits, and its pc; for the report of a deadlock. Requires: live() != 0.
  std::pair<int, std::uint32_t> first_waiting(Wait& wait, std::uint32_t& barrier) const;

 private:
  enum class Flow { kNext, kReschedule };

  // --- warp.cc: choosing and running splits
  /// The split that runs next; null: all wait. Also merges splits.
  Split* select();
  void merge_splits();
  void run_split(Split& split, std::uint32_t& budget);
  /// The next pc at which the split may meet another one.
  std::uint32_t meeting_pc(const Split& split) const;
  Flow execute(const Op& op, Split& split, Mask exec);
  void alu_pair(const Op& op, const Frame& frame, Mask exec);
  Split& add_split(std::uint32_t pc, Mask mask, Frame* frame);
  void retire(Mask lanes);
  /// Notes an operation that may be part of a spin.
  void spun(std::uint32_t weight) {
    impatience_ += weight;
    ++sync_ops_;
  }

  /// Where a register or constant lies.
  std::byte* at(Ref ref, const Frame& frame) const {
    std::byte* const bases[4] = {frame.registers, constants_,
                                 reinterpret_cast<std::byte*>(area_.get()), block_area_};
    return bases[ref & kRefBaseMask] + (ref & kRefOffsetMask);
  }
  template <typename T>
  T* lanes(Ref ref, const Frame& frame) const {
    return reinterpret_cast<T*>(at(ref, frame));
  }
  Mask& predicate(Ref ref, const Frame& frame) const { return *lanes<Mask>(ref, frame); }

  /// Ends the block with a fault of the lanes `who`.
  void fault(ErrorCode code, Mask who, std::uint32_t pc, const std::string& text);

  // --- exec_flow.cc: control
  Flow branch_index(const Op& op, Split& split, Mask exec);
  Flow call(const Op& op, Split& split, Mask exec);
  Flow enter(const CallSite& site, const FunctionCode& function, Split& split, Mask exec);
  Flow return_from(Split& split, Mask exec);
  Flow leave(Split& split, Mask exec);
  Frame* child_frame(Frame& parent, const FunctionCode& function);
  void copy_argument(const Argument& from, const Frame& from_frame, const Argument& to,
                     const Frame& to_frame, Mask exec);
  /// Lets the lanes of the split that do not take part in `op` go on. Afterwards split.mask ==
  /// exec.
  void let_pass(Split& split, Mask exec);

  // --- exec_sync.cc: barriers, and instructions across lanes
  Flow barrier(const Op& op, Split& split, Mask exec);
  Flow warp_barrier(const Op& op, Split& split, Mask exec);
  /// Brings together the lanes that the member masks name. kNext: the lanes in `exec` may execute
  /// now.
  Flow gather(const Op& op, Ref members, Split& split, Mask& exec);
  Mask satisfied(const std::uint32_t* members, Mask exec, Mask present) const;
  void shuffle(const Op& op, const Frame& frame, Mask exec);
  void vote(const Op& op, const Frame& frame, Mask exec);
  void match(const Op& op, const Frame& frame, Mask exec);
  void reduce(const Op& op, const Frame& frame, Mask exec);
  void elect(const Op& op, const Frame& frame, Mask exec);

  // --- exec_memory.cc: false means a fault
  enum class Access { kRead, kWrite };
  /// Moves the components of a vector between registers and memory. `address`: of the first; it is
  /// that of the last afterwards.
  void move_components(const Op& op, const Frame& frame, std::uint64_t (&address)[kWarpSize],
                       Mask exec);
  bool load(const Op& op, const Split& split, Mask exec);
  bool store(const Op& op, const Split& split, Mask exec);
  bool atomic(const Op& op, const Split& split, Mask exec);
  /// Host addresses of an access of `bytes` by each lane; inactive lanes get that of the first
  /// active one.
  bool resolve(const Op& op, const Split& split, Mask exec, std::uint32_t bytes, Access access,
               std::uint64_t (&address)[kWarpSize]);
  bool translate(const Op& op, const Split& split, Space space, Mask exec, std::uint32_t bytes,
                 Access access, std::uint64_t (&address)[kWarpSize]);
  /// Host address of one lane's access; 0 if it is not allowed.
  std::uint64_t host_address(Space space, std::uint64_t address, std::uint32_t bytes, Access access,
                             int lane);
  std::uint64_t local_address(std::uint64_t offset, std::uint32_t bytes, int lane);
  bool bad_access(const Split& split, Mask exec, std::uint64_t address, std::uint32_t bytes,
                  const char* why, ErrorCode code);

  // --- exec_move.cc
  void extend(const Op& op, const Frame& frame, Mask exec);
  void pack(const Op& op, const Frame& frame, Mask exec);
  void unpack(const Op& op, const Frame& frame, Mask exec);
  void make_address(const Op& op, const Frame& frame, Mask exec);
  void convert_address(const Op& op, const Frame& frame, Mask exec);
  void is_space(const Op& op, const Frame& frame, Mask exec);
  void read_clock(const Op& op, const Frame& frame, Mask exec);

  // --- exec_async.cc: false means a fault
  bool copy_async(const Op& op, const Split& split, Mask exec);
  bool copy_bulk(const Op& op, const Split& split, Mask exec);
  bool mbarrier(const Op& op, const Split& split, Mask exec);
  void mbarrier_lane(const Op& op, const Frame& frame, std::uint64_t& word, int lane);

  // --- exec_texture.cc: false means a fault
  bool sample_texture(const Op& op, const Split& split, Mask exec);
  bool query_texture(const Op& op, const Split& split, Mask exec);
  bool access_surface(const Op& op, const Split& split, Mask exec);
  template <typename Find, typename Visit>
  bool each_object(const Op& op, const Split& split, Mask exec, const Find& find,
                   const Visit& visit);
  bool bad_object(const Split& split, int lane, std::uint64_t handle, std::string_view why,
                  ErrorCode code);

  // --- exec_matrix.cc: false means a fault
  bool matrix(const Op& op, const Split& split, Mask exec);
  bool matrix_tile(const Op& op, const MatrixSite& site, const Split& split, Mask exec);
  bool matrix_rows(const Op& op, const MatrixSite& site, const Split& split, Mask exec);
  void multiply_matrix(const MatrixSite& site, const Frame& frame, Mask exec);
  void transpose_matrix(const MatrixSite& site, const Frame& frame, Mask exec);
  std::uint64_t base_address(const Op& op, const Frame& frame, int lane) const;
  std::uint64_t wide_address(const Op& op, const Split& split, std::uint64_t address,
                             std::uint32_t bytes, Access access, std::uint32_t align, int lane);

  // --- system.cc: printf, malloc, assert
  bool system_call(const CallSite& site, const Split& split, Mask exec);
  std::uint64_t read_argument(const Argument& argument, const Frame& frame, int lane) const;
  bool print(const CallSite& site, const Split& split, int lane, std::uint64_t& result);
  bool assert_fail(const CallSite& site, const Split& split, int lane);
  /// The NUL-terminated string at a generic address; nullopt when it leaves readable memory.
  std::optional<std::string> read_string(std::uint64_t address, int lane);

  BlockState* block_;
  const Op* ops_;
  std::uint32_t index_;
  Mask live_;
  Mask carry_ = 0;
  std::byte* constants_;
  std::byte* block_area_;
  std::unique_ptr<WarpArea> area_;
  std::unique_ptr<Frame> frame_;   // frame of the entry
  std::uint64_t frame_bytes_ = 0;  // bytes of all frames
  std::uint32_t count_ = 0;        // splits in use
  std::array<Split, kWarpSize + 1> splits_;
  std::vector<std::unique_ptr<ConstantLine[]>> local_pages_;
  std::uint32_t local_bytes_ = 0;  // most bytes that a frame has used
  std::uint64_t thread_instructions_ = 0;
  std::uint64_t tick_ = 0;
  // For fairness between splits: a split that has run long while others could is made to wait for
  // them. See select().
  std::uint32_t impatience_ = 0;
  Mask favoured_ = 0;
  std::uint32_t favour_left_ = 0;
  std::uint32_t sync_ops_ = 0;  // loads and atomics of this turn that may be a spin
  std::uint32_t stores_ = 0;    // stores of this turn
  bool yield_ = false;
};

/// One barrier of a block.
struct Barrier {
  bool pending = false;
  std::uint32_t expected = 0;  // threads to wait for; 0: all that have not exited
  std::uint32_t trues = 0;     // threads with a true predicate, of bar.red
  bool all = true;
  std::vector<Mask> arrived;  // arrived lanes of each warp
};

/// State that the warps of a block share.
struct BlockState {
  const KernelLaunch* launch = nullptr;
  const Code* code = nullptr;
  device::Dim3 index;
  std::uint32_t sm = 0;
  std::unique_ptr<ConstantLine[]> shared;
  std::uint64_t shared_bytes = 0;
  BlockArea area;
  std::array<Barrier, kBarriers> barriers;
  std::vector<Warp> warps;
  std::optional<Error> fault;
  std::size_t cursor = 0;  // index of the warp whose turn is next

  /// Releases barrier `id` if all threads that it waits for have come.
  void check_barrier(std::uint32_t id);
  void threads_exited();
  device::Dim3 thread_of(std::uint32_t warp, int lane) const;
};

}  // namespace slate::sim
