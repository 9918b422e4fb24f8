// The commands of a session: the client writes them into the ring, the engine's session thread
// takes them out. The numbers, the bodies, the replies, and at the end the table: one row a
// command, with all that the two sides must agree on. The engine binds a handler to each row, by
// its type (daemon/engine/commands/call.h).
//
// Ids of streams, events, modules, functions and arrays are made by the client: never 0, never
// reused. So most that makes something needs no reply. Sizes and addresses are in bytes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

#include "base/array.h"
#include "base/copy.h"
#include "base/function_attribute.h"
#include "base/tensor_map.h"
#include "ipc/command_row.h"

namespace slate::ipc {

/// In the order of the numbers. Behind each: the body, and the reply if there is one.
enum class CommandType : std::uint16_t {
  kPad = 0,                 // skips to the end of the ring
  kModuleLoad = 1,          // ModuleLoad + bytes          when the last chunk is in: empty, or
                            //                             OfferReply, and all has to be sent again
  kModuleUnload = 2,        // IdCommand
  kFunctionGet = 3,         // FunctionGet + name          FunctionReply
  kFunctionParameters = 4,  // FunctionParameters          ParameterReply
  kFunctionSet = 5,         // FunctionSet                 empty reply
  kGlobalGet = 6,           // GlobalGet + name            GlobalReply
  kMemoryAllocate = 7,      // MemoryAllocate              AddressReply
  kMemoryFree = 8,          // MemoryFree
  kMemoryInfo = 9,          // (nothing)                   MemoryInfoReply
  kStreamCreate = 10,       // StreamCreate
  kStreamDestroy = 11,      // IdCommand
  kEventCreate = 12,        // EventCreate
  kEventDestroy = 13,       // IdCommand
  kEventRecord = 14,        // EventStream
  kStreamWaitEvent = 15,    // EventStream
  kEventElapsed = 16,       // EventPair                   ElapsedReply
  kQuery = 17,              // Target                      QueryReply, at once
  kSynchronize = 18,        // Target                      empty reply, when reached
  kLaunch = 19,             // Launch + packed parameters
  kCopy = 20,               // Copy
  kFill = 21,               // Fill
  kUnsupportedCall = 22,    // (a name, see kMostNameBytes)
  kCopyInline = 23,         // CopyInline + bytes
  kHostAllocate = 24,       // HostAllocate                AddressReply, and a descriptor before it
  kHostMapped = 25,         // IdCommand: the client has mapped it, or never will
  kHostFree = 26,           // IdCommand
  kHostGate = 27,           // HostGate
  kHostDone = 28,           // IdCommand: a ticket
  kArrayCreate = 29,        // ArrayCreate                 empty reply
  kArrayDestroy = 30,       // IdCommand
  kTextureCreate = 31,      // TextureCreate               HandleReply
  kTextureDestroy = 32,     // IdCommand: a handle
  kSurfaceCreate = 33,      // SurfaceCreate               HandleReply
  kSurfaceDestroy = 34,     // IdCommand: a handle
  kVariablePlace = 35,      // VariablePlace + name        before the module's last kModuleLoad
  kClusterQuery = 36,       // ClusterQuery                ClusterReply
  kMemoryExport = 37,       // MemoryFree (an address)     ShareReply
  kMemoryImport = 38,       // HandleCommand               ImportReply
  kMemoryImportClose = 39,  // MemoryFree (an address)     ImportReply
  kEventExport = 40,        // IdCommand                   ShareReply
  kEventImport = 41,        // HandleCommand               empty reply
  kLimitRaise = 42,         // LimitRaise                  empty reply
  kModuleOffer = 43,        // ModuleOffer                 OfferReply
  kAddressReserve = 44,     // AddressReserve              AddressReply
  kAddressFree = 45,        // MemoryFree (an address)
  kPhysicalCreate = 46,     // PhysicalCreate              empty reply
  kPhysicalRelease = 47,    // IdCommand
  kPhysicalMap = 48,        // PhysicalMap                 empty reply
  kPhysicalUnmap = 49,      // PhysicalUnmap
  kTensorMapEncode = 50,    // TensorMapSpec               TensorMap
  kEnd                      // no command: one more than the last
};

inline constexpr std::uint16_t kNoReply = 0xffff;
inline constexpr std::uint32_t kCommandAlign = 16;
inline constexpr std::uint32_t kMaxCommandBytes = 64 << 10;
inline constexpr std::uint64_t kDefaultStream = 0;  // the legacy default stream

struct CommandHeader {
  std::uint32_t bytes;  // header and body, a multiple of kCommandAlign
  CommandType type;
  std::uint16_t reply_slot;      // kNoReply: an error goes to StatusPage::async_error
  std::uint32_t reply_sequence;  // echoed in ReplySlot::done
  std::uint32_t body_bytes;      // without padding
};
static_assert(sizeof(CommandHeader) == 16);

/// Of a function that the client's library does not have: letters, digits, underscores.
inline constexpr std::uint32_t kMostNameBytes = 96;

struct IdCommand {
  std::uint64_t id;
};

/// Chunks of one module in rising order without gaps; `image_kind`: 1 PTX, 2 machine code (ELF).
struct ModuleLoad {
  std::uint64_t module;
  std::uint64_t total_bytes;
  std::uint64_t offset;
  std::uint32_t image_kind;
  std::uint32_t reserved;
};
inline constexpr std::uint32_t kImagePtx = 1;
inline constexpr std::uint32_t kImageElf = 2;
/// PTX of the same code as the ELF image of the same module that comes behind it: what the forms of
/// its kernels are made from. It gets no reply.
inline constexpr std::uint32_t kImageSource = 3;

/// An image of at least this size without a source and without placed variables is offered first.
inline constexpr std::uint64_t kLeastOffered = 64 << 10;
/// In place of an image that the engine may have from this session or another one of the user.
struct ModuleOffer {
  std::uint64_t module;
  std::uint32_t image_kind;
  std::uint32_t reserved;
  std::uint8_t digest[32];  // SHA-256 of the image
};
struct OfferReply {
  std::uint32_t known;  // 1: the module is loaded; 0: the image has to be sent
  std::uint32_t reserved;
};

struct FunctionGet {
  std::uint64_t module;
  std::uint64_t function;
};
struct FunctionReply {
  std::uint32_t max_threads_per_block;
  std::uint32_t static_shared_bytes;
  std::uint32_t max_dynamic_shared_bytes;
  std::uint32_t constant_bytes;
  std::uint32_t local_bytes;
  std::uint32_t registers;
  std::uint32_t ptx_version;
  std::uint32_t binary_version;
  std::uint32_t parameter_count;
  std::uint32_t parameter_bytes;            // of the whole block
  std::uint32_t needs_cluster = 0;          // whether every launch has to have clusters
  std::uint32_t cluster[3] = {0, 0, 0};     // blocks of a cluster as compiled; zeros: no such size
  std::uint32_t non_portable_clusters = 0;  // whether clusters may have more than 8 blocks
  std::uint32_t cluster_scheduling = 0;     // CUclusterSchedulingPolicy
};
struct FunctionParameters {
  std::uint64_t function;
  std::uint32_t first;
  std::uint32_t reserved;
};
struct ParameterReply {
  static constexpr std::uint32_t kMost = 120;
  std::uint32_t count;  // of the entries below, from `first` on
  std::uint32_t reserved;
  struct {
    std::uint32_t offset, size;
  } parameters[kMost];
};
/// What a launch says itself, such as the size of its clusters, is not set by this.
struct FunctionSet {
  std::uint64_t function;
  FunctionAttribute attribute;
  std::int32_t value;
};
struct GlobalGet {
  std::uint64_t module;
};
/// The module's .managed variable of this name lies at `address`, in host memory of the session
/// that has the same address in the client, and gets its initial contents there.
struct VariablePlace {
  std::uint64_t module;
  std::uint64_t address;
};
struct GlobalReply {
  std::uint64_t address;
  std::uint64_t bytes;
};

struct MemoryAllocate {
  std::uint64_t bytes;
};
struct AddressReply {
  std::uint64_t address;
};
struct MemoryFree {
  std::uint64_t address;
};
// Addresses and memory apart: reservations have addresses, physical allocations have memory, and a
// mapping shows all of an allocation in a reservation. Sizes, and distances from the beginning of a
// reservation, are multiples of kVirtualGranule.
inline constexpr std::uint64_t kVirtualGranule = 2 << 20;
struct AddressReserve {
  std::uint64_t bytes;
  std::uint64_t align;   // a power of two; 0: kVirtualGranule
  std::uint64_t wished;  // an address, granted if it is free; 0: none
};
struct PhysicalCreate {
  std::uint64_t id;
  std::uint64_t bytes;
};
struct PhysicalMap {
  std::uint64_t address;
  std::uint64_t bytes;  // those of the allocation
  std::uint64_t memory;
};
/// Of all mappings in the range, none of which it may cut.
struct PhysicalUnmap {
  std::uint64_t address;
  std::uint64_t bytes;
};
/// What one session of a user shares with that user's other sessions, by a name that nobody
/// guesses.
struct ShareHandle {
  std::uint8_t bytes[64];
};
struct ShareReply {
  ShareHandle handle;
};
/// `id`: of the event that is to be made; 0 for memory.
struct HandleCommand {
  ShareHandle handle;
  std::uint64_t id;
};
/// For kernels of modules loaded from now on; all sessions of a device have the largest.
struct LimitRaise {
  // 0: bytes of a thread's stack, 1: bytes of the heap of malloc(), 2: pending launches by kernels
  std::uint32_t limit;
  std::uint32_t reserved;
  std::uint64_t value;
};
/// An allocation of another session, at the address that it has there, and how often this session
/// has it open now.
struct ImportReply {
  std::uint64_t address;
  std::uint64_t bytes;
  std::uint64_t count;
};
struct MemoryInfoReply {
  std::uint64_t free_bytes;
  std::uint64_t total_bytes;
};

inline constexpr std::uint32_t kStreamNonBlocking =
    1;  // does not wait for the legacy default stream
/// Entries of StatusPage::completed. Entry 0 is the default stream's; which one another stream has,
/// the client decides. kNoProgress: none, its progress is not published.
inline constexpr std::uint32_t kProgressSlots = 256;
inline constexpr std::uint32_t kNoProgress = 0xffff;
struct StreamCreate {
  std::uint64_t id;
  std::uint32_t flags;
  std::int32_t priority;
  std::uint32_t progress = kNoProgress;
  std::uint32_t reserved = 0;
};
inline constexpr std::uint32_t kEventNoTiming = 1;
struct EventCreate {
  std::uint64_t id;
  std::uint32_t flags;
  std::uint32_t reserved;
};
struct EventStream {
  std::uint64_t event;
  std::uint64_t stream;
};
struct EventPair {
  std::uint64_t start;
  std::uint64_t stop;
};
struct ElapsedReply {
  float milliseconds;
  std::uint32_t reserved;
};

enum class TargetKind : std::uint32_t { kSession = 1, kStream = 2, kEvent = 3 };
struct Target {
  TargetKind kind;
  /// In a query for an event: 1 to be answered only once it has been recorded as the client has
  /// said so far. Otherwise a query is answered at once.
  std::uint32_t when_recorded;
  std::uint64_t id;
};
inline Order order_of(const Target& target) {
  Order order{.all = target.kind == TargetKind::kSession, .only_waits = true};
  if (target.kind == TargetKind::kStream) order.stream = target.id;
  if (target.kind == TargetKind::kEvent) order.event = target.id;
  return order;
}
struct QueryReply {
  std::uint32_t finished;
  std::uint32_t reserved;
};

/// The stream waits here until kHostDone with this ticket, which the client makes: never 0, never
/// reused.
struct HostGate {
  std::uint64_t ticket;
  std::uint64_t stream;
};

struct Launch {
  std::uint64_t function;
  std::uint64_t stream;
  std::uint32_t grid[3];
  std::uint32_t block[3];
  std::uint32_t dynamic_shared_bytes;
  std::uint32_t parameter_bytes;
  std::uint32_t flags = 0;
  std::uint32_t cluster[3] = {0, 0, 0};  // blocks; zeros: as the kernel was compiled
};
inline constexpr std::uint32_t kLaunchCooperative = 1;  // all blocks at once, natively
inline constexpr std::uint32_t kLaunchOverlaps = 2;     // may begin before the launch in front ends
inline constexpr std::uint32_t kLaunchFlags = kLaunchCooperative | kLaunchOverlaps;

/// What the device could do with such a launch. `largest`: the size of the largest cluster, else
/// the number of clusters that run at once.
struct ClusterQuery {
  std::uint64_t function;
  std::uint32_t grid[3];
  std::uint32_t block[3];
  std::uint32_t cluster[3];
  std::uint32_t dynamic_shared_bytes;
  std::uint32_t largest;
  std::uint32_t reserved;
};
struct ClusterReply {
  std::uint32_t value;
  std::uint32_t reserved;
};

/// A copy, complete with its stream. One side at least is an array or memory of the device, the
/// other one may be a kBlock or kSlot: see base/copy.h. When a slot may be reused (the copy is from
/// it) or read (to it), the engine stores its turn in StagingState::done.
struct Copy {
  Place to, from;
  Box box;
  std::uint64_t stream;
};
inline std::optional<SlotTurn> slot_of(const Copy& copy) {
  if (copy.to.is(PlaceKind::kSlot)) return SlotTurn{copy.to.part, copy.to.object, true};
  if (copy.from.is(PlaceKind::kSlot)) return SlotTurn{copy.from.part, copy.from.object, false};
  return std::nullopt;
}
/// To the device, of so few bytes that they travel in the command, `bytes` of them behind this.
struct CopyInline {
  std::uint64_t address;
  std::uint64_t stream;
};
inline constexpr std::uint64_t kMostInlineBytes = 1024;

/// Host memory that program, engine and device share: made by the engine, a multiple of 4096 bytes.
/// The client opens `path`, maps it, at `address` if that is free (then a pointer means the same to
/// it and to kernels), and says kHostMapped; kHostFree gives the memory back.
struct HostAllocate {
  std::uint64_t id;
  std::uint64_t bytes;
  std::uint64_t least = 0;  // wished: an address not below this, as what lies there is taken
};
struct ArrayCreate {
  std::uint64_t id;
  ArraySpec spec;
};
/// What kernels take for the texture or surface: the device's own number.
struct HandleReply {
  std::uint64_t handle;
};
struct TextureCreate {
  TextureSpec spec;  // the array by its id
};
struct SurfaceCreate {
  std::uint64_t array;
  std::uint32_t level;
  std::uint32_t reserved;
};

struct Fill {
  std::uint64_t to, pitch;
  std::uint64_t width;  // bytes
  std::uint64_t height, stream;
  std::uint32_t value;        // the low `element` bytes
  std::uint32_t element = 1;  // 1, 2 or 4: bytes of the value, a divisor of all but the height
};

// --- The table -----------------------------------------------------------------------------------

struct CommandRows {
  using enum CommandType;
  using enum Object;
  /// One row a command, in the order of their numbers: type, body, the member of the body that
  /// names its stream, what it must come after, what it does to objects.
  // clang-format off
  using All = std::tuple<
    Row<kModuleLoad, ModuleLoad, kNoStream, AtOnce, kMakes>,
    Row<kModuleUnload, IdCommand, kNoStream, GivesBack, kEnds>,
    Row<kFunctionGet, FunctionGet, kNoStream, AtOnce, kMakes>,
    Row<kFunctionParameters, FunctionParameters, kNoStream, AtOnce, kNeither>,
    Row<kFunctionSet, FunctionSet, kNoStream, AtOnce, kMakes>,
    Row<kGlobalGet, GlobalGet, kNoStream, AtOnce, kNeither>,
    Row<kMemoryAllocate, MemoryAllocate, kNoStream, AtOnce, kMakes>,
    Row<kMemoryFree, MemoryFree, kNoStream, GivesBack, kEnds>,
    Row<kMemoryInfo, NoBody, kNoStream, AtOnce, kNeither>,
    Row<kStreamCreate, StreamCreate, kNoStream, AtOnce, kMakes>,
    Row<kStreamDestroy, IdCommand, kNoStream, EndsStream<&IdCommand::id>, kEnds>,
    Row<kEventCreate, EventCreate, kNoStream, AtOnce, kMakes>,
    Row<kEventDestroy, IdCommand, kNoStream, EndsEvent<&IdCommand::id>, kEnds>,
    Row<kEventRecord, EventStream, &EventStream::stream, Records<&EventStream::event>, kNeither>,
    Row<kStreamWaitEvent, EventStream, &EventStream::stream, Awaits<&EventStream::event>, kNeither>,
    Row<kEventElapsed, EventPair, kNoStream, AfterEvent<&EventPair::stop>, kNeither>,
    Row<kQuery, Target, kNoStream, AsNamed, kNeither>,
    Row<kSynchronize, Target, kNoStream, AsNamed, kNeither>,
    Row<kLaunch, Launch, &Launch::stream, InStream, kNeither>,
    Row<kCopy, Copy, &Copy::stream, InStreamWithSlot, kNeither>,
    Row<kFill, Fill, &Fill::stream, InStream, kNeither>,
    Row<kUnsupportedCall, NoBody, kNoStream, AtOnce, kNeither>,
    Row<kCopyInline, CopyInline, &CopyInline::stream, InStream, kNeither>,
    Row<kHostAllocate, HostAllocate, kNoStream, AtOnce, kMakes>,
    Row<kHostMapped, IdCommand, kNoStream, AtOnce, kNeither>,
    Row<kHostFree, IdCommand, kNoStream, GivesBack, kEnds>,
    Row<kHostGate, HostGate, &HostGate::stream, InStream, kNeither>,
    Row<kHostDone, IdCommand, kNoStream, AtOnce, kNeither>,
    Row<kArrayCreate, ArrayCreate, kNoStream, AtOnce, kMakes>,
    Row<kArrayDestroy, IdCommand, kNoStream, GivesBack, kEnds>,
    Row<kTextureCreate, TextureCreate, kNoStream, AtOnce, kMakes>,
    Row<kTextureDestroy, IdCommand, kNoStream, AfterAll, kEnds>,
    Row<kSurfaceCreate, SurfaceCreate, kNoStream, AtOnce, kMakes>,
    Row<kSurfaceDestroy, IdCommand, kNoStream, AfterAll, kEnds>,
    Row<kVariablePlace, VariablePlace, kNoStream, AtOnce, kMakes>,
    Row<kClusterQuery, ClusterQuery, kNoStream, AtOnce, kNeither>,
    Row<kMemoryExport, MemoryFree, kNoStream, AtOnce, kMakes>,
    Row<kMemoryImport, HandleCommand, kNoStream, AtOnce, kMakes>,
    Row<kMemoryImportClose, MemoryFree, kNoStream, AfterAll, kEnds>,
    Row<kEventExport, IdCommand, kNoStream, AfterEvent<&IdCommand::id>, kMakes>,
    Row<kEventImport, HandleCommand, kNoStream, AtOnce, kMakes>,
    Row<kLimitRaise, LimitRaise, kNoStream, AtOnce, kMakes>,
    Row<kModuleOffer, ModuleOffer, kNoStream, AtOnce, kMakes>,
    Row<kAddressReserve, AddressReserve, kNoStream, AtOnce, kMakes>,
    Row<kAddressFree, MemoryFree, kNoStream, GivesBack, kEnds>,
    Row<kPhysicalCreate, PhysicalCreate, kNoStream, AtOnce, kMakes>,
    Row<kPhysicalRelease, IdCommand, kNoStream, GivesBack, kEnds>,
    Row<kPhysicalMap, PhysicalMap, kNoStream, AtOnce, kMakes>,
    Row<kPhysicalUnmap, PhysicalUnmap, kNoStream, GivesBack, kEnds>,
    Row<kTensorMapEncode, TensorMapSpec, kNoStream, AtOnce, kNeither>>;
  // clang-format on
};
using CommandTable = CommandRows::All;

inline constexpr std::size_t kCommandTypes = std::tuple_size_v<CommandTable>;
static_assert(kCommandTypes + 1 == static_cast<std::size_t>(CommandType::kEnd),
              "a command without a row");

template <CommandType kType>
using RowOf = std::tuple_element_t<static_cast<std::size_t>(kType) - 1, CommandTable>;
template <CommandType kType>
using BodyOf = typename RowOf<kType>::Body;

/// Calls `visit.operator()<Row>()` for the row of `type`, which comes from outside, or `unknown()`
/// when there is no such row.
template <typename Answer, typename Visit, typename Unknown>
Answer visit_row(CommandType type, const Visit& visit, const Unknown& unknown) {
  using Call = Answer (*)(const Visit&);
  static constexpr auto kCalls = []<std::size_t... kAt>(std::index_sequence<kAt...>) {
    return std::array<Call, kCommandTypes>{[](const Visit& called) -> Answer {
      return called.template operator()<std::tuple_element_t<kAt, CommandTable>>();
    }...};
  }
  (std::make_index_sequence<kCommandTypes>{});
  const std::size_t at = static_cast<std::size_t>(type) - 1;  // that of kPad is the largest
  return at < kCommandTypes ? kCalls[at](visit) : unknown();
}

/// Every row stands at its number.
static_assert([]<std::size_t... kAt>(std::index_sequence<kAt...>) {
  return ((static_cast<std::size_t>(std::tuple_element_t<kAt, CommandTable>::kType) == kAt + 1) &&
          ...);
}(std::make_index_sequence<kCommandTypes>{}));

}  // namespace slate::ipc
