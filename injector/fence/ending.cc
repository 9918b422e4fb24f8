#include "injector/fence/ending.h"

#include <fmt/format.h>

#include <algorithm>

#include "injector/fence/check_text.h"
#include "injector/fence/fence_table.h"
#include "injector/forms/launch_parameters.h"
#include "injector/forms/ptx_template.h"
#include "injector/forms/worker_text.h"

namespace slate::injector {
namespace {

// In __slate_s (worker_text.h), which does not use them: how many threads are about to close the
// queue, and whether the leader is leaving.
constexpr std::uint32_t kBusy = 20;
constexpr std::uint32_t kStop = 24;
/// A number of a task beyond all others, with room for those that still count on from it.
constexpr std::uint32_t kNoTask = 0x7fffffff;
constexpr std::uint32_t kMostLooks =
    32;  // at a record that is not claimed; each takes 1 us or more

constexpr std::string_view kRow = R"($frow:
	mov.u64 ~ft, {0};
	mad.wide.u32 ~ft, ~fi, 16, ~ft;
	ld.global.v4.u32 {{~fd, ~fc, ~fw, ~fv}}, [~ft];
	max.u32 ~fn, ~fn, ~fc;
)";
/// A record lies in the host's memory, where a claim takes microseconds, and a launch may have
/// millions of threads that all violate the fence. So only the first one claims it. The others wait
/// a little until it is claimed: the host looks for a claim when their kernel has ended. Nothing
/// here may need the lanes of a warp together. The assembler would bring them together here, in
/// place of where the program needs it: that cost sparse_matvec a fifth of its time.
constexpr std::string_view kQueue = R"($fending:
	ld.const.u64 ~ft, [{0}+{1}];
	setp.eq.u64 ~fp, ~ft, 0;
	@~fp bra $fclaim;
	ld.volatile.global.u32 ~fc, [~ft+{2}];
	setp.ne.u32 ~fp, ~fc, 0;
	@~fp bra $fquiet;
	atom.global.cas.b32 ~fc, [~ft+{3}], 0, 1;
	setp.eq.u32 ~fp, ~fc, 0;
	@~fp bra $fclaim;
	ld.const.u64 ~ft, [{0}+{4}];
	setp.eq.u64 ~fp, ~ft, 0;
	@~fp bra $fquiet;
	mov.u32 ~fd, {5};
$fbehind:
	.pragma "nounroll";
	ld.volatile.global.u32 ~fc, [~ft];
	setp.ne.u32 ~fp, ~fc, {6};
	@~fp bra $fquiet;
	sub.u32 ~fd, ~fd, 1;
	setp.ne.u32 ~fp, ~fd, 0;
	@~fp bra $fbehind;
	bra $fquiet;
)";
constexpr std::string_view kClaim = R"($fclaim:
	ld.const.u64 ~ft, [{0}+{1}];
	setp.eq.u64 ~fp, ~ft, 0;
	@~fp bra $ftell;
	atom.sys.global.cas.b32 ~fc, [~ft], {2}, {3};
	setp.ne.u32 ~fp, ~fc, {2};
	@~fp bra $fquiet;
)";
constexpr std::string_view kRecord = R"(	st.global.u32 [~ft+4], ~fk;
	ld.const.u32 ~fd, [{0}+{1}];
	st.global.u32 [~ft+8], ~fd;
	mov.u32 ~fd, {2};
	st.global.u32 [~ft+12], ~fd;
	st.global.u32 [~ft+16], ~fv;
	st.global.u32 [~ft+20], ~fn;
	and.b32 ~fw, ~fw, {3};
	or.b32 ~fw, ~fw, ~fi;
	st.global.u32 [~ft+24], ~fw;
	st.global.u64 [~ft+32], ~fa;
	mov.u32 ~fd, %tid.x;
	st.global.u32 [~ft+52], ~fd;
	mov.u32 ~fd, %tid.y;
	st.global.u32 [~ft+56], ~fd;
	mov.u32 ~fd, %tid.z;
	st.global.u32 [~ft+60], ~fd;
	membar.sys;
	mov.u32 ~fd, {4};
	st.volatile.global.u32 [~ft], ~fd;
	membar.sys;
)";
/// Tells threads that may wait for this one. What ends by that ends behind the whole record.
constexpr std::string_view kTell = R"($ftell:
	ld.const.u64 ~ft, [{0}+{1}];
	setp.eq.u64 ~fp, ~ft, 0;
	@~fp bra $fquiet;
	mov.u32 ~fd, 1;
	st.volatile.global.u32 [~ft+{2}], ~fd;
)";
constexpr std::string_view kBlockIndex = R"(	mov.u32 ~fi, 0;
	mov.u32 ~fd, %ctaid.x;
	st.global.u32 [~ft+40], ~fd;
	mov.u32 ~fd, %ctaid.y;
	st.global.u32 [~ft+44], ~fd;
	mov.u32 ~fd, %ctaid.z;
	st.global.u32 [~ft+48], ~fd;
)";
// ~fd: number of the block.
constexpr std::string_view kBlockNumber = R"(	st.global.u32 [~ft+40], ~fd;
	mov.u32 ~fd, 0;
	st.global.u32 [~ft+44], ~fd;
	st.global.u32 [~ft+48], ~fd;
	mov.u32 ~fi, {0};
)";

constexpr std::string_view kIsLeader = R"(	mov.u32 ~fc, %tid.x;
	mov.u32 ~fd, %tid.y;
	or.b32 ~fc, ~fc, ~fd;
	mov.u32 ~fd, %tid.z;
	or.b32 ~fc, ~fc, ~fd;
	setp.eq.u32 ~fq, ~fc, 0;
)";

// ~fb: address of the worker's words; ~ft: its control block. A thread may close the queue only
// while the leader is there: afterwards the control block may be clean for another launch.
constexpr std::string_view kClose = R"(	@~fq bra $fleader;
	atom.shared.add.u32 ~fc, [~fb+{0}], 1;
	membar.cta;
	ld.volatile.shared.u32 ~fc, [~fb+{1}];
	setp.ne.u32 ~fp, ~fc, 0;
	@~fp bra $fclosed;
	red.global.max.u32 [~ft+{2}], {3};
	membar.gl;
$fclosed:
	membar.cta;
	atom.shared.add.u32 ~fc, [~fb+{0}], -1;
	exit;
$fleader:
	mov.u32 ~fc, 1;
	st.volatile.shared.u32 [~fb+{1}], ~fc;
	membar.cta;
$fwait:
	ld.volatile.shared.u32 ~fc, [~fb+{0}];
	setp.ne.u32 ~fp, ~fc, 0;
	@~fp bra $fwait;
	red.global.max.u32 [~ft+{2}], {3};
	mov.u32 ~fc, -1;
	mov.u32 ~fd, 0;
	st.volatile.shared.v2.u32 [~fb], {{~fc, ~fd}};
	st.volatile.shared.v2.u32 [~fb+8], {{~fc, ~fd}};
	membar.cta;
)";

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
}

/// The worker's own text with names that clash with no other, for another end of the thread.
std::string for_ending(std::string text) {
  replace_all(text, "%__slate_", "%__slate_fe_");
  replace_all(text, "$__slate_", "$__slate_fe_");
  replace_all(text, "\tret;", "\texit;");
  return text;
}

/// The same for a function, where ~fz is the generic address of the worker's parameters.
std::string for_function(std::string text) {
  text = for_ending(std::move(text));
  replace_all(text, "ld.param.", "ld.");
  replace_all(text, fmt::format("[{}+", kParameterName), "[%__slate_fz+");
  replace_all(text, "mov.u32 %__slate_fe_e, __slate_s;",
              fmt::format("ld.shared.u32 %__slate_fe_e, [{}+8];", kBlockFacts));
  return text;
}

/// Whether the present block's number is only in shared memory.
bool is_lean(const ptx::Function& function) {
  return std::ranges::any_of(function.instructions, [](const ptx::Instruction& instruction) {
    const auto& operands = instruction.operands;
    return instruction.opcode == "ld" && operands.size() == 2 &&
           operands[0].text == "%__slate_block" && operands[1].parts.size() == 1 &&
           operands[1].parts[0].text == "__slate_s";
  });
}

std::string block_text(EndingKind kind, const ptx::Function& function) {
  switch (kind) {
    case EndingKind::kPlain:
    case EndingKind::kFunction:
      return expand(kBlockIndex);
    case EndingKind::kSlice:
      return expand(
                 "\tmov.u32 ~fd, %ctaid.x;\n\tld.param.u32 ~fc, [<first>];\n"
                 "\tadd.u32 ~fd, ~fd, ~fc;\n") +
             filled(kBlockNumber, kFenceNumbered);
    case EndingKind::kWorker:
    case EndingKind::kDrained:
      break;
  }
  return expand(is_lean(function) ? "\tld.shared.u32 ~fd, [__slate_s];\n"
                                  : "\tmov.u32 ~fd, ~block;\n") +
         filled(kBlockNumber, kFenceNumbered);
}

std::string leave_text(EndingKind kind) {
  const std::string close = filled(kClose, kBusy, kStop, ControlBlock::kNextOffset, kNoTask);
  const std::string control = expand("\tld.param.u64 ~ft, [<control>];\n");
  std::string leave(text::kLeave);
  leave.append(text::kAddresses).append(text::kCountOut);
  leave = expand("\tmov.pred ~leader, 1;\n") + expand(leave);
  switch (kind) {
    case EndingKind::kPlain:
    case EndingKind::kSlice:
      return "\texit;\n";
    case EndingKind::kDrained:
      return control + filled("\tred.global.max.u32 [~ft+{}], {};\n\tbra $return;\n",
                              ControlBlock::kNextOffset, kNoTask);
    case EndingKind::kWorker:
      return control + expand("\tmov.u32 ~fb, __slate_s;\n") + expand(kIsLeader) + close +
             for_ending(leave);
    case EndingKind::kFunction:
      break;
  }
  std::string code = filled(
      "\tld.shared.u64 ~fz, [{0}];\n\tld.shared.u32 ~fb, [{0}+8];\n"
      "\tsetp.ne.u64 ~fp, ~fz, 0;\n\t@~fp bra $fworker;\n\texit;\n$fworker:\n",
      kBlockFacts);
  std::string read = control;
  replace_all(read, "ld.param.", "ld.");
  replace_all(read, fmt::format("[{}+", kParameterName), "[%__slate_fz+");
  return code + read + expand(kIsLeader) + close + for_function(leave);
}

}  // namespace

bool is_worker(const ptx::Function& function) {
  return function.is_entry &&
         (function.name.ends_with("__slate_worker") || function.name.ends_with("__slate_compact"));
}

EndingKind ending_kind(const ptx::Function& function, bool knows_words, bool own_names) {
  if (!own_names) return EndingKind::kPlain;
  if (!function.is_entry) return knows_words ? EndingKind::kFunction : EndingKind::kPlain;
  if (function.name.ends_with("__slate_slice")) return EndingKind::kSlice;
  if (!is_worker(function)) return EndingKind::kPlain;
  const bool drains = std::ranges::find(function.labels, "$__slate_drain", &ptx::Label::name) !=
                      function.labels.end();
  return drains ? EndingKind::kDrained : EndingKind::kWorker;
}

std::string ending_registers(EndingKind kind) {
  if (kind != EndingKind::kFunction && kind != EndingKind::kWorker) return {};
  std::string text(text::kRegisters);
  return for_ending(expand(text + "\t.reg .b64 ~w;\n"));
}

bool may_end_in_place(EndingKind kind) {
  return kind == EndingKind::kPlain || kind == EndingKind::kSlice || kind == EndingKind::kWorker;
}

std::string ending_text(EndingKind kind, const ptx::Function& function, std::uint32_t number,
                        bool has_rows) {
  std::string code;
  if (has_rows) code += filled(kRow, kAccessTable);
  code += filled(kQueue, kFenceConstants, offsetof(FenceConstants, table),
                 offsetof(FenceTable, ended), offsetof(FenceTable, ending),
                 offsetof(FenceConstants, record), kMostLooks, FenceRecord::kFree);
  code += filled(kClaim, kFenceConstants, offsetof(FenceConstants, record), FenceRecord::kFree,
                 FenceRecord::kClaimed);
  code += block_text(kind, function);
  code += filled(kRecord, kFenceConstants, offsetof(FenceConstants, module), number, kFenceWrites,
                 FenceRecord::kComplete);
  code +=
      filled(kTell, kFenceConstants, offsetof(FenceConstants, table), offsetof(FenceTable, ended));
  return code + fmt::format("{}:\n", kQuietEnding) + leave_text(kind);
}

std::string leaving_in_place(EndingKind kind, std::uint32_t place) {
  std::string code = leave_text(kind);
  replace_all(code, expand("$f"), filled("$fz{}_", place));
  return code;
}

std::string ending_in_place(EndingKind kind, const ptx::Function& function, std::uint32_t number,
                            bool has_row, std::uint32_t place) {
  std::string code = ending_text(kind, function, number, has_row);
  replace_all(code, expand("$f"), filled("$fz{}_", place));
  return code;
}

}  // namespace slate::injector
