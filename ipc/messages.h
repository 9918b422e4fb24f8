// How a session begins, and what slatectl asks. Three carriers join libslate and slated:
//   a socket      <runtime dir>/slated.sock       Hello and Welcome, slatectl's questions,
//   descriptors two FIFOs     without names, from slated      wake bytes, and the death of the
//   other side the segment   shared memory, see segment.h    commands (commands.h), replies,
//   staging
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
inline constexpr std::uint32_t kLayoutVersion = 12;
inline constexpr std::uint32_t kProtocolVersion = kLayoutVersion * 1000 + kCommandTypes;
inline constexpr std::uint64_t kMagic = 0x31304554414c5323u;  // "#SLATE01"
inline constexpr char kWakeByte = 'w';

// --- Meeting -------------------------------------------------------------------------------------

enum class HelloKind : std::uint32_t { kSession = 1, kControl = 2 };

inline constexpr std::uint32_t kHasWeight = 1;
inline constexpr std::uint32_t kHasPriority = 2;
inline constexpr std::uint32_t kHasMemoryLimit = 64;

/// The visitor's only packet before Welcome. Who it is, the kernel says. The bytes up to
/// kSameInAllVersions are the same in every version, so that each can refuse the others in words.
struct Hello {
  std::uint64_t magic = kMagic;
  std::uint32_t protocol = kProtocolVersion;
  HelloKind kind = HelloKind::kSession;
  char build[16] = {};  // slate's version, for messages
  // What the program's environment asks for; the daemon decides how much of it is granted.
  double weight = 0;
  std::int32_t priority = 0;
  std::uint32_t wishes = 0;  // kHasWeight | kHasPriority | kHasMemoryLimit: which were given
  std::uint64_t memory = 0;  // the most device memory of the session, in bytes
  char program[64] = {};     // name of the client's executable, for display
};
static_assert(sizeof(Hello) == 120);
inline constexpr std::size_t kSameInAllVersions = offsetof(Hello, weight);

/// The answer, one packet. A session's comes with three descriptors: the client's ends of both
/// FIFOs, first the one to write, and the segment.
struct Welcome {
  std::uint64_t magic = kMagic;
  std::uint32_t status = 0;  // ErrorCode; not 0: refused, and `message` says why
  std::uint32_t protocol = kProtocolVersion;
  std::uint64_t session = 0;
  std::uint32_t come_again = 0;  // not 0: refused for now; another try may be welcome
  std::uint32_t reserved = 0;
  char message[160] = {};
};
static_assert(sizeof(Welcome) == 192);

/// A control connection (slatectl): after Welcome the client sends one packet of at most
/// kMaxControlBytes, a ControlRequest and its text. The answer is a stream in packets of at most
/// kMaxControlBytes: a ControlReply and its text. Who asks, the kernel says; what that user may do,
/// the daemon decides.
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
  kEndSession = 10,    // text: session, pid or program      JSON: what was ended
  kSuspend = 11,       // text: session, pid or program      JSON: what is suspended
  kResume = 12,        // text: session, pid or program      JSON: what goes on
  kRenew = 13,         //                                    JSON: what cannot leave its engine
  kUpgrade = 14,       //                                    JSON: the same
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
inline constexpr std::size_t kMaxControlBytes = 4096;
inline constexpr std::uint32_t kAnyForm = 0xffff;

struct ControlReply {
  std::uint64_t magic = kMagic;
  std::uint32_t status = 0;  // ErrorCode; not 0: the text is the reason
  std::uint32_t bytes = 0;   // of text that follow
};

}  // namespace slate::ipc
