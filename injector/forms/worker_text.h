// The PTX of the worker form, piece by piece, in the order in which it stands in the kernel.
// worker.cc says how the pieces fit, and ptx_template.h how to read them. Text only. Thread: any.
//
// Registers: ~leader (predicate: thread 0), ~slot (shared address of the present task's words),
// ~block (present block), ~task (task fetched ahead), ~sm (SM word read when fetching). Only these
// live while the kernel's own code runs, with these exceptions:
// - ~live in the drain, ~copy and ~end where blocks overlap;
// - the block index and ~stop (block_index.h) where the index is counted;
// - none in the lean loop.
//
// Shared words behind __slate_s, by offset:
// - 0, 8: {first block, end} of one task and of the one after it, alternating. first = -1: leave.
//   Highest bit of end: read the SM's word again before fetching more. The lean loop has one pair,
//   {present block, end}.
// - 16: how the leader leaves: 1 as one of its SM's count, 0 no longer counted, 2 traceless.
// - 32..63: the drain's four sets of two counts, a set a block in turn. They count threads that
//   left in even and in odd intervals between barriers. ~live: address of the present interval's
//   count.
#pragma once

#include <string_view>

namespace slate::injector::text {

inline constexpr std::string_view kRegisters = R"(
	.reg .pred ~leader, ~p, ~o;
	.reg .b32 ~slot, ~task, ~sm, ~live, ~mode, ~a, ~b, ~d, ~e;
	.reg .b64 ~control, ~place, ~x, ~y;
)";
inline constexpr std::string_view kWords = "\t.shared .align 32 .b8 __slate_s[64];\n";

// ~control and ~place (this SM's word; %smid may be beyond the number of SMs). Made anew where
// needed: kept, they would cost registers.
inline constexpr std::string_view kAddresses = R"(	ld.param.u64 ~control, [<control>];
	mov.u32 ~a, %smid;
	ld.param.u32 ~b, [<last_sm>];
	min.u32 ~a, ~a, ~b;
	mul.wide.u32 ~place, ~a, 4;
	add.u64 ~place, ~place, ~control;
)";

inline constexpr std::string_view kFindLeader = R"(	mov.u32 ~slot, __slate_s;
	mov.u32 ~a, %tid.x;
	mov.u32 ~b, %tid.y;
	or.b32 ~a, ~a, ~b;
	mov.u32 ~b, %tid.z;
	or.b32 ~a, ~a, ~b;
	setp.eq.u32 ~leader, ~a, 0;
)";

// ~mode is what the leader does at $prepare: 0: fetch a task, 1: ~task has been fetched, 2: ~task
// is the worker's own first one, 3: leave. It is one loop with one entry, as ptxas brings a warp
// together again only in loops with a single way in.

// A supplementary worker lowers the count of ends by one unless its launch is closed. From then on
// the launch cannot be closed without it. Hundreds come at once, so it is an addition, which never
// fails. A worker that comes too late takes it back, unless the last worker has overwritten it with
// the next generation's count.
inline constexpr std::string_view kRegister = R"(	mov.u32 ~b, 1;
	st.shared.u32 [~slot+16], ~b;
	mov.u32 ~mode, 3;
	ld.param.u32 ~d, [<flags>];
	and.b32 ~e, ~d, <SUPPLEMENTARY>;
	setp.eq.u32 ~p, ~e, 0;
	@~p bra $admit;
	ld.param.u32 ~a, [<generation>];
	ld.volatile.global.u64 ~x, [~control+<STATE>];
	cvt.u32.u64 ~e, ~x;
	setp.ne.u32 ~p, ~e, ~a;
	@~p bra $absent;
	atom.global.add.u64 ~x, [~control+<STATE>], 0xffffffff00000000;
	cvt.u32.u64 ~e, ~x;
	setp.eq.u32 ~p, ~e, ~a;
	@~p bra $admit;
	or.b32 ~a, ~a, <CLOSED>;
	setp.eq.u32 ~p, ~e, ~a;
	@~p bra $late;
	red.global.add.u64 [~control+<STATE>], 0x100000000;
	bra $absent;
$late:
	ld.volatile.global.u64 ~x, [~control+<STATE>];
	cvt.u32.u64 ~e, ~x;
	setp.ne.u32 ~p, ~e, ~a;
	@~p bra $absent;
	add.u64 ~w, ~x, 0x100000000;
	atom.global.cas.b64 ~y, [~control+<STATE>], ~x, ~w;
	setp.ne.u64 ~p, ~y, ~x;
	@~p bra $late;
$absent:
	red.global.add.u32 [~control+<ARRIVED>], 1;
	mov.u32 ~b, 2;
	st.shared.u32 [~slot+16], ~b;
	bra $prepare;
)";

// A program that looks from outside may find a worker present that has not come yet, but not the
// other way round.
inline constexpr std::string_view kAdmit = R"($admit:
	atom.global.add.u32 ~sm, [~place+<SM>], 1;
	and.b32 ~e, ~d, <STATIC>;
	mov.u32 ~d, 0;
	mov.u32 ~task, %ctaid.x;
	mov.u32 ~mode, 2;
	setp.ne.u32 ~p, ~e, 0;
	@~p bra $prepare;
	red.global.add.u32 [~control+<ARRIVED>], 1;
	and.b32 ~a, ~sm, 0xffff;
	shr.u32 ~b, ~sm, 16;
	add.u32 ~a, ~a, ~b;
	setp.lt.u32 ~p, ~a, <MOST>;
	selp.u32 ~mode, 0, 3, ~p;
)";
inline constexpr std::string_view kPrepare = R"($prepare:
	@!~leader bra $turn;
)";

// The leader fills the pair of words at ~slot. ~d: what to add to the end.
inline constexpr std::string_view kTask = R"(	setp.eq.u32 ~p, ~mode, 3;
	@~p bra $reject;
	setp.eq.u32 ~p, ~mode, 2;
	@~p bra $map;
	setp.eq.u32 ~p, ~mode, 1;
	@~p bra $fetched;
	atom.global.add.u32 ~task, [~control+<NEXT>], 1;
$fetched:
	ld.param.u32 ~e, [<queue_start>];
	add.u32 ~task, ~task, ~e;
$map:
	ld.param.u32 ~a, [<tasks>];
	setp.ge.u32 ~p, ~task, ~a;
	ld.param.u32 ~b, [<size_0>];
	mul.lo.u32 ~a, ~task, ~b;
	ld.param.u32 ~e, [<tasks_0>];
	setp.lt.u32 ~o, ~task, ~e;
	@~o bra $mapped;
	sub.u32 ~task, ~task, ~e;
	ld.param.u32 ~b, [<size_1>];
	ld.param.u32 ~e, [<first_1>];
	mad.lo.u32 ~a, ~task, ~b, ~e;
	ld.param.u32 ~e, [<tasks_1>];
	setp.lt.u32 ~o, ~task, ~e;
	@~o bra $mapped;
	sub.u32 ~task, ~task, ~e;
	ld.param.u32 ~e, [<first_2>];
	add.u32 ~a, ~task, ~e;
	mov.u32 ~b, 1;
$mapped:
	add.u32 ~b, ~a, ~b;
	or.b32 ~b, ~b, ~d;
	selp.b32 ~a, -1, ~a, ~p;
	st.shared.v2.u32 [~slot], {~a, ~b};
	bra $turn;
$reject:
	mov.u32 ~a, -1;
	st.shared.u32 [~slot], ~a;
$turn:
)";

// Runs behind the barrier that makes the words known. ~task = -2: not fetched yet.
inline constexpr std::string_view kTurn = R"(	ld.shared.v2.u32 {~block, ~e}, [~slot];
	setp.eq.u32 ~p, ~block, -1;
	@~p bra $leave;
	mov.u32 ~task, -2;
	@!~leader bra $block;
	setp.lt.s32 ~p, ~e, 0;
	ld.param.u32 ~b, [<prefetch_below>];
	setp.ge.or.u32 ~p, ~block, ~b, ~p;
	@~p bra $block;
)";
inline constexpr std::string_view kFetchAhead =
    R"(	atom.global.add.u32 ~task, [~control+<NEXT>], 1;
	ld.relaxed.gpu.global.u32 ~sm, [~place+<SM>];
)";

inline constexpr std::string_view kNextBlock = R"(	add.u32 ~block, ~block, 1;
	ld.shared.u32 ~e, [~slot+4];
	and.b32 ~e, ~e, 0x7fffffff;
	setp.lt.u32 ~p, ~block, ~e;
	@!~p bra $done;
)";
// Used where the index is counted.
inline constexpr std::string_view kRunRegisters = "\t.reg .b32 ~stop;\n";

// --- Exit drain ---
// A thread that has returned goes on taking part in the barriers of the other threads. Behind each
// barrier it adds up the threads that had left by then. No thread can leave in the interval that it
// reads, as that is over. (On an H200 an mbarrier that threads drop out of took 1.7 times as long:
// bench/results/2026-11-21-h200-drain-mbarrier.jsonl.)

inline constexpr std::string_view kCountThreads = R"(	mov.u32 ~a, %ntid.x;
	mov.u32 ~b, %ntid.y;
	mul.lo.u32 ~a, ~a, ~b;
	mov.u32 ~b, %ntid.z;
	mul.lo.u32 ~a, ~a, ~b;
)";
// Run by the leader, at its start: no thread has left any block.
inline constexpr std::string_view kClearCounts = R"(	mov.u32 ~a, 0;
	st.shared.v4.u32 [~live], {~a, ~a, ~a, ~a};
	st.shared.v4.u32 [~live+16], {~a, ~a, ~a, ~a};
)";
// Run by the leader, at the start of a block: clears the set of the block after the next. All
// threads have read it for the last time in the block before the last, and passed a barrier since.
inline constexpr std::string_view kClearAhead = R"(	@!~leader bra $clear;
	xor.b32 ~e, ~live, 16;
	mov.u32 ~a, 0;
	st.shared.v2.u32 [~e], {~a, ~a};
$clear:
)";
inline constexpr std::string_view kDrainedBarrier = "barrier.sync 0;\n	xor.b32 ~live, ~live, 4;";
// Goes to the end of the block, then to the first interval of the next set.
inline constexpr std::string_view kDrain = R"(	atom.shared.add.u32 ~e, [~live], 1;
	xor.b32 ~e, ~live, 4;
	ld.volatile.shared.u32 ~d, [~e];
$drain:
	barrier.sync 0;
	ld.volatile.shared.u32 ~e, [~live];
	xor.b32 ~live, ~live, 4;
	add.u32 ~b, ~d, ~e;
	mov.u32 ~d, ~e;
	setp.ne.u32 ~p, ~b, ~a;
	@~p bra $drain;
	add.u32 ~e, ~live, 8;
	and.b32 ~e, ~e, 0x18;
	and.b32 ~live, ~live, 0xffffffe0;
	or.b32 ~live, ~live, ~e;
)";

// --- Between tasks ---

// Runs when the task is done: the leader decides what comes next.
inline constexpr std::string_view kFetchAfter = R"(	xor.b32 ~slot, ~slot, 8;
	@!~leader bra $again;
)";
inline constexpr std::string_view kDecide = R"(	mov.u32 ~d, 0;
	setp.eq.u32 ~o, ~task, -2;
	@!~o bra $ahead;
	ld.relaxed.gpu.global.u32 ~sm, [~place+<SM>];
$ahead:
	selp.u32 ~mode, 0, 1, ~o;
	and.b32 ~a, ~sm, 0xffff;
	shr.u32 ~b, ~sm, 16;
	add.u32 ~a, ~a, ~b;
	setp.le.u32 ~p, ~a, <MOST>;
	@~p bra $again;
	mov.u32 ~d, 0x80000000;
	@!~o bra $again;
	mov.u32 ~d, 0;
	atom.global.add.u32 ~sm, [~place+<SM>], -1;
	and.b32 ~a, ~sm, 0xffff;
	shr.u32 ~b, ~sm, 16;
	add.u32 ~a, ~a, ~b;
	setp.gt.u32 ~p, ~a, <MOST>;
	@~p bra $go;
	red.global.add.u32 [~place+<SM>], 1;
	bra $again;
$go:
	mov.u32 ~b, 0;
	mov.u32 ~e, __slate_s;
	st.shared.u32 [~e+16], ~b;
	mov.u32 ~mode, 3;
$again:
	bra $prepare;
)";

// --- Blocks that overlap ---
// A warp that is through with its block begins the next one. Two copies of the kernel's shared
// memory take turns; ~copy is the present one's address. Each block has a barrier that all threads
// reach, so no thread begins a block before all have ended the last but one.

inline constexpr std::string_view kCopyRegisters = "\t.reg .b32 ~copy, ~end;\n";

// ~end is the present task's end, with the flag.
inline constexpr std::string_view kTakeTask = R"(	ld.shared.v2.u32 {~block, ~end}, [~slot];
	setp.eq.u32 ~p, ~block, -1;
	@~p bra $leave;
)";
inline constexpr std::string_view kFetchEarly = R"(	mov.u32 ~task, -2;
	@!~leader bra $block;
	setp.lt.s32 ~p, ~end, 0;
	ld.param.u32 ~b, [<prefetch_below>];
	setp.ge.or.u32 ~p, ~block, ~b, ~p;
	@~p bra $block;
)";
// The leader, at the start of a task's last block, settles the next task; that block's own barrier
// makes it known to all.
inline constexpr std::string_view kIsLastBlock = R"($block:
	@!~leader bra $begin;
	add.u32 ~a, ~block, 1;
	and.b32 ~e, ~end, 0x7fffffff;
	setp.lt.u32 ~p, ~a, ~e;
	@~p bra $begin;
	xor.b32 ~slot, ~slot, 8;
)";
inline constexpr std::string_view kSettled = R"(	xor.b32 ~slot, ~slot, 8;
$begin:
)";
// The words have been read by all when they are written again: in between lies a barrier of each
// block of the task. Before the worker leaves, all threads have to have ended their last block.
inline constexpr std::string_view kHandOver = R"(	add.u32 ~block, ~block, 1;
	and.b32 ~e, ~end, 0x7fffffff;
	setp.lt.u32 ~p, ~block, ~e;
	@~p bra $block;
	xor.b32 ~slot, ~slot, 8;
	ld.shared.v2.u32 {~block, ~end}, [~slot];
	setp.ne.u32 ~p, ~block, -1;
	@~p bra $task;
	bar.sync 0;
)";

// --- The lean loop ---
// The loop for kernels that need all their registers: nothing lives across a block except in shared
// memory. It costs two barriers a block, and no task is fetched ahead.

inline constexpr std::string_view kLeanTurn = R"(	ld.shared.u32 ~block, [__slate_s];
	setp.eq.u32 ~p, ~block, -1;
	@~p bra $leave;
)";
inline constexpr std::string_view kLeanRead = "	ld.shared.u32 ~block, [__slate_s];\n";
// ~mode 4: the words are filled already.
inline constexpr std::string_view kLeanNext = R"(	@!~leader bra $again;
	mov.u32 ~mode, 4;
	ld.shared.v2.u32 {~block, ~e}, [__slate_s];
	add.u32 ~block, ~block, 1;
	and.b32 ~e, ~e, 0x7fffffff;
	st.shared.u32 [__slate_s], ~block;
	setp.lt.u32 ~p, ~block, ~e;
	@~p bra $again;
	mov.u32 ~task, -2;
)";
inline constexpr std::string_view kLeanSkip = R"(	setp.eq.u32 ~p, ~mode, 4;
	@~p bra $turn;
)";

// --- The end ---

// Runs when all threads have finished their last block. Results come first, then the count of ends:
// a worker that sees the count complete sees the results. That worker closes the launch, unless
// another one has joined meanwhile.
inline constexpr std::string_view kLeave = R"($leave:
	@!~leader bra $end;
	mov.u32 ~e, __slate_s;
	ld.shared.u32 ~e, [~e+16];
	setp.eq.u32 ~p, ~e, 2;
	@~p bra $end;
)";
inline constexpr std::string_view kCountOut = R"(	setp.eq.u32 ~p, ~e, 0;
	@~p bra $counted;
	red.global.add.u32 [~place+<SM>], -1;
$counted:
	membar.gl;
	atom.global.add.u64 ~x, [~control+<STATE>], 0x100000000;
	add.u64 ~x, ~x, 0x100000000;
	shr.u64 ~y, ~x, 32;
	cvt.u32.u64 ~a, ~y;
	ld.param.u32 ~b, [<exit_target>];
	setp.ne.u32 ~p, ~a, ~b;
	@~p bra $end;
	or.b64 ~w, ~x, <CLOSED>;
	atom.global.cas.b64 ~y, [~control+<STATE>], ~x, ~w;
	setp.ne.u64 ~p, ~y, ~x;
	@~p bra $end;
	membar.gl;
	mov.u32 ~d, <RETREATED>;
	ld.volatile.global.u32 ~a, [~control+<NEXT>];
	ld.param.u32 ~b, [<queue_start>];
	add.u32 ~a, ~a, ~b;
	ld.param.u32 ~b, [<tasks>];
	setp.lt.u32 ~p, ~a, ~b;
	@~p bra $signal;
	mov.u32 ~d, <FINISHED>;
	mov.u32 ~a, 0;
	st.global.u32 [~control+<NEXT>], ~a;
	ld.param.u32 ~b, [<last_sm>];
	add.u32 ~b, ~b, 1;
	mov.u64 ~y, ~control;
$clean:
	st.global.u32 [~y+<SM>], ~a;
	add.u64 ~y, ~y, 4;
	sub.u32 ~b, ~b, 1;
	setp.ne.u32 ~p, ~b, 0;
	@~p bra $clean;
	membar.gl;
	ld.param.u32 ~e, [<generation>];
	add.u32 ~e, ~e, <NEXT_GENERATION>;
	cvt.u64.u32 ~y, ~e;
	st.volatile.global.u64 [~control+<STATE>], ~y;
$signal:
	ld.param.u64 ~y, [<signal>];
	setp.eq.u64 ~p, ~y, 0;
	@~p bra $end;
	ld.param.u32 ~e, [<generation>];
	membar.sys;
	st.volatile.global.v2.u32 [~y], {~d, ~e};
$end:
	ret;
)";

}  // namespace slate::injector::text
