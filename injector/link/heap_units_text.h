// malloc of up to 2048 bytes, in PTX: making blocks of units. Larger pieces are heap_pages_text.h,
// existing blocks heap_blocks_text.h. Text only. Thread: any.
#pragma once

#include <string_view>

namespace slate::ptx {

// Functions of this text:
// - place: returns the highest 2^order free pages in a row whose number is a multiple of 2^order;
//   -1: none.
// - make: takes these pages, and returns the first unit of the block that they become; 0: they are
//   taken already.
// - unit: malloc. One thread at a time of a group of warps makes a block: each of thousands that
//   come at once would otherwise make its own. The other threads search for room meanwhile.
inline constexpr std::string_view kHeapUnitsText = R"(
.func (.param .b32 $_result) __libslate_heap_place(.param .b64 $_heap, .param .b32 $_order)
{
	.reg .pred %p, %whole, %first;
	.reg .b32 %order, %word, %below, %n, %hint;
	.reg .b64 %heap, %bits, %at, %set, %free, %aligned;
	ld.param.u64 %heap, [$_heap];
	ld.param.u32 %order, [$_order];
	ld.global.u64 %bits, [%heap+24];
	mov.u32 %n, 1;
	shl.b32 %n, %n, %order;
	mov.u64 %free, 1;
	shl.b64 %free, %free, %n;
	sub.u64 %free, %free, 1;
	mov.u64 %aligned, -1;
	div.u64 %aligned, %aligned, %free;
	ld.volatile.global.u32 %hint, [%heap+384];
	ld.global.u32 %below, [%heap+16];
	sub.u32 %n, %below, 1;
	setp.ge.u32 %whole, %hint, %n;
	min.u32 %hint, %hint, %n;
	add.u32 %word, %hint, 1;
	setp.eq.u32 %first, %order, %order;
$word:
	setp.eq.u32 %p, %word, 0;
	@%p bra $bottom;
	sub.u32 %word, %word, 1;
	mul.wide.u32 %at, %word, 8;
	add.u64 %at, %at, %bits;
	ld.volatile.global.u64 %set, [%at];
	setp.eq.u64 %p, %set, -1;
	@%p bra $full;
	not.b64 %free, %set;
	mov.u32 %n, 1;
	mov.u32 %hint, %order;
$halve:
	setp.eq.u32 %p, %hint, 0;
	@%p bra $look;
	shr.u64 %set, %free, %n;
	and.b64 %free, %free, %set;
	shl.b32 %n, %n, 1;
	sub.u32 %hint, %hint, 1;
	bra $halve;
$look:
	setp.ne.u32 %first, %order, %order;
	and.b64 %free, %free, %aligned;
	setp.eq.u64 %p, %free, 0;
	@%p bra $word;
	bfind.u64 %n, %free;
	mad.lo.u32 %n, %word, 64, %n;
	bra $over;
$full:
	setp.ne.and.u32 %p, %word, 0, %first;
	sub.u32 %n, %word, 1;
	@%p atom.global.cas.b32 %n, [%heap+384], %word, %n;
	bra $word;
$bottom:
	mov.u32 %n, -1;
	@%whole bra $over;
	setp.eq.u32 %whole, %order, %order;
	setp.ne.u32 %first, %order, %order;
	mov.u32 %word, %below;
	bra $word;
$over:
	st.param.b32 [$_result], %n;
	ret;
}
.func (.param .b64 $_result) __libslate_heap_make(.param .b64 $_heap, .param .b32 $_page, .param .b32 $_class)
{
	.reg .pred %p;
	.reg .b32 %page, %class, %n, %count;
	.reg .b64 %heap, %at, %mask, %set, %new, %got, %result;
	ld.param.u64 %heap, [$_heap];
	ld.param.u32 %page, [$_page];
	ld.param.u32 %class, [$_class];
	mov.u64 %result, 0;
	red.global.add.u64 [%heap+128], 1;
	membar.gl;
	shr.u32 %n, %class, 5;
	and.b32 %n, %n, 7;
	mov.u32 %count, 1;
	shl.b32 %count, %count, %n;
	mov.u64 %mask, 1;
	shl.b64 %mask, %mask, %count;
	sub.u64 %mask, %mask, 1;
	and.b32 %n, %page, 63;
	shl.b64 %mask, %mask, %n;
	ld.global.u64 %at, [%heap+24];
	shr.u32 %n, %page, 6;
	mul.wide.u32 %got, %n, 8;
	add.u64 %at, %at, %got;
	ld.volatile.global.u64 %got, [%at];
$claim:
	mov.u64 %set, %got;
	and.b64 %new, %set, %mask;
	setp.ne.u64 %p, %new, 0;
	@%p bra $over;
	or.b64 %new, %set, %mask;
	atom.global.cas.b64 %got, [%at], %set, %new;
	setp.ne.u64 %p, %got, %set;
	@%p bra $claim;
	membar.gl;
	ld.global.u64 %at, [%heap+48];
	mul.wide.u32 %got, %page, 4;
	add.u64 %at, %at, %got;
$page:
	st.volatile.global.u32 [%at], %class;
	add.u64 %at, %at, 4;
	sub.u32 %count, %count, 1;
	setp.ne.u32 %p, %count, 0;
	@%p bra $page;
	membar.gl;
	shr.u32 %n, %class, 8;
	and.b32 %n, %n, 127;
	mov.u64 %set, 1;
	shl.b64 %set, %set, %n;
	sub.u64 %set, %set, 2;
	ld.global.u64 %at, [%heap+40];
	mul.wide.u32 %got, %page, 8;
	add.u64 %at, %at, %got;
	st.volatile.global.u64 [%at], %set;
	membar.gl;
	ld.global.u64 %at, [%heap+32];
	shr.u32 %n, %page, 6;
	mul.wide.u32 %got, %n, 8;
	add.u64 %at, %at, %got;
	mov.u64 %set, 1;
	and.b32 %n, %page, 63;
	shl.b64 %set, %set, %n;
	red.global.or.b64 [%at], %set;
	membar.gl;
	ld.global.u64 %result, [%heap];
	mul.wide.u32 %got, %page, 1024;
	add.u64 %result, %result, %got;
$over:
	red.global.add.u64 [%heap+128], 0xffffff;
	st.param.b64 [$_result], %result;
	ret;
}
.func (.param .b64 $_result) __libslate_heap_unit(.param .b64 $_heap, .param .b32 $_size)
{
	.reg .pred %p, %busy;
	.reg .b32 %n, %shift, %units, %index, %class, %known, %page, %order, %news, %looks;
	.reg .b64 %heap, %before, %after, %current, %about, %result;
	ld.param.u64 %heap, [$_heap];
	ld.param.u32 %n, [$_size];
	sub.u32 %n, %n, 1;
	shr.u32 %n, %n, 4;
	or.b32 %units, %n, 4;
	bfind.u32 %shift, %units;
	sub.u32 %shift, %shift, 2;
	shr.u32 %n, %n, %shift;
	mad.lo.u32 %index, %shift, 4, %n;
	add.u32 %index, %index, 1;
	add.u32 %units, %n, 1;
	shl.b32 %units, %units, %shift;
	setp.gt.u32 %p, %units, 1;
	selp.u32 %order, 1, 0, %p;
	setp.gt.u32 %p, %units, 3;
	selp.u32 %order, 2, %order, %p;
	setp.gt.u32 %p, %units, 32;
	selp.u32 %order, 3, %order, %p;
	setp.gt.u32 %p, %units, 64;
	selp.u32 %order, 4, %order, %p;
	mov.u32 %n, 64;
	shl.b32 %n, %n, %order;
	div.u32 %n, %n, %units;
	shl.b32 %class, %units, 16;
	mad.lo.u32 %class, %n, 256, %class;
	mad.lo.u32 %class, %order, 32, %class;
	add.u32 %class, %class, %index;
	mov.u32 %n, %smid;
	mov.u32 %shift, %warpid;
	mad.lo.u32 %n, %n, 5, %shift;
	and.b32 %n, %n, 31;
	mul.wide.u32 %current, %n, 128;
	mul.wide.u32 %about, %index, 4;
	add.u64 %about, %about, %heap;
	add.u64 %current, %current, %about;
	mov.u64 %before, -1;
	mov.u32 %looks, 256;
$again:
	ld.volatile.global.u32 %known, [%current+1024];
	setp.ge.u32 %busy, %known, 0x80000000;
	and.b32 %page, %known, 0x7fffffff;
	setp.eq.u32 %p, %page, 0;
	@%p bra $others;
	sub.u32 %page, %page, 1;
	{
	.param .b64 $_a, $_r;
	.param .b32 $_b, $_c, $_d;
	st.param.b64 [$_a], %heap;
	st.param.b32 [$_b], %page;
	st.param.b32 [$_c], %index;
	st.param.b32 [$_d], %index;
	call ($_r), __libslate_heap_take, ($_a, $_b, $_c, $_d);
	ld.param.b64 %result, [$_r];
	}
	setp.ne.u64 %p, %result, 0;
	@%p bra $over;
$others:
	ld.volatile.global.u32 %news, [%about+512];
	ld.volatile.global.u32 %n, [%about+640];
	setp.eq.u32 %p, %n, %news;
	@%p bra $new;
	membar.gl;
	{
	.param .b64 $_a, $_r;
	.param .b32 $_b, $_c;
	st.param.b64 [$_a], %heap;
	st.param.b32 [$_b], %index;
	st.param.b32 [$_c], %index;
	call ($_r), __libslate_heap_scan, ($_a, $_b, $_c);
	ld.param.b64 %result, [$_r];
	}
	setp.ne.u64 %p, %result, 0;
	@%p bra $found;
	st.volatile.global.u32 [%about+640], %news;
	bra $new;
$found:
	@%busy bra $over;
	ld.global.u64 %after, [%heap];
	sub.u64 %after, %result, %after;
	shr.u64 %after, %after, 10;
	shr.u64 %after, %after, %order;
	shl.b64 %after, %after, %order;
	cvt.u32.u64 %page, %after;
	add.u32 %page, %page, 1;
	atom.global.cas.b32 %n, [%current+1024], %known, %page;
	bra $over;
$new:
	@%busy bra $again;
	{
	.param .b64 $_a;
	.param .b32 $_b, $_r;
	st.param.b64 [$_a], %heap;
	st.param.b32 [$_b], %order;
	call ($_r), __libslate_heap_place, ($_a, $_b);
	ld.param.b32 %page, [$_r];
	}
	setp.eq.u32 %p, %page, -1;
	@%p bra $full;
	or.b32 %news, %known, 0x80000000;
	atom.global.cas.b32 %n, [%current+1024], %known, %news;
	setp.ne.u32 %p, %n, %known;
	@%p bra $again;
	{
	.param .b64 $_a, $_r;
	.param .b32 $_b, $_c;
	st.param.b64 [$_a], %heap;
	st.param.b32 [$_b], %page;
	st.param.b32 [$_c], %class;
	call ($_r), __libslate_heap_make, ($_a, $_b, $_c);
	ld.param.b64 %result, [$_r];
	}
	setp.ne.u64 %p, %result, 0;
	add.u32 %page, %page, 1;
	selp.u32 %known, %page, %known, %p;
	atom.global.exch.b32 %n, [%current+1024], %known;
	@!%p bra $again;
	bra $over;
$full:
	{
	.param .b64 $_a, $_r;
	.param .b32 $_b, $_c;
	st.param.b64 [$_a], %heap;
	st.param.b32 [$_b], %index;
	st.param.b32 [$_c], 24;
	call ($_r), __libslate_heap_scan, ($_a, $_b, $_c);
	ld.param.b64 %result, [$_r];
	}
	setp.ne.u64 %p, %result, 0;
	@%p bra $over;
	membar.gl;
	ld.volatile.global.u64 %after, [%heap+128];
	membar.gl;
	sub.u32 %looks, %looks, 1;
	setp.eq.u32 %p, %looks, 0;
	@%p bra $over;
	setp.ne.u64 %p, %after, %before;
	mov.u64 %before, %after;
	@%p bra $again;
	and.b64 %after, %after, 0xffffff;
	setp.ne.u64 %p, %after, 0;
	@%p bra $again;
$over:
	st.param.b64 [$_result], %result;
	ret;
}
)";

}  // namespace slate::ptx
