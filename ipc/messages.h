// Everything that crosses between libslate and slated, on two screens. Three carriers:
//   the rendezvous FIFO   <runtime dir>/slated.fifo         Hello, from any client
//   the session FIFOs     <runtime dir>/sessions/<name>/    to_client: Welcome, then wake bytes
//                                                           to_daemon: kReadyByte, then wake bytes
//   the segment           shared memory, see segment.h      commands, replies, staging, status
// The client is hostile until checked: the daemon copies a record out of shared memory before it
// looks at it, never reads a length twice, and takes nothing from the segment that it wrote there
// itself. Ids of streams, events, modules and functions are made by the client (never 0, never
// reused), so that creation needs no reply. Sizes and addresses are in bytes. Little-endian, same
// machine only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "base/array.h"
#include "base/device_info.h"

namespace slate::ipc {

inline constexpr std::uint32_t kProtocolVersion = 6;
inline constexpr std::uint64_t kMagic = 0x31304554414c5323u;  // "#SLATE01"
inline constexpr char kReadyByte = 'R';
inline constexpr char kWakeByte = 'w';

// --- Rendezvous ----------------------------------------------------------------------------------

enum class HelloKind : std::uint32_t { kSession = 1, kControl = 2 };

inline constexpr std::uint32_t kHasWeight = 1;
inline constexpr std::uint32_t kHasPriority = 2;

/// Written in one write() of at most PIPE_BUF bytes, hence never torn. `checksum` lets the daemon
/// find the next Hello after garbage in the FIFO. Size, checksum and protocol stay where they are
/// in every version, so that each can refuse the others in words.
struct Hello {
  std::uint64_t magic = kMagic;
  std::uint32_t checksum = 0;  // FNV-1a of all that follows
  std::uint32_t protocol = kProtocolVersion;
  HelloKind kind = HelloKind::kSession;
  std::uint32_t pid = 0;  // for display only: the owner of the FIFOs is the authority
  char build[16] = {};    // slate's version, for messages
  // What the program's environment asks for; the daemon decides how much of it is granted.
  double weight = 0;
  std::int32_t priority = 0;
  std::uint32_t wishes = 0;  // kHasWeight | kHasPriority: which of the two were given
  char program[64] = {};     // name of the client's executable, for display
  char directory[64] = {};   // name under sessions/: [A-Za-z0-9-]+
};
static_assert(sizeof(Hello) == 184);

struct Welcome {
  std::uint64_t magic = kMagic;
  std::uint32_t status = 0;  // ErrorCode; not 0: refused, and `message` says why
  std::uint32_t protocol = kProtocolVersion;
  std::uint64_t session = 0;
  std::uint64_t segment_bytes = 0;
  char segment[64] = {};  // name for shm_open
  char message[160] = {};
};
static_assert(sizeof(Welcome) == 256);

/// A control connection (slatectl): after Welcome the client writes one ControlRequest and its text
/// to to_daemon, in one write() of at most kMaxControlBytes, and reads one ControlReply and its
/// text from to_client. Who asks is the owner of the FIFOs; what that user may do, the daemon
/// decides.
enum class ControlVerb : std::uint32_t {
  kStatus = 1,         // JSON: docs/status.md
  kSetSession = 2,     // text: session, pid or program      JSON: what was changed
  kSetProgram = 3,     // text: program; of `uid`, kept      JSON: the same
  kForgetProgram = 4,  // text: program; of `uid`            JSON: the same
  kProfile = 5,        // the whole table                    JSON: docs/slatectl.md
  kProfileSet = 6,     // text: kernel as in the module      JSON: how many rows
  kProfileForget = 7,  // text: kernel, or none for all      JSON: how many rows
  kTrace = 8,          // of the last `seconds`; 0: all      JSON: docs/trace.md
  kProfileGroup = 9,   // text: JSON, see profile_desk.h     JSON: how many rows
};

inline constexpr std::uint32_t kHasCompute = 4;
inline constexpr std::uint32_t kHasMemory = 8;
inline constexpr std::uint32_t kHasForm = 16;
inline constexpr std::uint32_t kHasUid = 32;  // otherwise the caller's own

struct ControlRequest {
  std::uint64_t magic = kMagic;
  ControlVerb verb = ControlVerb::kStatus;
  std::uint32_t fields = 0;  // kHas*: which of the following were given
  double weight = 0;
  double compute = 0;  // intensities for the profile; negative: back to the measured one
  double memory = 0;
  double seconds = 0;
  std::int32_t priority = 0;
  std::uint32_t form = 0;  // scheduler::Form's number; kAnyForm: back to the measured choice
  std::uint32_t uid = 0;
  std::uint32_t text_bytes = 0;  // that follow
};
static_assert(sizeof(ControlRequest) == 64);
inline constexpr std::size_t kMaxControlBytes = 4096;  // PIPE_BUF
inline constexpr std::uint32_t kAnyForm = 0xffff;

struct ControlReply {
  std::uint64_t magic = kMagic;
  std::uint32_t status = 0;  // ErrorCode; not 0: the text is the reason
  std::uint32_t bytes = 0;   // of text that follow
};

// --- Commands: client to engine, through the ring ------------------------------------------------

enum class CommandType : std::uint16_t {
  kPad = 0,                 // skips to the end of the ring
  kModuleLoad = 1,          // ModuleLoad + bytes          reply when the last chunk is in
  kModuleUnload = 2,        // IdCommand
  kFunctionGet = 3,         // FunctionGet + name          FunctionReply
  kFunctionParameters = 4,  // FunctionParameters          ParameterReply
  kFunctionSetShared = 5,   // FunctionSetShared           empty reply
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
  kCopyToDevice = 20,       // StagedCopy
  kCopyToHost = 21,         // StagedCopy
  kCopyOnDevice = 22,       // CopyOnDevice
  kFill = 23,               // Fill
  kUnsupportedCall = 24,    // (a name, see kMostNameBytes)
  kCopyInline = 25,         // CopyInline + bytes
  kHostAllocate = 26,       // HostAllocate                HostReply
  kHostMapped = 27,         // IdCommand: the client has mapped it, or never will
  kHostFree = 28,           // IdCommand
  kCopyPinned = 29,         // CopyPinned
  kHostGate = 30,           // HostGate
  kHostDone = 31,           // IdCommand: a ticket
  kArrayCreate = 32,        // ArrayCreate                 empty reply
  kArrayDestroy = 33,       // IdCommand
  kTextureCreate = 34,      // TextureCreate               HandleReply
  kTextureDestroy = 35,     // IdCommand: a handle
  kSurfaceCreate = 36,      // SurfaceCreate               HandleReply
  kSurfaceDestroy = 37,     // IdCommand: a handle
  kCopyBox = 38,            // CopyBox
  kStagedBox = 39,          // StagedBox
  kVariablePlace = 40,      // VariablePlace + name        before the module's last kModuleLoad
  kClusterQuery = 41,       // ClusterQuery                ClusterReply
  kMemoryExport = 42,       // MemoryFree (an address)     ShareReply
  kMemoryImport = 43,       // HandleCommand               ImportReply
  kMemoryImportClose = 44,  // MemoryFree (an address)     ImportReply
  kEventExport = 45,        // IdCommand                   ShareReply
  kEventImport = 46,        // HandleCommand               empty reply
  kLimitRaise = 47,         // LimitRaise                  empty reply
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
  std::uint32_t parameter_bytes;  // of the whole block
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
struct FunctionSetShared {
  std::uint64_t function;
  std::uint32_t bytes;
  std::uint32_t reserved;
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

/// Between a staging slot and device memory. In the slot the rows lie packed, `width` apart, from
/// `slot_offset` on. When the slot may be reused (to device) or read (to host), the engine stores
/// `slot_sequence` in StagingState::done.
struct StagedCopy {
  std::uint64_t address;  // on the device
  std::uint64_t pitch;    // of the rows on the device
  std::uint64_t width;
  std::uint64_t height;
  std::uint64_t stream;
  std::uint32_t slot;
  std::uint32_t slot_offset;
  std::uint64_t slot_sequence;
};
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
struct HostReply {
  std::uint64_t address;  // on the device
  char path[64];
};
/// Between host memory of kHostAllocate and device memory; complete with its stream.
struct CopyPinned {
  std::uint64_t host;  // id
  std::uint64_t host_offset;
  std::uint64_t host_pitch;
  std::uint64_t address;  // on the device
  std::uint64_t pitch;
  std::uint64_t width;
  std::uint64_t height;
  std::uint64_t stream;
  std::uint32_t to_device;  // 0: to the host
  std::uint32_t reserved;
};
struct CopyOnDevice {
  std::uint64_t to, to_pitch, from, from_pitch, width, height, stream;
};
/// Where a copy of three dimensions begins: in an array of kArrayCreate (`id`, `level`; x in bytes,
/// elements may be cut), in device memory, or in host memory of kHostAllocate (`id`; `address` is
/// the offset in it). The last two have rows `pitch` and planes `slice` bytes apart.
enum class BoxKind : std::uint32_t { kArray = 1, kDevice = 2, kHost = 3 };
struct BoxPlace {
  BoxKind kind;
  std::uint32_t level;
  std::uint64_t id;
  std::uint64_t x, y, z;
  std::uint64_t address, pitch, slice;
};
/// One side at least is an array. Complete with its stream.
struct CopyBox {
  BoxPlace to, from;
  std::uint64_t width;  // bytes
  std::uint64_t height, depth;
  std::uint64_t stream;
};
/// As StagedCopy, of an array: rows and planes lie packed in the slot.
struct StagedBox {
  BoxPlace array;
  std::uint64_t width;  // bytes
  std::uint64_t height, depth;
  std::uint64_t stream;
  std::uint32_t slot;
  std::uint32_t slot_offset;
  std::uint64_t slot_sequence;
  std::uint32_t to_device;  // 0: to the host
  std::uint32_t reserved;
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
  std::uint64_t to, pitch, width, height, stream;
  std::uint32_t value;  // the low byte
  std::uint32_t reserved;
};

}  // namespace slate::ipc
