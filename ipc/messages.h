// How a session begins, and what slatectl asks. Three carriers join libslate and slated:
//   the rendezvous FIFO   <runtime dir>/slated.fifo         Hello, from any client
//   the session FIFOs     <runtime dir>/sessions/<name>/    to_client: Welcome, then wake bytes
//                                                           to_daemon: kReadyByte, then wake bytes
//   the segment           shared memory, see segment.h      commands (commands.h), replies, staging
// The client is hostile until checked. The daemon copies a record out of shared memory before it
// looks at it. It never reads a length twice, and trusts nothing of its own that lies in the
// segment. Sizes and addresses are in bytes. Little-endian, same machine only.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ipc/commands.h"

namespace slate::ipc {

/// Another one for every number of commands. To be raised by hand when anything else changes that
/// crosses: the body of a command, a record, or the segment.
inline constexpr std::uint32_t kLayoutVersion = 10;
inline constexpr std::uint32_t kProtocolVersion = kLayoutVersion * 1000 + kCommandTypes;
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

}  // namespace slate::ipc
