// The heap's blocks of up to 64 units, in PTX: taking a unit of an existing block, and giving it
// back. A parameter `class` is the word of HeapHeader::classes for the block's pages.
#pragma once

#include <string_view>

namespace slate::ptx {

// Functions of this text:
// - put: gives one unit of the block at `page` back, and with the last unit the block's pages.
// - take: takes one unit of the block at `page`, if its class has a number in [least, most]; 0:
//   none. Lanes begin at different bits, so that a whole warp is served at once. A block stays what
//   it is only while a unit of it is held, so its class is checked after the unit was taken.
// - scan: as take, of any block that has room.
inline constexpr std::string_view kHeapBlocksText = R"(
.func __libslate_heap_put(.param .b64 $_heap, .param .b32 $_page, .param .b32 $_unit, .param .b32 $_class)
{
	.reg .pred %p;
	.reg .b32 %page, %class, %n, %count, %i;
	.reg .b64 %heap, %units, %room, %room_bit, %bit, %old, %full, %at;
	ld.param.u64 %heap, [$_heap];
	ld.param.u32 %page, [$_page];
	ld.param.u32 %n, [$_unit];
	ld.param.u32 %class, [$_class];
	mov.u64 %bit, 1;
	shl.b64 %bit, %bit, %n;
	ld.global.u64 %at, [%heap+40];
	mul.wide.u32 %units, %page, 8;
	add.u64 %units, %units, %at;
	ld.global.u64 %room, [%heap+32];
	shr.u32 %n, %page, 6;
	mul.wide.u32 %at, %n, 8;
	add.u64 %room, %room, %at;
	and.b32 %n, %page, 63;
	mov.u64 %room_bit, 1;
	shl.b64 %room_bit, %room_bit, %n;
	atom.global.or.b64 %old, [%units], %bit;
	setp.ne.u64 %p, %old, 0;
	@%p bra $known;
	membar.gl;
	red.global.or.b64 [%room], %room_bit;
	membar.gl;
	and.b32 %n, %class, 31;
	mul.wide.u32 %at, %n, 4;
	add.u64 %at, %at, %heap;
	red.global.add.u32 [%at+512], 1;
	red.global.add.u64 [%heap+128], 0x1000000;
$known:
	or.b64 %old, %old, %bit;
	shr.u32 %n, %class, 8;
	and.b32 %n, %n, 127;
	mov.u64 %full, 1;
	shl.b64 %full, %full, %n;
	sub.u64 %full, %full, 1;
	setp.ne.u64 %p, %old, %full;
	@%p ret;
	red.global.add.u64 [%heap+128], 1;
	membar.gl;
	atom.global.cas.b64 %old, [%units], %full, 0;
	setp.ne.u64 %p, %old, %full;
	@%p bra $done;
	not.b64 %room_bit, %room_bit;
	red.global.and.b64 [%room], %room_bit;
	shr.u32 %n, %class, 5;
	and.b32 %n, %n, 7;
	mov.u32 %count, 1;
	shl.b32 %count, %count, %n;
	ld.global.u64 %at, [%heap+48];
	mul.wide.u32 %old, %page, 4;
	add.u64 %at, %at, %old;
	mov.u32 %i, %count;
$page:
	st.volatile.global.u32 [%at], 0;
	add.u64 %at, %at, 4;
	sub.u32 %i, %i, 1;
	setp.ne.u32 %p, %i, 0;
	@%p bra $page;
	{
	.param .b64 $_a;
	.param .b32 $_b, $_c;
	st.param.b64 [$_a], %heap;
	st.param.b32 [$_b], %page;
	st.param.b32 [$_c], %count;
	call __libslate_heap_release, ($_a, $_b, $_c);
	}
$done:
	red.global.add.u64 [%heap+128], -1;
	ret;
}
.func (.param .b64 $_result) __libslate_heap_take(.param .b64 $_heap, .param .b32 $_page, .param .b32 $_least, .param .b32 $_most)
{
	.reg .pred %p, %q;
	.reg .b32 %page, %class, %now, %n, %turn, %back, %least, %most;
	.reg .b64 %heap, %class_at, %units, %set, %other, %bit, %old, %room, %result;
	ld.param.u64 %heap, [$_heap];
	ld.param.u32 %page, [$_page];
	ld.param.u32 %least, [$_least];
	ld.param.u32 %most, [$_most];
	mov.u64 %result, 0;
	ld.global.u64 %class_at, [%heap+48];
	mul.wide.u32 %old, %page, 4;
	add.u64 %class_at, %class_at, %old;
	ld.volatile.global.u32 %class, [%class_at];
	and.b32 %n, %class, 31;
	setp.lt.u32 %p, %n, %least;
	@%p bra $over;
	setp.gt.u32 %p, %n, %most;
	@%p bra $over;
	ld.global.u64 %units, [%heap+40];
	mul.wide.u32 %old, %page, 8;
	add.u64 %units, %units, %old;
	mov.u32 %turn, %laneid;
	shl.b32 %turn, %turn, 1;
	sub.u32 %back, 64, %turn;
	ld.volatile.global.u64 %set, [%units];
$again:
	setp.eq.u64 %p, %set, 0;
	@%p bra $over;
	shr.u64 %old, %set, %turn;
	shl.b64 %other, %set, %back;
	or.b64 %old, %old, %other;
	brev.b64 %old, %old;
	clz.b64 %n, %old;
	add.u32 %n, %n, %turn;
	and.b32 %n, %n, 63;
	mov.u64 %bit, 1;
	shl.b64 %bit, %bit, %n;
	not.b64 %other, %bit;
	atom.global.and.b64 %old, [%units], %other;
	and.b64 %set, %old, %other;
	and.b64 %old, %old, %bit;
	setp.eq.u64 %p, %old, 0;
	@%p bra $again;
	membar.gl;
	ld.volatile.global.u32 %now, [%class_at];
	setp.eq.u32 %p, %now, %class;
	@%p bra $mine;
	{
	.param .b64 $_a;
	.param .b32 $_b, $_c, $_d;
	st.param.b64 [$_a], %heap;
	st.param.b32 [$_b], %page;
	st.param.b32 [$_c], %n;
	st.param.b32 [$_d], %now;
	call __libslate_heap_put, ($_a, $_b, $_c, $_d);
	}
	bra $over;
$mine:
	shr.u32 %class, %class, 12;
	and.b32 %class, %class, 0xff0;
	mul.wide.u32 %result, %class, %n;
	mul.wide.u32 %old, %page, 1024;
	add.u64 %result, %result, %old;
	ld.global.u64 %old, [%heap];
	add.u64 %result, %result, %old;
	setp.ne.u64 %p, %set, 0;
	@%p bra $over;
	red.global.add.u64 [%heap+128], 1;
	membar.gl;
	ld.global.u64 %room, [%heap+32];
	shr.u32 %n, %page, 6;
	mul.wide.u32 %old, %n, 8;
	add.u64 %room, %room, %old;
	and.b32 %n, %page, 63;
	mov.u64 %bit, 1;
	shl.b64 %bit, %bit, %n;
	not.b64 %other, %bit;
	atom.global.and.b64 %old, [%room], %other;
	membar.gl;
	ld.volatile.global.u64 %set, [%units];
	setp.eq.u64 %p, %set, 0;
	@%p bra $full;
	red.global.or.b64 [%room], %bit;
	membar.gl;
$full:
	red.global.add.u64 [%heap+128], 0xffffff;
$over:
	st.param.b64 [$_result], %result;
	ret;
}
.func (.param .b64 $_result) __libslate_heap_scan(.param .b64 $_heap, .param .b32 $_least, .param .b32 $_most)
{
	.reg .pred %p;
	.reg .b32 %least, %most, %word, %n;
	.reg .b64 %heap, %room, %set, %bit, %result;
	ld.param.u64 %heap, [$_heap];
	ld.param.u32 %least, [$_least];
	ld.param.u32 %most, [$_most];
	mov.u64 %result, 0;
	ld.global.u32 %word, [%heap+16];
	ld.global.u64 %room, [%heap+32];
	mul.wide.u32 %bit, %word, 8;
	add.u64 %room, %room, %bit;
$word:
	setp.eq.u32 %p, %word, 0;
	@%p bra $over;
	sub.u32 %word, %word, 1;
	sub.u64 %room, %room, 8;
	ld.volatile.global.u64 %set, [%room];
$bit:
	setp.eq.u64 %p, %set, 0;
	@%p bra $word;
	bfind.u64 %n, %set;
	mov.u64 %bit, 1;
	shl.b64 %bit, %bit, %n;
	xor.b64 %set, %set, %bit;
	mad.lo.u32 %n, %word, 64, %n;
	{
	.param .b64 $_a, $_r;
	.param .b32 $_b, $_c, $_d;
	st.param.b64 [$_a], %heap;
	st.param.b32 [$_b], %n;
	st.param.b32 [$_c], %least;
	st.param.b32 [$_d], %most;
	call ($_r), __libslate_heap_take, ($_a, $_b, $_c, $_d);
	ld.param.b64 %result, [$_r];
	}
	setp.eq.u64 %p, %result, 0;
	@%p bra $bit;
$over:
	st.param.b64 [$_result], %result;
	ret;
}
)";

}  // namespace slate::ptx
